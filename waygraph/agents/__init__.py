"""Web agents that observe, act, navigate by map, and are scored on tasks.

`observation` renders a page as text with short ids, `actions` parses and performs what an agent answers, `greedy` is
the baseline without a model. `tasks` reads task files, `scoring` rewards stored runs, `models` talks to chat models.
Import the subpackages: this module loads nothing.
"""
