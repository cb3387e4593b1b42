# SPDX-License-Identifier: BSD-3-Clause
"""The commit that stored results name as their origin."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def commit() -> str:
    """Return the commit of the working tree, with "-dirty" if it differs, or "unknown".

    SEICHE_COMMIT overrides it, for copies outside the repository.
    """
    override = os.environ.get("SEICHE_COMMIT")
    if override:
        return override
    try:
        process = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return process.stdout.strip()
