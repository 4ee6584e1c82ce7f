"""The offline half of waygraph: exploring websites, encoding their states and publishing maps."""
