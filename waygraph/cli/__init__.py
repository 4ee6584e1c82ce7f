"""What can be done from a shell? One module per group of commands."""
