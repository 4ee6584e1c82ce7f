"""Tasks over sites that anyone can serve: the demo shop, and sites from package registries."""
