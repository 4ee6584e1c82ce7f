"""Browser processes: find, launch, supervise and end them."""
