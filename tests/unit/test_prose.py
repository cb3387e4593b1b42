# SPDX-License-Identifier: BSD-3-Clause
"""The length of sentences in the pages: none above 40 words, and a median below 18 on every page."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LONGEST = 40
MEDIAN = 18
#: Pages with fewer sentences have no meaningful median.
FEW = 8
#: Parts of a page that are not prose: fenced blocks, comments for tools, displayed equations.
NOT_PROSE = (r"```.*?```", r"<!--.*?-->", r"\$\$.*?\$\$")


def paragraphs(text: str) -> list[str]:
    """Return paragraphs, items of lists, and the parts of cells of tables between semicolons or colons."""
    for pattern in NOT_PROSE:
        text = re.sub(pattern, "\n\n", text, flags=re.DOTALL)
    result: list[list[str]] = [[]]
    for line in (line.strip() for line in text.splitlines()):
        item = re.match(r"(?:[-*]|\d+\.)\s+", line)
        if line.startswith("|"):
            result += [[part] for part in re.split(r"[|;:]\s", line.strip("|"))] + [[]]
        elif not line or line.startswith(("#", "![")):
            result.append([])
        elif item:
            result.append([line[item.end() :]])
        else:
            result[-1].append(line)
    return [" ".join(lines) for lines in result if lines]


def sentences(page: str) -> list[str]:
    """Return the sentences of a page; code and formulas count as one word, addresses of links as none."""
    result = []
    for paragraph in paragraphs(page):
        plain = re.sub(r"\]\([^)]*\)", "]", paragraph)
        plain = re.sub(r"`[^`]*`", "Code", plain)
        plain = re.sub(r"\$[^$]*\$", "Formula", plain)
        result += re.split(r"(?<=[.!?])\s+", plain)
    return [sentence for sentence in result if length(sentence) > 3]


def length(sentence: str) -> int:
    """Return the number of words; numbers are words."""
    return len(re.findall(r"[A-Za-z0-9][\w'./-]*", sentence))


def test_sentences_are_split_at_stops_and_counted_in_words() -> None:
    page = "# A title\n\nOne two three four. Five `a b` $x y$ [seven](a/b.md) eight.\n\n- one two\n  three four; five\n"
    assert [length(sentence) for sentence in sentences(page)] == [4, 5, 5]
    assert sentences("| a b c d | one |\n```\nno prose at all here\n```\n<!-- nor is this one -->") == [" a b c d "]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_sentences_of_pages_are_short(page: Path) -> None:
    result = sentences(page.read_text())
    long = [sentence for sentence in result if length(sentence) > LONGEST]
    assert not long, f"{len(long)} sentences have more than {LONGEST} words, the first is: {long[0]}"
    if len(result) >= FEW:
        middle = median(length(sentence) for sentence in result)
        assert middle < MEDIAN, f"the median length is {middle} words"
