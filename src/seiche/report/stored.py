# SPDX-License-Identifier: BSD-3-Clause
"""Refusal to overwrite files that are not stored results of benchmarks or of `seiche validate`."""

from __future__ import annotations

from pathlib import Path

from seiche.io.files import check_output_folder, check_replaceable

#: First characters of benchmark results; `heading` writes their first key.
BENCHMARK_START = '{\n "benchmark":'
#: First characters of results of `seiche validate`.
CHECKS_START = '{\n  "version":'


def refuse_output(path: Path | None, begin: str = BENCHMARK_START) -> None:
    """Refuse an output path that holds other data or cannot be written, before any measurement.

    Args:
        path: file to write, or None.
        begin: first characters of files that may be replaced.

    Raises:
        CaseError: the path is refused.
    """
    if path is not None:
        check_output_folder(path)
        check_replaceable_results(path, begin)


def check_replaceable_results(path: Path | None, begin: str) -> None:
    """Refuse to replace a file that does not begin with `begin`.

    Raises:
        CaseError: the path is refused.
    """
    if path is not None:
        refusal = f"{path} exists and contains other data; choose another file with --json"
        check_replaceable(path, begin, f"cannot write {path}", refusal)
