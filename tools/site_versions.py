# SPDX-License-Identifier: BSD-3-Clause
"""List the versions of the web pages in a folder, one subfolder each.

    python -m tools.site_versions docs/_build/site

This writes `versions.json`, from which the pages fill their list of versions, and an `index.html` that leads to the
newest release, or to another version if there is none.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_INDEX = """<!doctype html>
<meta charset="utf-8">
<title>Seiche</title>
<meta http-equiv="refresh" content="0; url={name}/index.html">
<a href="{name}/index.html">Seiche {name}</a>
"""


def versions(site: Path) -> list[str]:
    """Return the names of the subfolders with pages: releases first, the newest of them first."""
    names = sorted(path.parent.name for path in site.glob("*/index.html"))
    releases = [name for name in names if re.fullmatch(r"\d+(\.\d+)*", name)]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    return releases + [name for name in names if name not in releases]


def write(site: Path) -> list[str]:
    """Write both files, and return the names.

    Raises:
        FileNotFoundError: no subfolder has an index.html.
    """
    names = versions(site)
    if not names:
        raise FileNotFoundError(f"{site}: no version has an index.html")
    (site / "versions.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_INDEX.format(name=names[0]), encoding="utf-8")
    return names


if __name__ == "__main__":
    print("versions:", ", ".join(write(Path(sys.argv[1]))))
