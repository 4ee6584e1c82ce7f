"""Lists of sites and their settings, as users write them."""
