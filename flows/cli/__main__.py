"""``python -m flows.cli``: the same as ``uom-sandbox``."""

from __future__ import annotations

import sys

from flows.cli import main

if __name__ == "__main__":
    sys.exit(main())
