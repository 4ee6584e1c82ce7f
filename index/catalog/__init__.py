"""Open maps: search, locate and path over published versions."""
