# SPDX-License-Identifier: BSD-3-Clause
"""Exact plane waves through layers of fluids and solids: closed forms, energy, a free surface."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.validate.waves.plane_layers import PlaneLayers, Solid


@pytest.mark.parametrize("angle", [0.0, 20.0, 50.0, 75.0])
def test_layers_of_fluids_reflect_by_their_impedances(angle: float) -> None:
    """One interface in closed form, also beyond the critical angle of 37 degrees."""
    water, fluid = Solid(1.0, 1.0, 0.0), Solid(1.2, 5 / 3, 0.0)
    along = np.sin(np.radians(angle))
    z = [medium.density / np.sqrt(complex(medium.cp**-2 - along**2)) for medium in (water, fluid)]
    result = PlaneLayers((water, fluid)).coefficients(1.0, along)
    assert result["reflected", "p"] == pytest.approx((z[1] - z[0]) / (z[1] + z[0]), abs=1e-12)
    # The ratio of displacements is that of pressures, 1 + R, over rho c.
    assert result["transmitted", "p"] == pytest.approx((1 + result["reflected", "p"]) / 2, abs=1e-12)


@pytest.mark.parametrize("incident", ["p", "s"])
def test_waves_from_layers_carry_the_energy_of_the_arriving_wave(incident: str) -> None:
    """Fluids and solids in several orders, from 0 to 80 degrees, with waves that decay across layers."""
    water, fluid = Solid(1.0, 1.0, 0.0), Solid(1.2, 5 / 3, 0.0)
    rock, hard = Solid(2.0, 2.0, 1.1), Solid(2.5, 3.0, 1.8)
    cases = [((water, rock), ()), ((water, rock, water), (0.7,)), ((water, hard, rock, fluid), (0.3, 8.0))]
    cases += [((rock, water), ()), ((rock, hard), ()), ((hard, rock), ()), ((rock, fluid, hard), (0.4,))]
    for media, thicknesses in cases:
        if incident == "s" and media[0].cs == 0:
            continue
        layers = PlaneLayers(media, thicknesses)
        speed = media[0].cp if incident == "p" else media[0].cs
        for angle in (0, 15, 25, 40, 60, 80):
            omega = 2 * np.pi
            along = float(omega / speed * np.sin(np.radians(angle)))
            result = layers.coefficients(omega, along, incident)
            out = sum(
                abs(amplitude) ** 2 * layers.flux(0 if part == "reflected" else len(media) - 1, kind, omega, along)
                for (part, kind), amplitude in result.items()
            )
            assert out == pytest.approx(layers.flux(0, incident, omega, along), rel=1e-11)


def test_layers_of_one_medium_do_nothing_and_a_rock_converts_waves_as_zoeppritz_says() -> None:
    rock = Solid(2.0, 2.0, 1.1)
    omega, along = 2 * np.pi, 1.3
    result = PlaneLayers((rock, rock, rock), (0.6,)).coefficients(omega, along, "s")
    number = np.sqrt((omega / rock.cs) ** 2 - along**2)
    assert result["transmitted", "s"] == pytest.approx(np.exp(0.6j * number), abs=1e-12)
    assert max(abs(value) for key, value in result.items() if key != ("transmitted", "s")) < 1e-12
    # Nearly free surface: Aki and Richards 2002, eq. 5.27 and 5.28, in slownesses.
    vacuum = Solid(1e-9, 1.0, 0.0)
    result = PlaneLayers((rock, vacuum)).coefficients(omega, along, "p")
    p = along / omega
    down, across = np.sqrt(rock.cp**-2 - p**2), np.sqrt(rock.cs**-2 - p**2)
    bend = rock.cs**-2 - 2 * p**2
    total = bend**2 + 4 * p**2 * down * across
    assert result["reflected", "p"] == pytest.approx((4 * p**2 * down * across - bend**2) / total, abs=1e-8)
    assert abs(result["reflected", "s"]) == pytest.approx(4 * rock.cp / rock.cs * p * down * bend / total, abs=1e-8)
