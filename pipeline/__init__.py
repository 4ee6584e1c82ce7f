"""The offline half: how does a website become a map?"""
