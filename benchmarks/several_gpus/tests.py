# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests of several ranks, on a GPU those marked `gpu`, and store how many passed."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from seiche.backend import open_backend
from seiche.bench.results import provenance, store


def main() -> int:
    """Run the tests, print and store the counts; return the status of pytest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tests", default="tests/distributed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    marker = "gpu" if options.device == "cuda" else "not gpu"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marker, f"--junitxml={report}"]
        status = subprocess.run([*words, options.tests]).returncode
        suite = ElementTree.parse(report).getroot()[0]
    counts = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    counts["passed"] = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    row = {
        "folder": options.tests,
        "marker": marker,
        **counts,
        "failed": failed,
        "seconds": float(suite.get("time", 0)),
    }
    device = open_backend(options.device).describe()
    store(options.json, {**provenance("tests on several ranks", device), "rows": [row]})
    print(", ".join(f"{value} {name}" for name, value in counts.items()))
    return status


if __name__ == "__main__":
    sys.exit(main())
