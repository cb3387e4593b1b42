# SPDX-License-Identifier: BSD-3-Clause
"""A HemoCell case of one cell type, as texts of its files."""

from __future__ import annotations

from pathlib import Path

from stl_files import openscad_tube

_DOMAIN = {
    **{"geometry": "tube.stl", "rhoP": "1025", "nuP": "1.1e-6", "dx": "1e-6", "dt": "1e-7", "refDir": "1"},
    **{"refDirN": "20", "kBT": "4.142e-21", "Re": "0.5"},
}
_SIM = {"tmax": "1000", "tmeas": "500", "tcheckpoint": "200"}
_CELL = {
    **{"name": "RBC", "eta_m": "0.0", "kBend": "80.0", "kVolume": "20.0", "kArea": "5.0", "kLink": "15.0"},
    **{"minNumTriangles": "600", "radius": "3.91e-6", "Volume": "90"},
}


def _elements(values: dict[str, str]) -> str:
    return "".join(f"<{name}> {value} </{name}>\n" for name, value in values.items())


def write_hemocell(folder: Path) -> None:
    """Write config.xml, RBC.xml, RBC.pos and tube.stl into a folder."""
    parts = f"<domain>{_elements(_DOMAIN)}</domain><sim>{_elements(_SIM)}</sim>"
    texts = {
        "config.xml": f"<hemocell>{parts}</hemocell>",
        "RBC.xml": f"<hemocell><MaterialModel>{_elements(_CELL)}</MaterialModel></hemocell>",
        "RBC.pos": "1\n10 11 11 0 0 0\n",
        "tube.stl": openscad_tube(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
