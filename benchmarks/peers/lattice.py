# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps of the lattice-Boltzmann method in a dense periodic box: Seiche, lbmpy, FluidX3D."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.program import Place, Program, UnavailableError

Parameters = Mapping[str, Any]


def rate(sweep: Callable[[int], None], sites: int, seconds: float) -> float:
    """Return millions of updates per second of `sweep(steps)`, which returns when the steps are complete."""
    steps = 2
    while True:
        begin = time.perf_counter()
        sweep(steps)
        elapsed = time.perf_counter() - begin
        if elapsed > 0.5 * seconds:
            return sites * steps / elapsed / 1e6
        steps = max(2 * steps, 2 * int(0.5 * steps * seconds / max(elapsed, 1e-6)))


def seiche(parameters: Parameters, place: Place) -> Program:
    """Return the fastest layout of Seiche with two relaxation times."""
    import seiche as package
    from seiche.bench.flow import box_case, fill_random, model_of
    from seiche.flow.model import Newtonian, Precision
    from seiche.flow.solver import FlowSolver

    edge, precision = parameters["edge"], Precision(parameters["precision"], parameters["precision"])
    sites = box_case(edge)
    model = model_of(sites, Newtonian(1 / 12))
    solver = FlowSolver(sites, model, precision=precision, device=place.device, threads=place.threads)
    fill_random(solver)
    solver.timers.every = 1 << 30

    def sweep(steps: int) -> None:
        solver.start(steps)
        solver.finish()

    sweep(66)  # kernels are compiled, pages are placed
    details = {"layout": solver.layout}
    return Program(package.__version__, lambda: (rate(sweep, edge**3, place.seconds), details))


def lbmpy(parameters: Parameters, place: Place) -> Program:
    """Return the in-place (AA) sweep of lbmpy, vectorised; without the exchange of its periodic boundaries."""
    try:
        import pystencils
        from lbmpy import LBMConfig, LBMOptimisation, LBStencil, Method, Stencil, create_lb_update_rule
        from lbmpy.advanced_streaming import Timestep
    except ImportError as error:
        raise UnavailableError("pip install lbmpy") from error
    edge, precision = parameters["edge"], parameters["precision"]
    extent = edge + 2  # with a layer of ghosts
    field = pystencils.fields(f"pdfs(19): {precision}[{extent},{extent},{extent}]", layout="fzyx")
    target = pystencils.Target.CUDA if place.on_gpu else pystencils.Target.auto_cpu()
    kernels = []
    for timestep in (Timestep.EVEN, Timestep.ODD):
        method = LBMConfig(
            stencil=LBStencil(Stencil.D3Q19),
            method=Method.TRT,
            relaxation_rates=[4 / 3, 0.8],  # tau 0.75, product of tau - 1/2 of both: 3/16
            compressible=False,
            zero_centered=True,
            streaming_pattern="aa",
            timestep=timestep,
        )
        options = LBMOptimisation(symbolic_field=field, field_layout="fzyx")
        rule = create_lb_update_rule(lbm_config=method, lbm_optimisation=options)
        config = pystencils.CreateKernelConfig(target=target, default_dtype=precision, ghost_layers=1)
        if not place.on_gpu:
            config.cpu.openmp.enable, config.cpu.openmp.num_threads = True, place.threads
            config.cpu.vectorize.enable = config.cpu.vectorize.assume_inner_stride_one = True
        kernels.append(pystencils.create_kernel(rule, config).compile())
    storage = 1e-3 * np.random.default_rng(1).random((19, extent, extent, extent), dtype=precision)
    wait: Callable[[], object] = lambda: None  # noqa: E731
    if place.on_gpu:
        import cupy

        storage, wait = cupy.asarray(storage), cupy.cuda.get_current_stream().synchronize
    populations = storage.transpose(3, 2, 1, 0)  # x is contiguous

    def sweep(steps: int) -> None:
        for _ in range(steps // 2):
            for kernel in kernels:
                kernel(pdfs=populations)
        wait()

    sweep(2)
    return Program(version("lbmpy"), lambda: (rate(sweep, edge**3, place.seconds), {"target": str(target)}))


def fluidx3d(parameters: Parameters, place: Place) -> Program:
    """Return the benchmark of FluidX3D, a program that the user has built; its box is that of the build."""
    path = os.environ.get("FLUIDX3D")
    if not path or not Path(path).is_file():
        raise UnavailableError("set FLUIDX3D to a build of its benchmark")
    if not place.on_gpu:
        raise UnavailableError("FluidX3D is compared on GPUs only")

    def measure() -> tuple[float, Mapping[str, Any]]:
        done = subprocess.run([path], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        found = re.findall(r"Peak MLUPs/s\s*=\s*([0-9.]+)", done.stdout)
        if not found:
            raise RuntimeError(f"{path} printed no peak: {done.stdout[-300:]}")
        return float(found[-1]), {}

    return Program(Path(path).name, measure)


PROGRAMS = {"seiche": seiche, "lbmpy": lbmpy, "fluidx3d": fluidx3d}
