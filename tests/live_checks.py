# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the view of a run in progress, on any number of ranks."""

from __future__ import annotations

import numpy as np

from seiche.case.simulation import Simulation

CHANGES = {
    "flow": ("time={ steps = 20 }", "iolet.inlet.ramp=5", "output.record_every=5", "run.monitor_every=5"),
    "blood": ("time={ steps = 4 }", "run.monitor_every=2"),
    "ultrasound": ("grid={ shape = [64, 64], spacing = '0.2 mm', steps = 20 }",),
    "waves": ("time={ steps = 20 }", "output.receivers.every=2"),
}


def check_view(kind: str, simulation: Simulation) -> None:
    """Check that the plane and the curves of rank 0 have the values of the result (collective)."""
    parts = simulation.case_run.live_parts()
    plane, curves = parts.slice(300), {item.title: item for item in parts.curves()}
    result = simulation.result("velocity", "pressure", **({"shape": (300, 150)} if kind == "waves" else {}))
    if simulation.world.rank:
        assert plane is None
        return
    assert plane is not None
    field = np.asarray(result["pressure" if kind == "ultrasound" else "velocity"].values, np.float64)
    if kind in ("flow", "blood"):
        speed = np.linalg.norm(field, axis=-1)
        shape = simulation.setup.vessel.sites.shape
        normal = "xyz".index(plane.title.removeprefix("speed at ")[0])
        candidates = [np.take(speed, k, axis=normal) for k in range(shape[normal])]
        values = plane.values if plane.axes[0] < plane.axes[1] else plane.values.T
        finite = [part[np.ix_(*(np.isfinite(part).any(axis=1 - k) for k in range(2)))] for part in candidates]
        assert any(
            part.T.shape == values.shape and np.allclose(part.T, values, rtol=1e-6, atol=0, equal_nan=True)
            for part in finite
        )
    elif kind == "ultrasound":
        assert np.array_equal(plane.values, field.T)
    else:
        assert np.allclose(plane.values, field[..., 1].T, rtol=1e-4, atol=1e-6 * np.abs(field).max())
    for name, record in {
        "pressure at sensors": "p",
        "velocity y at receivers": "receiver_vy",
        "flow rate into the vessel": "flow_rate",
    }.items():
        if name in curves and record in result:
            item = result[record]
            time = item.dims.index("record_time")
            values = np.moveaxis(np.asarray(item.values), time, 0)
            shown = np.array(list(curves[name].series.values())).T
            chosen = np.unique(np.linspace(0, values.shape[1] - 1, shown.shape[1]).round().astype(int))
            assert np.allclose(shown, values[:, chosen], rtol=1e-6, atol=0)
            assert np.allclose(curves[name].times, result.coordinates["record_time"].values, rtol=1e-6)
    expected = {
        "flow": {"flow rate into the vessel"},
        "blood": {"hematocrit", "relative drift of mass"},
        "ultrasound": {"largest pressure"},
        "waves": {"velocity y at receivers", "largest velocity"},
    }
    assert expected[kind] <= set(curves)
