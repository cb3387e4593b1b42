# SPDX-License-Identifier: BSD-3-Clause
"""[[output.force]] of a flow case: forces in SI units, coefficients, history, and messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import seiche
from seiche.case.flow.forces import frequency
from seiche.case.new import examples_folder
from seiche.errors import CaseError

CASE = """
solver = "flow"
[geometry]
spacing = "0.25 mm"
shape = { kind = "channel", height = "2 mm", length = "1 mm", width = "1 mm" }
[fluid]
density = "1000 kg/m^3"
viscosity = "4 mPa s"
[lattice]
tau = 0.8
velocity_scale = "5 mm/s"
[time]
steps = 3000
[output]
record_every = 100
[[walls.moving]]
name = "lid"
velocity = ["5 mm/s", "0 m/s", "0 m/s"]
where = { kind = "plane", point = ["0 m", "0 m", "2 mm"], normal = [0, 0, 1] }
[[output.force]]
name = "lid"
where = { kind = "plane", point = ["0 m", "0 m", "2 mm"], normal = [0, 0, 1] }
center = ["0.5 mm", "0.5 mm", "1 mm"]
velocity = "5 mm/s"
area = "1 mm^2"
length = "2 mm"
[[output.force]]
name = "everything"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "case.toml"
    path.write_text(text)
    return path


def test_force_on_a_sliding_plate_is_that_of_couette_flow(tmp_path: Path):
    """tau_w = eta U/h on the plate of 1 mm^2, against its motion; M_y = F_x (2 mm - 1 mm)."""
    sim = seiche.load(written(tmp_path, CASE))
    outcome = sim.run()
    forces = outcome.summary["details"]["forces"]
    exact = 4e-3 * 5e-3 / 2e-3 * 1e-6
    np.testing.assert_allclose(forces["lid"]["force_N"], [-exact, 0.0, 0.0], atol=2e-4 * exact)
    # The site next to the plate is half a spacing below it; the links of its shear have this lever.
    assert forces["lid"]["torque_N_m"][1] == pytest.approx(-exact * 1e-3, rel=0.2)
    assert forces["lid"]["drag_coefficient"] == pytest.approx(-exact / (0.5 * 1000 * 5e-3**2 * 1e-6), rel=2e-4)
    assert forces["lid"]["strouhal"] is None
    np.testing.assert_allclose(forces["everything"]["force_N"], 0.0, atol=1e-4 * exact)
    assert np.shape(forces["lid"]["history"]["force_N"]) == (30, 3)
    assert any(line.startswith("force on lid: (") for line in outcome.lines)
    np.testing.assert_allclose(sim.wall_forces()["lid"][:3], forces["lid"]["force_N"], rtol=1e-6, atol=1e-15)


def test_frequency_of_a_sampled_oscillation():
    times = np.linspace(0.0, 3.0, 400)
    assert frequency(times, 2.0 + np.sin(2 * np.pi * 3.1 * times)) == pytest.approx(3.1, rel=1e-3)
    assert frequency(times, np.sin(2 * np.pi * 0.4 * times)) is None


def test_noise_and_decay_have_no_frequency():
    """A steady force with rounding errors or sound in it does not oscillate, and neither does one that decays."""
    times = np.linspace(0.0, 3.0, 400)
    wave = np.sin(2 * np.pi * 3.1 * times)
    assert frequency(times, 2.0 + 1e-4 * wave, 1e-3) is None
    assert frequency(times, 2.0 + np.exp(-times) * wave) is None
    assert frequency(times, 2.0 + np.exp(0.3 * times) * wave) == pytest.approx(3.1, rel=0.02)


def test_a_body_between_periodic_planes_has_all_its_links(tmp_path: Path):
    """Links across the planes belong to a part of the wall that ends there, as to one that reaches beyond."""
    text = (examples_folder() / "cylinder" / "case.toml").read_text()
    beyond = text[text.rindex("[[output.force]]") :].replace('name = "cylinder"', 'name = "beyond"')
    beyond = beyond.replace('"0 m"], end', '"-1 m"], end').replace('"10 mm"], radius', '"1 m"], radius')
    text = text.replace('duration = "40 s"\nsteady = 1e-6', "steps = 20").replace('"0.1 s"', "5") + beyond
    forces = seiche.load(written(tmp_path, text)).run().summary["details"]["forces"]
    assert forces["cylinder"]["drag_coefficient"] > 1
    np.testing.assert_array_equal(forces["cylinder"]["force_N"], forces["beyond"]["force_N"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('area = "1 mm^2"\n', "", r"area: is missing; coefficients need velocity and area"),
        ('name = "everything"', 'name = "lid"', r'force: two bodies have the name "lid"'),
        (
            'name = "everything"',
            'name = "far"\nwhere = { kind = "sphere", center = ["9 mm", "0 m", "0 m"], radius = "1 mm" }',
            r'output.force\["far"\].where: contains no part of the wall; the wall lies between',
        ),
        ("center =", "drag = [0, 0, 0]\ncenter =", r"drag"),
    ],
)
def test_wrong_tables_are_rejected_in_one_line(tmp_path: Path, old: str, new: str, message: str):
    with pytest.raises(CaseError, match=message):
        seiche.load(written(tmp_path, CASE.replace(old, new)))
