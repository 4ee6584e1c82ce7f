"""Modules that every other package may import: errors, settings, API schemas, URLs, text, locks and file formats."""
