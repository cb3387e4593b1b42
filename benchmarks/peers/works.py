# SPDX-License-Identifier: BSD-3-Clause
"""The works that are compared: parameters, unit, and the programs that do the same work."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: Module of each program's measurements by kind of work.
MODULES = {
    "lattice": "benchmarks.peers.lattice",
    "kspace": "benchmarks.peers.kspace",
    "waves": "benchmarks.peers.waves",
}


@dataclass(frozen=True)
class Work:
    """One work.

    Attributes:
        name: short name, for `--only`.
        kind: "lattice", "kspace" or "waves".
        text: description of the work.
        unit: unit of the figure.
        larger_is_better: whether the figure is a rate.
        programs: names of the programs that do this work; the first is Seiche.
        parameters: parameters of the work.
    """

    name: str
    kind: str
    text: str
    unit: str
    larger_is_better: bool
    programs: tuple[str, ...]
    parameters: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes, for a JSON file."""
        return asdict(self)


def lattice(edge: int, precision: str) -> Work:
    """Return sweeps of a periodic box of edge^3 sites, D3Q19, two relaxation times."""
    fluidx3d = ("fluidx3d",) if precision == "float32" else ()
    text = f"D3Q19, two relaxation times, dense periodic box of {edge}^3 sites, {precision}"
    parameters = {"edge": edge, "precision": precision}
    programs = ("seiche", "lbmpy", *fluidx3d)
    return Work(f"lattice-{edge}-{precision}", "lattice", text, "MLUPS", True, programs, parameters)


def kspace(size: int, physics: str) -> Work:
    """Return steps of the k-space method on size^3 points in FP32, with absorbing layers of 10 points."""
    media = {"full": "two nonlinear media with power-law absorption", "lossless": "two lossless media"}[physics]
    parameters = {"size": size, "physics": physics}
    programs = ("seiche", "k-wave-python", "k-wave-program")
    text = f"k-space, {size}^3 points, {media}, float32"
    return Work(f"kspace-{size}-{physics}", "kspace", text, "ms a step", False, programs, parameters)


def waves(edge: float) -> Work:
    """Return the wave of a volume source in a homogeneous fluid in a cube of `edge` shortest wavelengths."""
    text = (
        f"acoustic wave of a point source in a cube of {edge:g} shortest wavelengths, float32, each program at its "
        "coarsest grid with an error below 1 % at four receivers"
    )
    parameters = {"edge": edge, "bound": 0.01}
    return Work(f"waves-{edge:g}", "waves", text, "s a run", False, ("seiche", "devito"), parameters)


def works_of(device: str) -> list[Work]:
    """Return the works for a device, "cpu" or "cuda"."""
    if device == "cpu":
        sweeps = [lattice(192, "float32"), lattice(192, "float64")]
        return [*sweeps, kspace(64, "full"), kspace(66, "full"), kspace(128, "full"), waves(14.0)]
    sweeps = [lattice(256, "float32"), lattice(256, "float64")]
    return [*sweeps, kspace(256, "full"), kspace(384, "lossless"), kspace(384, "full"), waves(28.0)]
