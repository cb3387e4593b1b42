# SPDX-License-Identifier: BSD-3-Clause
"""`python -m benchmarks.page [ROOT]` brings pages, figure and README up to date."""

import sys
from pathlib import Path

from benchmarks.page.page import main

main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
