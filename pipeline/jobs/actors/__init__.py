"""Actors: objects in processes of their own, whose methods are called from other processes.

`protocol` is all that other packages use, `choice` decides between its two implementations: `ray_actors` for many sites
and machines, the only module that imports Ray, and `local_actors` for a few sites on this machine.
"""
