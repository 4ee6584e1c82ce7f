"""How is the command line run without its entry point? `python -m waygraph`."""

import sys

from waygraph.cli import main

sys.exit(main())
