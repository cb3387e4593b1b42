# SPDX-License-Identifier: BSD-3-Clause
"""The marked blocks of the pages of documentation; `unit/test_docs.py` explains the marks."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"<!-- (runnable|file|append|kernel|registry)(?:: (.*?))? -->\n```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str, str]]:
    """Return (mark, argument, language, text) of every marked block."""
    return [(m[1], m[2] or "", m[3], m[4]) for m in _BLOCK.finditer(page.read_text())]


def one_block(page: str, mark: str) -> str:
    """Return the text of the only block of `page` with `mark`."""
    (text,) = [text for kind, _, _, text in blocks(ROOT / page) if kind == mark]
    return text


def write_files(page: str, folder: Path) -> None:
    """Write the files that `page` shows to `folder`."""
    for mark, name, _, text in blocks(ROOT / page):
        if mark == "file":
            (folder / name).write_text(text)
