"""How are many sites explored, encoded and published at once? The Ray side."""
