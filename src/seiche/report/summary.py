# SPDX-License-Identifier: BSD-3-Clause
"""`summary.json`: results, hardware, speed and accuracy of a run, for other programs.

The keys are those of `Summary`, described in docs/reference/summary.md. Numbers that are not finite become null.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from seiche.errors import CaseError, FormatError
from seiche.io.files import replacing
from seiche.report.table import StageRow

#: Schema version, increased when a key changes its meaning.
SCHEMA = "seiche-summary-1"

#: Former keys of `movement`.
_FORMER_KEYS = {"beside": "host_overhead", "not_useful": "message_stages"}

_PACKAGES = ("seiche", "numpy", "scipy", "h5py", "mpi4py", "mpich", "cupy-cuda13x", "cupy-cuda12x")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages of `_PACKAGES`."""
    installed = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


@dataclass(frozen=True)
class Summary:
    """The content of `summary.json`; SI units unless a key names another unit.

    Attributes:
        case: name of the case.
        device: name of the processor or GPU.
        ranks: number of processes.
        threads: CPU threads of each process.
        layout: storage layout of the populations.
        precision: compute and storage type, as in "float64/float32".
        sites: fluid sites (or points, or nodes) of all ranks.
        solver: "flow", "blood", "ultrasound" or "waves".
        item: kind of item that `sites` counts.
        steps: number of steps.
        seconds: wall seconds of the steps, output included.
        copy_bandwidth: measured bandwidth of a copy, bytes per second; None if it was not measured.
        stages: rows of the stage table.
        set_up: seconds of the stages of the set-up, of the slowest rank each.
        invariants: conserved or bounded quantities (mass drift, largest Mach number ...), by name.
        flow_rates: volume flow in m^3/s into the fluid at the end, by iolet.
        efficiency: load balance, communication, parallel efficiency and their factors, 0..1.
        movement: the data of the efficiencies by rank: seconds, messages, memory.
        estimates: numbers about accuracy and stability with their bounds; `warning` is not None if a bound is violated.
        details: further values of a case.
        finished: whether the run reached its last step.
        stopped: reason for an early end, None otherwise.
        date: UTC, ISO 8601.
        versions: of Python and packages.
        schema: version of these keys.
    """

    case: str
    device: str
    sites: int
    steps: int
    seconds: float
    ranks: int = 1
    threads: int = 1
    solver: str = "flow"
    item: str = "sites"
    layout: str = ""
    precision: str = ""
    copy_bandwidth: float | None = None
    stages: Sequence[StageRow] = ()
    set_up: Mapping[str, float] = field(default_factory=dict)
    invariants: Mapping[str, float] = field(default_factory=dict)
    flow_rates: Mapping[str, float] = field(default_factory=dict)
    efficiency: Mapping[str, Any] = field(default_factory=dict)
    movement: Mapping[str, Any] = field(default_factory=dict)
    estimates: Sequence[Mapping[str, Any]] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    finished: bool = True
    stopped: str | None = None
    date: str = field(default_factory=_now)
    versions: Mapping[str, str] = field(default_factory=versions)
    schema: str = SCHEMA

    @property
    def mlups(self) -> float:
        """Return the million site updates per wall second."""
        return self.sites * self.steps / self.seconds * 1e-6 if self.seconds > 0 else 0.0

    @property
    def mass_balance(self) -> float | None:
        """Return net inflow over the sum of the magnitudes of `flow_rates`, None without flow."""
        total = sum(abs(rate) for rate in self.flow_rates.values())
        return sum(self.flow_rates.values()) / total if total > 0 else None


def content_of(summary: Summary) -> dict[str, Any]:
    """Return the content of the file as JSON values."""
    content = {item.name: _plain(getattr(summary, item.name)) for item in fields(summary)}
    content |= {"mlups": summary.mlups, "mass_balance": summary.mass_balance}
    leading_keys = ("schema", "date", "case", "solver", "device", "sites", "item", "steps", "seconds", "mlups")
    return {name: content[name] for name in leading_keys} | content


def write_summary(path: str | os.PathLike[str], summary: Summary) -> None:
    """Write `summary` as JSON; it replaces an existing file when it is complete.

    Raises:
        TypeError: a value of `details` cannot be stored as JSON.
        OSError: the file cannot be written.
    """
    text = json.dumps(content_of(summary), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a `summary.json`.

    Raises:
        FormatError: not a summary.
        OSError: the file cannot be read.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        expected = "expected the output folder of a run, or its summary.json"
        raise FormatError(path, "text", f"not a summary of a run (not JSON: {error}); {expected}") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise FormatError(path, "key 'schema'", f"{schema!r}, expected {SCHEMA!r}")
    movement = content.get("movement")
    if isinstance(movement, dict):
        content["movement"] = {_FORMER_KEYS.get(key, key): value for key, value in movement.items()}
    return content


@contextmanager
def summary_errors(*paths: Path) -> Iterator[None]:
    """Convert errors of a block that reads summaries to one line with their paths.

    Raises:
        FormatError: a value is missing or has a wrong type.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        names = " or ".join(map(str, paths))
        raise FormatError(names, "content", f"not a valid summary: {reason}") from error


def find_summary(run: str | os.PathLike[str]) -> Path:
    """Return the summary of a run: the file itself, `summary.json` in a folder, or the only summary there.

    Raises:
        CaseError: there is no summary, or several.
    """
    path = Path(run)
    if path.is_file():
        return path
    if not path.is_dir():
        raise CaseError(f"{path}: expected the folder or the summary of a run")
    if (path / "summary.json").is_file():
        return path / "summary.json"
    summaries = []
    for candidate in sorted(path.glob("*.json")):
        with suppress(FormatError, OSError):
            read_summary(candidate)
            summaries.append(candidate)
    if len(summaries) != 1:
        names = ", ".join(candidate.name for candidate in summaries) or "none"
        raise CaseError(f"{path}: expected one summary of a run, found {names}")
    return summaries[0]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value
