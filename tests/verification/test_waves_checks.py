# SPDX-License-Identifier: BSD-3-Clause
"""What `seiche validate waves` compares with: closed forms against published numbers, and its quick checks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from seiche.cli import main
from seiche.validate.check import Setting
from seiche.validate.waves import source_positions
from seiche.validate.waves.interface_waves import InterfaceWave
from seiche.validate.waves.layer_over_half_space import DEPTH, LOSSY, THICKNESS
from seiche.validate.waves.layered import Layered, LayerMedium
from seiche.validate.waves.misfits import envelope_and_phase, misfit, misfit_by_frequency
from seiche.validate.waves.plane_layers import Solid
from seiche.validate.waves.point_sources import Bump, lamb_displacement, stokes_velocity
from seiche.waves import Material, Solver
from seiche.waves.attenuation import attenuated, relaxation


def test_quick_checks_pass_and_are_drawn(tmp_path: Path, device: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--json", str(tmp_path / "waves.json"), "--plots", str(tmp_path), "--device", device]
    assert main(["validate", "waves", *arguments]) == 0, capsys.readouterr().out
    stored = json.loads((tmp_path / "waves.json").read_text())
    assert stored["passed"] and len(stored["checks"]) == 80
    assert (tmp_path / "volume-source-in-a-fluid-largest-error-of-the-pressure.png").exists()


def test_misfits_tell_too_strong_from_too_late() -> None:
    """A packet of waves of 2 Hz, 5 % too strong, and 4 ms late: 2 f of the delay, in parts of half a period."""
    times = np.arange(0.0, 12.0, 0.01)

    def packet(delay: float) -> np.ndarray:
        return np.asarray(np.exp(-(((times - 6.0 - delay) / 1.2) ** 2)) * np.sin(4 * np.pi * (times - delay)))[:, None]

    exact = packet(0.0)
    envelope, phase = envelope_and_phase(1.05 * exact, exact, 0.01, (0.5, 8.0))
    assert envelope == pytest.approx(0.05, abs=1e-9) and phase == pytest.approx(0.0, abs=1e-9)
    assert misfit(1.05 * exact, exact) == pytest.approx(0.05, abs=1e-12)
    envelope, phase = envelope_and_phase(packet(0.004), exact, 0.01, (0.5, 8.0))
    assert phase == pytest.approx(0.016, rel=0.02) and envelope < 0.005


def test_the_parts_of_a_misfit_are_at_the_frequencies_of_the_errors() -> None:
    times = np.arange(0.0, 40.0, 0.01)
    window = np.exp(-(((times - 20.0) / 5.0) ** 2))
    exact = (window * np.sin(4 * np.pi * times))[:, None]
    errors = [size * window * np.cos(2 * np.pi * f * times) for size, f in ((0.03, 0.3), (0.01, 2.0), (0.02, 9.0))]
    parts = misfit_by_frequency(exact + sum(errors)[:, None], exact, 0.01, (1.0, 5.0))
    assert parts[:, 0] == pytest.approx([0.03, 0.01, 0.02], rel=1e-6)
    assert np.linalg.norm(parts) == pytest.approx(misfit(exact + sum(errors)[:, None], exact)[0], rel=1e-12)


@dataclass(frozen=True)
class SolverMedium(LayerMedium):
    """A medium that relaxes the bulk and the shear modulus, as the solver does."""

    def moduli(self, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        material = Material(*(np.array([value]) for value in (self.density, self.cp, self.cs)))
        unrelaxed, loss = attenuated(
            material, self.qp, self.qs, dim=3, band=self.band, reference=self.reference, mechanisms=3
        )
        bulk, shear = (
            np.array([relaxation(share.ravel(), loss.frequencies, w) for w in omega])
            for share in (loss.bulk, loss.shear)
        )
        mu = float(unrelaxed.mu[0])
        return (float(unrelaxed.longitudinal[0]) - 4 / 3 * mu) * bulk + 4 / 3 * mu * shear, mu * shear


def test_the_reference_of_an_attenuating_layer_has_the_relaxation_of_the_solver() -> None:
    """The reference relaxes longitudinal and shear waves, the solver bulk and shear moduli: 0.05 % after 10 km."""
    times = np.arange(0.0, 9.0, 0.004)
    receivers = np.array([(3000.0, 4000.0), (6000.0, 8000.0)])
    both = [
        Layered(*media, THICKNESS, DEPTH).velocity(times, receivers, 1e18, 0.12, 0.72)
        for media in (LOSSY, [SolverMedium(**asdict(medium)) for medium in LOSSY])
    ]
    assert 1e-5 < misfit(both[1], both[0]).max() < 6e-4


def test_lambs_problem_has_the_numbers_of_pekeris() -> None:
    """A bump of rate one, 4 units away: extremes computed independently with the integral of the step response."""
    times = np.linspace(4.0, 5.4, 281)
    u = lamb_displacement(times, 4.0, Bump())
    assert u.min() == pytest.approx(-0.120575, abs=3e-5) and times[u.argmin()] == pytest.approx(4.625, abs=0.006)
    assert u.max() == pytest.approx(0.254337, abs=3e-5) and times[u.argmax()] == pytest.approx(4.925, abs=0.006)
    assert np.interp(5.0, times, u) == pytest.approx(0.204717, abs=1e-4)


@pytest.mark.parametrize(
    ("wave", "speed"),
    [
        ((Solid(1.0, np.sqrt(3.0), 1.0), None), 0.9194016868),
        ((Solid(2.5, 3400.0, 1963.0), Solid(1.0, 1500.0, 0.0)), 1426.585289),
        ((Solid(10.0, np.sqrt(0.9), np.sqrt(0.3)), Solid(1.0, np.sqrt(3.0), 1.0)), 0.546981324213884),
    ],
    ids=["Rayleigh", "Scholte", "Stoneley"],
)
def test_interface_waves_exist_at_their_speeds_only(wave: tuple[Solid, Solid | None], speed: float) -> None:
    assert InterfaceWave(*wave, speed).misfit < 1e-9
    assert InterfaceWave(*wave, 0.99 * speed).misfit > 1e3 * InterfaceWave(*wave, speed).misfit


def test_a_point_force_shakes_near_and_far_as_in_a_static_and_a_ray_limit() -> None:
    """A long push leaves the static displacement of Kelvin's solution; its rate integrates to that."""
    medium, position, force = (2.0, 1.75, 1.0), np.array([1.0, 0.5, -0.3]), np.array([0.2, -1.0, 0.4])
    times = np.linspace(0.0, 30.0, 6001)

    def ramp(t: np.ndarray) -> np.ndarray:
        return np.clip(t / 5.0, 0.0, 1.0) ** 3 * (10 - 15 * np.clip(t / 5.0, 0, 1) + 6 * np.clip(t / 5.0, 0, 1) ** 2)

    displacement = np.trapezoid(stokes_velocity(position, force, times, medium, ramp), times, axis=0)
    mu, ratio, r = 2.0, 1.75**2, float(np.linalg.norm(position))
    gamma = position / r
    kelvin = ((1 + 1 / ratio) * force + (1 - 1 / ratio) * gamma * (gamma @ force)) / (8 * np.pi * mu * r)
    assert displacement == pytest.approx(kelvin, rel=1e-4)


