"""Policies that leave elements and URLs alone: scope, robots.txt, hazards, block lists."""
