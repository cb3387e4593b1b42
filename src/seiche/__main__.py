# SPDX-License-Identifier: BSD-3-Clause
"""`python -m seiche` is the command `seiche`."""

import sys

from seiche.cli import main

if __name__ == "__main__":
    sys.exit(main())
