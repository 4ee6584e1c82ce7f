"""Client of a running waygraph service, and the API that every source of maps implements."""