def test_motion_on_a_layer_that_is_none_is_twice_the_far_field_of_a_full_space() -> None:
    """A shear wave that rises steeply to a free surface is doubled there: Aki and Richards 2002, eq. 4.29."""
    rock, depth, sigma, delay = LayerMedium(2700.0, 6000.0, 3464.0), 60_000.0, 0.1, 0.6
    times = np.arange(1900) * 0.01
    places = np.array([[600.0, 600.0], [900.0, 0.0]])
    result = Layered(rock, rock, 1000.0, depth).velocity(times, places, 1e18, sigma, delay)
    for receiver, component in ((0, 0), (1, 1)):  # radial on the diagonal, transverse on the axis
        across = float(np.linalg.norm(places[receiver]))
        distance = float(np.hypot(depth, across))
        late = times - distance / 3464.0 - delay
        slope = -late / sigma**2 * np.exp(-0.5 * (late / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
        far = 2 * across / distance * 1e18 * slope / (4 * np.pi * 2700.0 * 3464.0**3 * distance)
        shear = times > 15.0
        computed = result[shear, receiver, component]
        assert np.linalg.norm(computed - far[shear]) < 0.05 * np.linalg.norm(far)


@pytest.mark.parametrize("kind", ["explosion", "force_in_a_fluid"])
def test_the_check_of_source_positions_rejects_delta_functions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delta on a vertex, and 1e-6 off it, has errors of tens of per cent one element away, and changes by as much."""
    monkeypatch.setattr(source_positions, "Solver", partial(Solver, source_model="delta"))
    one, *_, change = getattr(source_positions, kind)(Setting(quick=True))
    assert not one.passed and one.value > 0.1
    assert not change.passed and change.value > 0.02


def test_the_exact_double_couple_approaches_the_far_field_of_its_moment_rate() -> None:
    """Along x, xy moments move the medium along y: g'(t - r/cs)/(4 pi rho cs^3 r) (Aki and Richards 2002, eq. 4.29)."""
    moment = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    kind = source_positions._Radiation("double couple", (2.5, 3.0, 1.7), moment=moment)
    misfits = []
    for r in (80.0, 160.0):
        late = np.linspace(-1.2, 1.2, 241)
        slope = -late / 0.25**2 * np.exp(-0.5 * (late / 0.25) ** 2) / (0.25 * np.sqrt(2 * np.pi))
        far = slope / (4 * np.pi * 2.5 * 1.7**3 * r)
        exact = kind.exact((r, 0.0, 0.0), late + 1.5 + r / 1.7)[:, 1]
        misfits.append(abs(exact - far).max() / abs(far).max())
    assert misfits[0] < 0.03
    assert misfits[1] == pytest.approx(misfits[0] / 2, rel=0.05)


@pytest.mark.nightly
def test_waves_from_a_point_source_do_not_depend_on_its_position_in_the_elements(device: str) -> None:
    """All positions, numbers of nodes and kinds of source: about ten minutes on a CPU core."""
    families = ("double_couple", "explosion", "force", "volume", "force_in_a_fluid")
    checks = [check for name in families for check in getattr(source_positions, name)(Setting(device))]
    assert len(checks) == 5 * 6 * 4
    assert [(check.name, check.value) for check in checks if not check.passed] == []
