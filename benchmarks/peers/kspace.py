# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the k-space pseudospectral method: Seiche, k-wave-python, and the compiled program of k-Wave."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Literal

from benchmarks.peers.program import Place, Program, UnavailableError

Parameters = Mapping[str, Any]


def seiche(parameters: Parameters, place: Place) -> Program:
    """Return the exact scheme of Seiche in FP32."""
    import seiche as package
    from seiche.bench.ultrasound import problem_of, step_seconds
    from seiche.domain.world import World
    from seiche.ultrasound.solver import UltrasoundSolver

    problem = problem_of(parameters["size"], parameters["physics"])
    solver = UltrasoundSolver(problem, device=place.device, precision="float32", threads=place.threads)

    def measure() -> tuple[float, Mapping[str, Any]]:
        times, steps = step_seconds(solver, World.serial(), place.seconds / 3)
        return 1e3 * sorted(times)[len(times) // 2], {"steps": steps}

    return Program(package.__version__, measure)


def _kwave(parameters: Parameters, place: Place, engine: Literal["python", "cpp"]) -> Program:
    from seiche.bench import kwave
    from seiche.bench.ultrasound import problem_of
    from seiche.errors import CaseError

    try:
        kwave.check_installed()
    except CaseError as error:
        raise UnavailableError("pip install k-wave-python") from error
    problem = problem_of(parameters["size"], parameters["physics"])
    try:
        kwave.milliseconds(problem, "float32", place.device, engine)  # plans, kernels and pages are ready after it
    except FileNotFoundError as error:
        raise UnavailableError("the compiled program is not installed") from error
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise UnavailableError(f"{type(error).__name__}: {error}"[:200]) from error

    def measure() -> tuple[float, Mapping[str, Any]]:
        return kwave.milliseconds(problem, "float32", place.device, engine), {"engine": engine}

    return Program(version("k-wave-python"), measure)


def kwave_python(parameters: Parameters, place: Place) -> Program:
    """Return the solver of k-wave-python with NumPy, or with CuPy on a GPU."""
    return _kwave(parameters, place, "python")


def kwave_program(parameters: Parameters, place: Place) -> Program:
    """Return the compiled program (OMP or CUDA) that k-wave-python starts, if its file is there."""
    return _kwave(parameters, place, "cpp")


PROGRAMS = {"seiche": seiche, "k-wave-python": kwave_python, "k-wave-program": kwave_program}
