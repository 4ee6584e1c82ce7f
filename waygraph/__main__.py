"""Entry point of `python -m waygraph`, the same as the command `waygraph`."""

import sys

from waygraph.cli import main

sys.exit(main())
