"""Pages of the demo shop, one module per area. Every page is a function of the shop's state."""
