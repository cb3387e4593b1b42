# SPDX-License-Identifier: BSD-3-Clause
"""Components of self-contained pages: no scripts, no network access, readable on a phone."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from html import escape as escape

from seiche.io import files
from seiche.report.style import COLORS as COLORS

#: First lines of every page; only files that begin with them are replaced.
_FIRST_LINES = "<!doctype html>\n<!-- seiche report -->\n"

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 60rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, th.words { text-align: left; }
td.words { white-space: normal; text-align: left; min-width: 14rem; }
@media (max-width: 40rem) {
  .wordy thead { display: none; }
  .wordy tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); padding: .2rem 0; }
  .wordy td { border: 0; }
  .wordy td[data-head]:not(:empty)::before { content: attr(data-head) " "; opacity: .7; }
  .wordy td:first-child { flex: 1 0 100%; font-weight: 600; }
  .wordy td.words { flex: 1 0 100%; min-width: 0; }
}
.cards { display: flex; flex-wrap: wrap; gap: .5rem; margin: .75rem 0; padding: 0; list-style: none; }
.cards li { background: var(--soft); border-radius: .4rem; padding: .4rem .7rem; flex: 1 1 8rem; }
.cards b { display: block; font-size: 1.15rem; overflow-wrap: anywhere; }
.bar { display: flex; height: 1.2rem; border-radius: .2rem; overflow: hidden; background: var(--soft); }
.bar span { display: block; min-width: 0; }
.row { display: grid; grid-template-columns: minmax(5rem, 9rem) 1fr 5rem; gap: .5rem; }
.row { align-items: center; margin: .15rem 0; }
.row small { text-align: right; white-space: nowrap; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; margin: .4rem 0; padding: 0; }
.key { list-style: none; }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin-right: .35rem; }
svg { width: 100%; max-width: 36rem; height: auto; display: block; }
img { max-width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
svg .axis { stroke: currentColor; stroke-opacity: .35; fill: none; }
svg .roof { stroke: currentColor; stroke-width: 2; fill: none; }
footer { margin-top: 2rem; font-size: .85rem; opacity: .75; }
"""


def page(title: str, body: Iterable[str]) -> str:
    """Return the complete text of a page."""
    head = (
        f'{_FIRST_LINES}<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(body) + "\n</body>\n</html>\n"


def section(title: str, *parts: str) -> str:
    """Return a section with a heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def cards(pairs: Iterable[tuple[str, str]]) -> str:
    """Return values with their names, in a row if there is space."""
    items = "".join(f"<li>{escape(name)}<b>{escape(value)}</b></li>" for name, value in pairs)
    return f'<ul class="cards">{items}</ul>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], text_columns: Sequence[int] = ()) -> str:
    """Return a table that scrolls if it is too wide; `text_columns` are the indices of those with sentences.

    On a narrow screen, sentences are shown below the numbers of their row.
    """
    header = "".join(
        f'<th class="words">{escape(name)}</th>' if k in text_columns else f"<th>{escape(name)}</th>"
        for k, name in enumerate(head)
    )
    lines = []
    for row in rows:
        cells = []
        for k, (name, cell) in enumerate(zip(head, row, strict=True)):
            kind = f' data-head="{escape(name)}"' if text_columns and k else ""
            kind = ' class="words"' if k in text_columns else kind
            cells.append(f"<td{kind}>{escape(cell)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    kind, body = ' class="wordy"' if text_columns else "", "".join(lines)
    return f'<div class="scroll"><table{kind}><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def bars(rows: Iterable[tuple[str, Sequence[float], str]], names: Sequence[str], total: float) -> str:
    """Return a legend and one bar per row: label, values of `names` as fractions of `total`, and a note."""
    colors = [COLORS[k % len(COLORS)] if k < len(COLORS) else "#8888" for k in range(len(names))]
    legend = "".join(
        f'<li><i style="background:{color}"></i>{escape(name)}</li>' for name, color in zip(names, colors, strict=True)
    )
    lines = []
    for label, values, note in rows:
        parts = "".join(
            f'<span style="width:{100 * value / total:.3f}%;background:{color}"'
            f' title="{escape(name)}: {number(value)}"></span>'
            for name, value, color in zip(names, values, colors, strict=True)
            if value > 0 and total > 0
        )
        lines.append(
            f'<div class="row"><span>{escape(label)}</span><div class="bar">{parts}</div>'
            f"<small>{escape(note)}</small></div>"
        )
    return f'<ul class="key">{legend}</ul>' + "".join(lines)


def png(data: bytes, text: str) -> str:
    """Return a picture that is part of the page; `text` is shown in its place by readers without pictures."""
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(data).decode()}">'


def number(value: float, digits: int = 3) -> str:
    """Return a number with at least `digits` digits, without exponent below a billion."""
    return f"{value:,.0f}" if 10**digits - 0.5 <= abs(value) < 1e9 else f"{value:.{digits}g}"


def share(value: float) -> str:
    """Return a fraction in percent."""
    return f"{value:.1%}" if value < 0.1 else f"{value:.0%}"


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Reject a path with a file that is not a report.

    Raises:
        CaseError: there is such a file.
    """
    message = f"{path} exists and is not a report; choose another file with --output"
    files.check_replaceable(path, _FIRST_LINES, f"cannot write {path}", message)


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page; it replaces an existing report when it is complete.

    Raises:
        CaseError: the existing file is not a report.
        OSError: the file cannot be written.
    """
    check_replaceable(path)
    with files.replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
