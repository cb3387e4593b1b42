# SPDX-License-Identifier: BSD-3-Clause
"""Check against overwriting files that are not stored results of benchmarks or of `seiche validate`."""

from __future__ import annotations

from pathlib import Path

from seiche.io.files import check_output_folder, check_replaceable

#: First characters of benchmark results; `provenance` writes their first key.
BENCHMARK_START = '{\n "benchmark":'
#: First characters of results of `seiche validate`.
CHECKS_START = '{\n  "version":'


def check_output_path(path: Path | None, begin: str = BENCHMARK_START) -> None:
    """Reject an output path that holds other data or cannot be written, before any measurement.

    Args:
        path: file to write, or None.
        begin: first characters of files that may be replaced.

    Raises:
        CaseError: the path is rejected.
    """
    if path is not None:
        check_output_folder(path)
        check_replaceable_results(path, begin)


def check_replaceable_results(path: Path | None, begin: str) -> None:
    """Raise CaseError if the file to replace does not begin with `begin`.

    Raises:
        CaseError: the path is rejected.
    """
    if path is not None:
        message = f"{path} exists and contains other data; choose another file with --json"
        check_replaceable(path, begin, f"cannot write {path}", message)
