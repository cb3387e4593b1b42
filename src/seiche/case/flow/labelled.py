# SPDX-License-Identifier: BSD-3-Clause
"""Fields and records of a flow with dimensions, coordinates and units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.flow.monitor import Record
from seiche.case.flow.values import FIELDS
from seiche.case.labels import Labelled, LabelledParts, texts
from seiche.domain.sites import SiteSet

_AXES = ("x", "y", "z")
_COMPONENTS = {"component": _AXES, "stress_component": ("xx", "yy", "zz", "xy", "xz", "yz")}


def labelled_flow(sites: SiteSet, fields: Mapping[str, npt.NDArray[Any]], record: Record) -> LabelledParts:
    """Return `fields` on the grid of the sites, (x, y, z[, components]), and the records.

    The records are `flow_rate` (record_time, iolet) in m^3/s into the fluid, `mass` (check_time) in kg, and, for the
    bodies of [[output.force]], `wall_force` and `wall_torque` (record_time, body, component) in N and N m.
    """
    parts = {len(words): (name,) for name, words in _COMPONENTS.items()}
    arrays, coordinates = dict[str, Labelled](), dict[str, Labelled]()
    for name, values in fields.items():
        dims = _AXES + (parts[values.shape[3]] if values.ndim == 4 else ())
        arrays[name] = Labelled(values, dims, FIELDS[name][3])
        if len(dims) > 3:
            coordinates[dims[3]] = texts(_COMPONENTS[dims[3]], dims[3])
    for axis, start, count in zip(_AXES, sites.origin, sites.shape, strict=True):
        coordinates[axis] = Labelled(start + sites.spacing * np.arange(count), (axis,), "m")
    if record.times and (sites.iolets or record.forces):
        coordinates["record_time"] = Labelled(np.array(record.times), ("record_time",), "s")
    if record.times and sites.iolets:
        arrays["flow_rate"] = Labelled(np.stack(record.flows), ("record_time", "iolet"), "m^3/s")
        coordinates["iolet"] = texts([plane.name for plane in sites.iolets], "iolet")
    if record.times and record.forces:
        forces = np.stack([np.stack(values) for values in record.forces.values()], axis=1)
        for name, values, unit in (("wall_force", forces[..., :3], "N"), ("wall_torque", forces[..., 3:], "N m")):
            arrays[name] = Labelled(values, ("record_time", "body", "component"), unit)
        coordinates["body"], coordinates["component"] = texts(record.forces, "body"), texts(_AXES, "component")
    if record.masses:
        arrays["mass"] = Labelled(np.array(record.masses), ("check_time",), "kg")
        coordinates["check_time"] = Labelled(np.array(record.mass_times), ("check_time",), "s")
    return arrays, coordinates
