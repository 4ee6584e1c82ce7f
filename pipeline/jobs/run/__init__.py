"""How does a run go on until it is done, whatever ends it? What is asked for, what was done, what is next."""
