"""`python -m rankdash`."""

import sys

from rankdash.cli import main

if __name__ == "__main__":
    sys.exit(main())
