"""The Python SDK: `Waygraph`, maps of a store in this process, and `teleport` for Playwright pages."""
