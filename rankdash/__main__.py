"""`python -m rankdash`: the command `rankdash`."""

import sys

from rankdash.app.command import main

if __name__ == "__main__":
    sys.exit(main())
