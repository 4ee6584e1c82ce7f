"""The online half: a Ray Serve application that answers agents over HTTP."""
