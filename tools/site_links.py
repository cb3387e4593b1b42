# SPDX-License-Identifier: BSD-3-Clause
"""Check that links and pictures of the built web pages lead to files and anchors that exist.

    python -m tools.site_links docs/_build/site/dev

Addresses of other sites are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and the addresses to which it refers."""

    def __init__(self, text: str) -> None:
        """Read the text of a page."""
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the identifiers and addresses of an element."""
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)
            elif value and ((name == "href" and tag in ("a", "link")) or name == "src"):
                self.addresses.append(value)


def broken(site: Path) -> list[str]:
    """Return the addresses in the pages of a folder that lead nowhere, as "page: address"."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    result = []
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            known = (
                pages.get(site / target.relative_to(site.resolve())) if target.is_relative_to(site.resolve()) else None
            )
            anchor_missing = bool(parts.fragment) and known is not None and unquote(parts.fragment) not in known.anchors
            if not target.is_file() or anchor_missing:
                result.append(f"{path.relative_to(site)}: {address}")
    return result


def main(site: Path) -> int:
    """Print broken addresses; return 1 if there are any."""
    addresses = broken(site)
    for address in addresses:
        print(address)
    print(f"{len(addresses)} broken links in {site}")
    return int(bool(addresses))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
