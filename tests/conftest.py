# SPDX-License-Identifier: BSD-3-Clause
"""Adds this folder to the path, for its helper modules; defines the fixture `device`; runs tests on several ranks.

A test marked `ranks(1, 2, 3)` runs once on each of these numbers of ranks, and with `nodes=("1+1", "2+1")` also on
imitated nodes with these numbers of ranks (`distributed/nodes.py`); `one_host=True` keeps it from them. The ranks of a
job under mpiexec each execute its body (`World.from_mpi()` is then the job), and the test passes if it passes on all of
them. Subsequent tests reuse the job (`distributed/jobs.py`).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "distributed"))

# One thread by default: in small cases, a team of threads mostly waits, and on a busy machine it waits for occupied
# cores. Tests of threads set their number.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jobs
import launch
import nodes

# A busy machine, or the first import of a module, slows down one example. Tests do not assert times.
settings.register_profile("seiche", deadline=None)
settings.load_profile("seiche")


def has_gpu() -> bool:
    """Return whether CuPy is installed and a device exists."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return int(cupy.cuda.runtime.getDeviceCount()) > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `device` with its two values, and a test marked `ranks` with its numbers of ranks."""
    parametrized = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "device" in metafunc.fixturenames and "device" not in parametrized:
        only_gpu = metafunc.definition.get_closest_marker("gpu") is not None
        devices = ["cuda"] if only_gpu else ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
        metafunc.parametrize("device", devices, indirect=True)
    marker = metafunc.definition.get_closest_marker("ranks")
    if marker is not None:
        metafunc.fixturenames += ["ranks", "node_layout"]
        on_nodes = [pytest.param(sum(nodes.sizes_of(item)), item, id=item) for item in marker.kwargs.get("nodes", ())]
        everywhere = os.environ.get(nodes.NODES)
        numbers = [number for number in marker.args if number > 1 or not everywhere]
        layout = "" if marker.kwargs.get("one_host") else None
        places = [pytest.param(number, layout, id=str(number)) for number in numbers] + ([] if everywhere else on_nodes)
        metafunc.parametrize(("ranks", "node_layout"), places)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `nightly` unless they are selected by that mark."""
    if "nightly" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("nightly") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """Return "cpu" or "cuda", the latter only where there is a GPU."""
    if request.param == "cuda" and not has_gpu():
        pytest.skip("no GPU with CuPy")
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test marked `ranks` on the ranks of a job, unless this process is one of them."""
    marker = pyfuncitem.get_closest_marker("ranks")
    if marker is None or os.environ.get(launch.IN_JOB):
        return None
    ranks, layout = (pyfuncitem.callspec.params[name] for name in ("ranks", "node_layout"))
    words = pyfuncitem.nodeid, pyfuncitem.config.rootpath
    launch.on_job(ranks, "node", *words, timeout=270.0, layout=layout)  # less than that of pytest
    return True


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End the jobs that a test of GPUs used, because waiting jobs occupy memory of the device."""
    if item.get_closest_marker("gpu") is not None and has_gpu():
        jobs.end_all()


def pytest_unconfigure() -> None:
    """End the jobs that wait for further tests."""
    jobs.end_all()
