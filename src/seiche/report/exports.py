# SPDX-License-Identifier: BSD-3-Clause
"""Files of a run for other performance tools: `seiche report --talp` and `--otf2`."""

from __future__ import annotations

from pathlib import Path

from seiche.io.files import check_output_folder
from seiche.report.otf2_trace import find_trace, write_otf2
from seiche.report.summary import find_summary, read_summary, summary_errors
from seiche.report.talp import write_talp


def export(run: Path, *, talp: Path | None, otf2: Path | None) -> list[Path]:
    """Write the stages of `run` as TALP's JSON and its trace as an OTF2 archive, and return the paths.

    Args:
        run: folder of the run, or its summary file, which lies beside the trace.
        talp: file to write.
        otf2: new folder of the archive.

    Raises:
        CaseError: a summary or trace is missing, or another file would be replaced.
        FormatError: a file is invalid.
        OSError: a file cannot be read or written.
    """
    summary, written = find_summary(run), list[Path]()
    if talp is not None:
        check_output_folder(talp)
        with summary_errors(summary):
            write_talp(talp, read_summary(summary))
        written.append(talp)
    if otf2 is not None:
        written.append(write_otf2(find_trace(summary.parent), otf2))
    return written
