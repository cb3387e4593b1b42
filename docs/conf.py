# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: `pip install '.[docs]'`, then `sphinx-build -W docs docs/_build`."""

from __future__ import annotations

project = "Seiche"
author = "The Seiche developers"
copyright = "the Seiche developers"

extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "Seiche"
