# SPDX-License-Identifier: BSD-3-Clause
"""Work before the first step that runs beside other work: the context of a GPU, modules of figures."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import seiche
from seiche.backend import cuda, prepare_device
from seiche.case.output import Final
from seiche.errors import BackendUnavailable
from seiche.report.style import FIGURE_MODULES
from seiche.start import rare_collections


class FakeError(Exception):
    """An error of the runtime."""


def fake_cupy(used: list[object], count: int = 2, failing: bool = False) -> SimpleNamespace:
    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None:
            used.append(self.number)

        def __exit__(self, *_: object) -> None:
            used.append("left")

    def free(pointer: int) -> None:
        if failing:
            raise FakeError("out of memory")
        used.append(("free", pointer))

    numbers: list[int] = []  # GPU 1 is free
    runtime = SimpleNamespace(getDeviceCount=lambda: count, free=free, CUDARuntimeError=FakeError)
    runtime.setDevice, runtime.memGetInfo = numbers.append, lambda: (90 if numbers[-1] == 1 else 10, 100)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=Device))


@pytest.mark.parametrize(("name", "local_rank", "number"), [("cuda", 3, 1), ("cuda:0", 3, 0), ("cuda:free", 0, 1)])
def test_a_thread_creates_the_context_of_the_gpu_of_the_rank(
    monkeypatch: pytest.MonkeyPatch, name: str, local_rank: int, number: int
) -> None:
    used: list[object] = []
    monkeypatch.setattr(cuda, "_cupy", lambda: fake_cupy(used))
    thread = prepare_device(name, local_rank)
    assert thread is not None
    thread.join()
    assert used == [number, ("free", 0), "left"]


@pytest.mark.parametrize("name", ["cpu", "cpu:planned", "cuda:planned"])
def test_other_devices_need_no_thread(name: str) -> None:
    assert prepare_device(name) is None


def test_an_unusable_gpu_is_reported_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_cupy", lambda: fake_cupy([], failing=True))
    with pytest.raises(BackendUnavailable, match="cuda:0 cannot be used: out of memory"):
        cuda.create_context(0, 0)
    thread = prepare_device("cuda:0")
    assert thread is not None
    thread.join()  # without a message


def test_the_modules_of_a_figure_are_all_that_a_first_figure_imports(tmp_path: Path) -> None:
    code = f"""
import importlib, sys
for name in {FIGURE_MODULES!r}:
    importlib.import_module(name)
from seiche.report.figures import profile_figure
before = set(sys.modules)
profile_figure({str(tmp_path / "figure.png")!r}, exact=([0, 1], [0, 1]), measured={{"a": ([0, 1], [0, 1])}},
    x_label="x", y_label="y")
print(sum(sys.modules[name].__spec__ is not None for name in set(sys.modules) - before))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 12


def test_collections_are_as_frequent_as_before_after_the_imports() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_modules_of_outputs_are_imported_once_while_the_host_waits_for_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Drawn(Final):
        modules = ("figures", "fonts")

    (tmp_path / "case.toml").write_text("""
solver = "flow"
geometry = { spacing = "1 mm", shape = { kind = "box", size = ["8 mm", "8 mm", "8 mm"] } }
fluid = { viscosity = "4 mPa s" }
lattice = { tau = 0.8 }
time = { steps = 40 }
""")
    imported: list[str] = []
    monkeypatch.setattr("seiche.case.outputs.import_module", imported.append)
    for idle, expected in ((1e9, []), (-1.0, ["figures", "fonts"])):
        monkeypatch.setattr("seiche.case.loop.IDLE_SECONDS", idle)
        with seiche.load(tmp_path / "case.toml", output=tmp_path / str(idle)) as simulation:
            simulation.add(Drawn())
            simulation.run()
        assert imported == expected
