# SPDX-License-Identifier: BSD-3-Clause
"""Hints in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def nearest(word: object, names: Sequence[str], *, listing: bool = True) -> str:
    """Return a hint: the name closest to `word`, otherwise all `names` if `listing`, otherwise ""."""
    if not isinstance(word, str):
        return ""
    if close := difflib.get_close_matches(word[:60], names, n=1, cutoff=0.5):
        return f'; did you mean "{close[0]}"?'
    return f"; choose from {', '.join(names)}" if listing and 0 < len(names) < 20 else ""
