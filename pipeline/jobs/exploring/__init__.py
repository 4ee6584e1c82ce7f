"""How are sites explored by many processes? Actors with a browser each, and who takes which site."""
