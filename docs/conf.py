# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: `make docs` builds the web pages and runs the scripts of the gallery."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent

project = "Seiche"
author = "The Seiche developers"
copyright = "the Seiche developers"
release = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = os.environ.get("DOCS_VERSION", release)

extensions = ["myst_parser", "sphinx_gallery.gen_gallery"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "gallery"]

html_theme = "furo"
html_title = "Seiche"
html_static_path = ["_static"]
html_css_files = ["seiche.css"]
html_js_files = ["versions.js"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "subsection_order": ["gallery/flow", "gallery/blood", "gallery/ultrasound", "gallery/waves"],
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (400, 280),
    "show_signature": False,
    "min_reported_time": 1,
    "reset_modules": ("matplotlib",),
}


def adapt_links(text: str, page: Path) -> str:
    """Return the text of a page with links for the web pages instead of those for the repository.

    - A script of the gallery, or its folder: the page that Sphinx-Gallery writes.
    - A folder of an example: its case file, or its script.
    - The README: the front page.
    """

    def adapted(match: re.Match[str]) -> str:
        target = (page.parent / match[1]).resolve()
        if target.is_relative_to(DOCS / "gallery"):
            folder, inside = target.parent, target.relative_to(DOCS / "gallery")
            name = f"{target.stem}.rst" if target.suffix == ".py" else "index.rst"
            written = DOCS / "auto_gallery" / (inside.parent if folder != DOCS / "gallery" else "") / name
            return f"]({os.path.relpath(written, page.parent)})"
        if target == DOCS.parent / "README.md":
            return f"]({os.path.relpath(DOCS / 'index.md', page.parent)})"
        if target.parent == DOCS.parent / "examples" and target.is_dir():
            files = [target / "case.toml", *sorted(target.glob("*.py"))]
            return f"]({os.path.relpath(next(file for file in files if file.exists()), page.parent)})"
        return match[0]

    return re.sub(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", adapted, text)


def _adapt_source(app: Any, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md":
        source[0] = adapt_links(source[0], page)


def setup(app: Any) -> None:
    """Connect the adaptation of links."""
    app.connect("source-read", _adapt_source)
