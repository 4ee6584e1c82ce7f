"""Generated descriptions of the states of a map: what is asked, what it may cost, what is kept."""
