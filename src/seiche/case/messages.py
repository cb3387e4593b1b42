# SPDX-License-Identifier: BSD-3-Clause
"""Parts of messages about a case file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def nearest(word: object, names: Sequence[str], *, listing: bool = True) -> str:
    """Return a hint "; did you mean ..." for `word`, or the list of `names` when none is near (if `listing`)."""
    if not isinstance(word, str):
        return ""
    close = difflib.get_close_matches(word[:60], names, n=1, cutoff=0.5)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known are {', '.join(names)}" if listing and 0 < len(names) < 20 else ""
