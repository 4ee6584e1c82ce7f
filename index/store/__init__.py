"""Where are maps kept? Immutable versions, content-addressed blobs, atomic publishing."""
