# SPDX-License-Identifier: BSD-3-Clause
"""Example scripts of k-wave-python, shortened, by Seiche's adapter and by the package's solver in Python.

The wheel and the source archive of the package contain no examples. SEICHE_KWAVE_EXAMPLES names their folder in a copy
of its repository. Every call of a script is computed by both solvers in a few steps; the script ends with its first.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import os
import runpy
import sys
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.ultrasound import kwave as adapter

pytestmark = pytest.mark.skipif(importlib.util.find_spec("kwave") is None, reason="k-wave-python is not installed")

FOLDER = os.environ.get("SEICHE_KWAVE_EXAMPLES", "")
SCRIPTS = sorted(Path(FOLDER).rglob("*.py")) if FOLDER else []
#: Largest numbers of steps, and of points times steps.
STEPS, WORK = 60, 1.5e7
#: Options of the package that do not concern the waves.
_UNUSED = ("backend", "device", "quiet", "debug", "num_threads", "device_num", "binary_path", "data_path", "save_only")

SCRIPT = """
import numpy as np
from kwave.kgrid import kWaveGrid
from kwave.kmedium import kWaveMedium
from kwave.ksensor import kSensor
from kwave.ksource import kSource
from kwave.kspaceFirstOrder import kspaceFirstOrder

grid = kWaveGrid([64, 60], [1e-4, 1e-4])
grid.makeTime(1500.0)
x, y = np.meshgrid(np.arange(64.0), np.arange(60.0), indexing="ij")
source, sensor = kSource(), kSensor()
source.p0 = 2.0 * (np.hypot(x - 30, y - 28) < 5)
sensor.mask = x == 40
medium = kWaveMedium(sound_speed=1500.0 + 100 * (x > 35), alpha_coeff=0.75, alpha_power=1.5)
kspaceFirstOrder(grid, medium, source, sensor, backend="cpp", pml_inside=True, smooth_p0=True)
raise AssertionError("the first call ends a script")
"""


class Compared(Exception):  # noqa: N818 (no error)
    """The end of a script: its first call has been compared."""


def shortened(objects: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """Return copies with fewer steps, whose sensor also records the final field."""
    grid, medium, source, sensor = copy.deepcopy(objects)
    most = int(np.clip(WORK / np.prod(np.atleast_1d(grid.N)), 4, STEPS))
    grid.setTime(min(int(grid.Nt), most), float(grid.dt))
    if sensor is not None:
        record = [name for name in (sensor.record or ["p"]) if name[0] in "pu"]
        sensor.record = list(dict.fromkeys([*record, "p_final"]))
        sensor.record_start_index = 1
    return grid, medium, source, sensor


def compared(solver: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Return a function that compares a call of the package's solver with that of the adapter."""

    def call(kgrid: Any, medium: Any, source: Any, sensor: Any = None, **options: Any) -> None:
        objects = shortened((kgrid, medium, source, sensor))
        used = {name: value for name, value in options.items() if name not in _UNUSED}
        try:
            expected = solver(*copy.deepcopy(objects), backend="python", device="cpu", quiet=True, **used)
        except Exception as error:  # for example with a newer SciPy than that of its requirements
            pytest.skip(f"the solver of the package fails: {type(error).__name__}: {error}")
        found = adapter.kspaceFirstOrder(*objects, **used)
        peak = np.abs(expected["p_final"]).max()
        for name in expected.keys() & found.keys():
            if name[0] == "p":
                difference = np.abs(np.asarray(found[name]) - np.asarray(expected[name])).max()
                assert difference < 1e-9 * peak, f"{name}: {difference / peak:.1e} of the peak"
        raise Compared

    return call


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the solver of the package, without the download that its import tries."""

    def offline(url: str, *_: Any, **__: Any) -> None:
        raise TimeoutError(url)

    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(urllib.request, "urlretrieve", offline)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("kwave.kspaceFirstOrder")
    monkeypatch.setattr(module, "kspaceFirstOrder", compared(module.kspaceFirstOrder))


@pytest.mark.filterwarnings("ignore")
def test_a_script_is_computed_by_both_solvers(package, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    with pytest.raises(Compared):
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.skipif(not SCRIPTS, reason="SEICHE_KWAVE_EXAMPLES names no folder with example scripts of k-wave-python")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_examples_agree_with_the_solver_in_python(script, package, monkeypatch, tmp_path):
    """Examples of other functions, such as the elastic ones and those of executables, have their own tests."""
    if "import kspaceFirstOrder\n" not in script.read_text():
        pytest.skip("does not call kspaceFirstOrder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.syspath_prepend(str(script.parent))
    with pytest.raises(Compared):
        runpy.run_path(str(script), run_name="__main__")
