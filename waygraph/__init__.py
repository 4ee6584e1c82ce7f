"""The front door: CLI, settings, errors, HTTP schemas and the Python SDK. Importing it needs neither torch nor ray."""
