"""Answers that show whole maps to people: cards of sites, graphs in columns, elements with boxes, small images."""
