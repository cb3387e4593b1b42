# SPDX-License-Identifier: BSD-3-Clause
"""Compare the time of each hot kernel with that of another commit, which is built beside this one.

    make bench-guard                                 # against the previous commit, on the CPU
    make bench-guard AGAINST=v0.2.0 DEVICE=cuda:0 CASES='flow*'

Each case of `seiche.bench.hot_kernels` runs in two processes, one for each version, and the two are timed alternately.
Of each stage the minimum counts. A stage that takes a negligible part of a step is ignored. Where this version seems
slower by more than the limit, the case is timed again, since other processes on the machine can only make a minimum
larger. The exit status is 1 if a stage stays slower, and its name is printed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Relative loss of speed that is reported, and part of a step below which a stage is ignored.
LIMIT, NEGLIGIBLE = 0.05, 0.03
#: Rounds of alternating measurements, at most this many times as many for a stage that seems slower, and steps in each.
ROUNDS, REPETITIONS, STEPS = 5, 4, 8

#: Seconds by stage of one measurement.
Seconds = Mapping[str, float]


def build(commit: str, folder: Path) -> Path:
    """Install `commit` below `folder`, unless it is there already; return the folder of its packages."""
    name = subprocess.run(
        ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    packages = folder / name / "packages"
    complete = folder / name / "complete"
    if not complete.exists():
        source = folder / name / "source"
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", name], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        print(f"building {name[:12]}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--upgrade", "--target", str(packages), str(source)], check=True)
        complete.touch()
    return packages


class Version:
    """A process that times the cases of one version."""

    def __init__(self, packages: Path | None, device: str) -> None:
        """Start the process; without `packages` it uses the installed version."""
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        if packages is not None:
            environment["PYTHONPATH"] = str(packages)
        command = [sys.executable, "-m", "seiche.bench.hot_kernels", device]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, text=True, env=environment, **pipes)  # type: ignore[call-overload]

    def ask(self, command: str) -> object:
        """Return the answer to a command.

        Raises:
            SystemExit: the process has ended.
        """
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"bench-guard: a version cannot run {command!r}: see its error above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


def slower(this: Seconds, other: Seconds) -> dict[str, float]:
    """Return, for each stage of both that is slower than the limit allows, the ratio of its times.

    Stages that only one version has, because they were divided or renamed, are compared together, as the rest.
    """
    step = sum(other.values())
    common = [name for name in this if name in other]
    pairs = {name: (this[name], other[name]) for name in common}
    rest = sum(this.values()) - sum(this[name] for name in common), step - sum(other[name] for name in common)
    if rest[1] > 0:
        pairs["stages with other names"] = rest
    return {
        name: new / old
        for name, (new, old) in pairs.items()
        if max(new, old) > NEGLIGIBLE * step and new > (1 + LIMIT) * old
    }


def compare(
    this: Callable[[], Seconds], other: Callable[[], Seconds], prepare: Callable[[], None] = lambda: None
) -> tuple[Seconds, Seconds, dict[str, float]]:
    """Time two versions alternately; return the minima of both, and the stages that are slower in this one.

    `prepare` is called before each repetition. It allocates the arrays again, since their addresses affect the speed.
    """
    best: tuple[dict[str, float], dict[str, float]] = ({}, {})
    found: dict[str, float] = {}
    for _ in range(REPETITIONS):
        prepare()
        for round_index in range(ROUNDS):
            order = (0, 1) if round_index % 2 else (1, 0)
            for index in order:
                for name, seconds in (this, other)[index]().items():
                    best[index][name] = min(seconds, best[index].get(name, seconds))
        found = slower(*best)
        if not found:
            break
    return *best, found


def main() -> int:
    """Compare all selected cases; return 1 if a stage is slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default="HEAD~1", help="the other commit")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", default="*", help="pattern of the names of cases")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench-guard")
    options = parser.parse_args()
    versions = [Version(packages, options.device) for packages in (None, build(options.against, options.folder))]
    here, there = (set(version.ask("cases")) for version in versions)  # type: ignore[call-overload]
    failures = []
    for case in sorted(name for name in here & there if fnmatch.fnmatch(name, options.cases)):

        def prepare(case: str = case) -> None:
            for version in versions:
                version.ask(f"open {case}")

        timings = [lambda version=version: version.ask(f"time {STEPS}") for version in versions]
        this, other, found = compare(*timings, prepare)  # type: ignore[arg-type]
        new, old = sum(this.values()), sum(other.values())
        print(f"{case:<40} {new * 1e3:9.3f} ms a step, {new / old - 1:+7.1%}", flush=True)
        failures += [f"{case}: {name}: {ratio - 1:+.1%}" for name, ratio in found.items()]
    for version in versions:
        version.close()
    for line in failures:
        print(f"slower: {line}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
