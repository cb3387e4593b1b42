# SPDX-License-Identifier: BSD-3-Clause
"""`python -m benchmarks.page [ROOT]` updates pages, figure and README."""

import sys
from pathlib import Path

from benchmarks.page.page import main

main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
