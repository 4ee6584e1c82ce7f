"""What does each page of the demo shop say? One module per area; every page is a function of the shop's state."""
