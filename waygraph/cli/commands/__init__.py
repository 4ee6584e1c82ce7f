"""The commands, one module each, named like the command. A module imports heavy packages inside its functions."""
