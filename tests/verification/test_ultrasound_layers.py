# SPDX-License-Identifier: BSD-3-Clause
"""Exact waves through plane layers: transfer matrices at an angle, and a bowl in front of plates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seiche.ultrasound.materials import MATERIALS
from seiche.validate.check import Setting
from seiche.validate.ultrasound.layers import Plates, Transducer, field_behind
from seiche.validate.ultrasound.oblique import CASES, ObliquePackets, plates_of
from seiche.validate.ultrasound.plates import Beam, benchmarks

#: Layers (material, thickness in m), medium behind them, and their front (m), of the benchmarks with flat bone.
BENCHMARKS = {
    "BM3": ((("cortical bone", 6.5e-3),), "water", 30e-3),
    "BM4": (
        (("skin", 4e-3), ("cortical bone", 1.5e-3), ("trabecular bone", 4e-3), ("cortical bone", 1e-3)),
        "brain",
        26e-3,
    ),
}


def test_transmission_through_flat_bone_is_that_of_the_benchmarks():
    for name, exact in (("BM3", 0.4804), ("BM4", 0.4050)):
        layers, last, _ = BENCHMARKS[name]
        assert abs(Plates.named(layers, last, 5e5).transmission()) == pytest.approx(exact, abs=5e-5)


def test_a_plate_at_an_angle_transmits_and_reflects_all_energy_up_to_its_critical_angle():
    """Energy flux normal to the plate, of arriving, transmitted and reflected waves, from both sides."""
    steel = replace(MATERIALS["cortical bone"], absorption=0.0)
    plate = Plates([(steel, 4e-3)], MATERIALS["water"], replace(MATERIALS["brain"], absorption=0.0), 5e5)
    k = plate.wave_number(plate.first).real
    tangential_wave_numbers = k * np.sin(np.radians([0.0, 10.0, 25.0, 31.0, 45.0, 60.0]))
    back = Plates(plate.layers, plate.last, plate.first, 5e5)
    flux = plate.normal_wave_number(plate.last, tangential_wave_numbers).real * plate.first.density
    flux /= plate.normal_wave_number(plate.first, tangential_wave_numbers).real * plate.last.density
    # Reciprocity: the same share of energy crosses the plate in both directions, and never more than all of it.
    share, other = (
        np.abs(plate.transmission(tangential_wave_numbers)) ** 2 * flux,
        np.abs(back.transmission(tangential_wave_numbers)) ** 2 / flux,
    )
    np.testing.assert_allclose(share, other, rtol=1e-10)
    assert (share <= 1 + 1e-12).all()
    half_wave = Plates([(steel, 2800.0 / 5e5 / 2)], MATERIALS["water"], MATERIALS["water"], 5e5)
    assert abs(half_wave.transmission()) == pytest.approx(1.0, abs=1e-9)
    thin = Plates([(MATERIALS["water"], 3e-3)], MATERIALS["water"], MATERIALS["water"], 5e5)
    phase = np.exp(-1j * thin.normal_wave_number(MATERIALS["water"], tangential_wave_numbers) * 3e-3)
    np.testing.assert_allclose(thin.transmission(tangential_wave_numbers), phase, rtol=1e-10)


def test_angular_spectrum_of_a_bowl_is_oneils_solution_and_gives_the_peaks_behind_bone():
    x = np.array([40e-3, 57e-3, 62e-3, 80e-3])
    water = Plates.named([("water", 6.5e-3)], "water", 5e5)
    k, half, radius = 2 * np.pi * 5e5 / 1500, 32e-3, 64e-3
    far = np.sqrt((x - (radius - np.sqrt(radius**2 - half**2))) ** 2 + half**2)
    exact = np.abs(2 / (1 - x / radius) * np.sin(k * (far - x) / 2))
    np.testing.assert_allclose(
        np.abs(field_behind(water, 30e-3, Transducer(radius, radius), x, np.zeros(1)))[:, 0], exact, rtol=1e-6
    )
    x = np.arange(50e-3, 62e-3, 0.5e-3)
    for name, peak, position in (("BM3", 420.54, 55.5e-3), ("BM4", 313.80, 57.0e-3)):
        layers, last, front = BENCHMARKS[name]
        plates = Plates.named(layers, last, 5e5)
        field = 60 * np.abs(field_behind(plates, front, Transducer(radius, radius), x, np.zeros(1)))[:, 0]
        assert field.max() == pytest.approx(peak, abs=0.01)
        assert x[np.argmax(field)] == pytest.approx(position)


def test_reflection_and_transmission_share_the_energy_at_every_angle_without_absorption():
    """Closed form of an interface, total reflection beyond the critical angle, energy behind plates."""
    for name in CASES:
        plates = plates_of(name)
        k = plates.wave_number(plates.first).real
        tangential_wave_numbers = k * np.sin(np.radians([0.0, 12.0, 25.0, 33.0, 45.0, 60.0, 75.0]))
        normal, last = (plates.normal_wave_number(one, tangential_wave_numbers) for one in (plates.first, plates.last))
        flux = last.real * plates.first.density / (normal.real * plates.last.density)
        energy = (
            np.abs(plates.reflection(tangential_wave_numbers)) ** 2
            + np.abs(plates.transmission(tangential_wave_numbers)) ** 2 * flux
        )
        absorbing = any(one.absorption for one, _ in plates.layers)
        assert (energy < 0.99).all() if absorbing else energy == pytest.approx(np.ones(7), abs=1e-12)
        if not plates.layers:
            z, z_last = plates.first.density / normal, plates.last.density / last
            np.testing.assert_allclose(
                plates.reflection(tangential_wave_numbers), (z_last - z) / (z_last + z), rtol=1e-12
            )
            beyond = tangential_wave_numbers > plates.wave_number(plates.last).real
            np.testing.assert_allclose(np.abs(plates.reflection(tangential_wave_numbers))[beyond], 1, rtol=1e-12)


def test_the_dispersion_of_absorption_is_of_second_order_and_its_decay_is_the_given_one():
    bone = MATERIALS["cortical bone"]
    plain, dispersive = (Plates([], bone, bone, 5e5, dispersive=way).wave_number(bone) for way in (False, True))
    loss = -2 * plain.imag / plain.real
    assert loss == pytest.approx(0.082, abs=0.001)
    assert dispersive.real / plain.real == pytest.approx(1 - 3 / 8 * loss**2, abs=loss**4)
    assert dispersive.imag / plain.imag == pytest.approx(1 - 5 / 8 * loss**2, abs=loss**4)
    omega = (
        2 * np.pi * 5e5
    )  # k^2 c^2 (1 + i w tau) = w^2 with w tau = 2 alpha c / w: the law that the solver integrates
    assert dispersive**2 * bone.sound_speed**2 * (1 + 1j * loss) == pytest.approx(omega**2, rel=1e-12)


def test_packets_measure_nothing_where_the_layers_are_water():
    """Without a contrast the reflection is zero, and the wave behind has the phase of the way."""
    plates = Plates([(MATERIALS["water"], 3e-3)], MATERIALS["water"], MATERIALS["water"], 5e5)
    packets = ObliquePackets(plates, 6)
    result, exact = packets.coefficients(Setting(quick=True)), packets.exact()
    assert packets.angles == pytest.approx([0, 10, 20.3, 31.4, 44, 60.3], abs=0.1)
    assert np.abs(exact) == pytest.approx(np.stack([np.zeros(6), np.ones(6)]), abs=1e-12)
    assert np.abs(result[0]).max() < 1e-12
    assert np.abs(result[1] - exact[1]).max() < 2e-3


def test_field_of_a_disc_is_that_of_a_piston_on_its_axis_and_decays_with_absorption():
    """2 abs(sin(k/2 (sqrt(z^2 + a^2) - z))) on the axis; away from it, the integral over the surface; complex k."""
    x, half = np.array([20e-3, 45e-3, 90e-3]), 10e-3
    disc = Transducer(np.inf, 2 * half)
    for absorption in (0.0, 1.0):
        water = replace(MATERIALS["water"], absorption=absorption)
        plates = Plates([], water, water, 5e5)
        k = plates.wave_number(water)
        result = field_behind(plates, 10e-3, disc, x, np.array([0.0, 6e-3]))
        # Rayleigh's integral of the normal velocity of k.real / k.
        exact = (np.exp(-1j * k * x) - np.exp(-1j * k * np.sqrt(x**2 + half**2))) * k.real / k
        np.testing.assert_allclose(result[:, 0], exact, rtol=1e-5)
        a, phi = (np.arange(400) + 0.5) * half / 400, (np.arange(400) + 0.5) * 2 * np.pi / 400
        a, phi = np.meshgrid(a, phi)
        away = np.sqrt(x[:, None, None] ** 2 + (6e-3 - a * np.cos(phi)) ** 2 + (a * np.sin(phi)) ** 2)
        total = (np.exp(-1j * k * away) / away * a).sum((1, 2)) * (half / 400) * (2 * np.pi / 400)
        np.testing.assert_allclose(np.abs(result[:, 1]), np.abs(k.real / (2 * np.pi) * total), rtol=1e-4)


def test_errors_behind_plates_are_those_of_the_amplitude_in_the_plane(monkeypatch: pytest.MonkeyPatch):
    """An amplitude too large by a tenth behind the plates has this error; grids hold source, plates and field."""
    beam = Beam(Plates.named([("cortical bone", 3e-3)], "brain", 5e5), Transducer(14e-3, 10e-3), 4e-3, 11e-3, 5e-3)
    grid = beam.grid()
    assert grid.shape == (28, 21, 21)
    x, y = grid.positions("x") - float(grid.positions("x")[5]), grid.positions("y")
    assert x[5] == 0 and x[-1] == pytest.approx(11e-3)
    exact = np.abs(field_behind(beam.plates, 4e-3, beam.source, np.maximum(x, 7e-3), np.abs(y)))
    monkeypatch.setattr(Beam, "amplitude", lambda *_: (x, y, np.where(x > 8e-3, 1.1, 5.0)[:, None] * exact))
    assert beam.errors(Setting()) == pytest.approx((0.1, 0.1))


def test_benchmarks_have_the_dispersion_of_their_absorption():
    """Phase speeds in bone are those that the solver computes, 0.25 % above the sound speed in cortical bone."""
    bone = MATERIALS["cortical bone"]
    for plates in benchmarks().values():
        excess = 2 * np.pi * plates.frequency / plates.wave_number(bone).real / bone.sound_speed - 1
        assert excess == pytest.approx(0.0025, abs=1e-4)
    plates = benchmarks()["BM4"]
    source, x, r = Transducer(64e-3, 64e-3), np.arange(38e-3, 90e-3, 2e-3), np.arange(0, 20e-3, 1e-3)
    exact = np.abs(field_behind(plates, 26e-3, source, x, r))
    plain = np.abs(field_behind(replace(plates, dispersive=False), 26e-3, source, x, r))
    assert np.linalg.norm(plain - exact) / np.linalg.norm(exact) == pytest.approx(0.015, abs=0.002)
