"""The page that shows maps to people. Its sources are in `src/`; `make ui` builds them into `built/`."""
