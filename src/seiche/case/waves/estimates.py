# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of waves: resolution, receivers close to delta sources, elements cut by interfaces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from seiche.case.waves.layer import absorbing_sides
from seiche.case.waves.pulses import Multiple, Sampled
from seiche.case.waves.setup import WaveSetup, advised_error
from seiche.solver import Estimate
from seiche.waves.attenuation import fitted_shares, mechanism_frequencies, relaxation
from seiche.waves.sources import TimeFunction

#: Distance from a delta, in elements, up to which velocities may be wrong by tens of per cent (theory/waves, 13).
DELTA_REACH = 3.0
#: Highest frequency of a pulse, divided by the peak frequency of its velocity (for a Ricker pulse).
PEAK_SHARE = 2.5
#: Reflection coefficient of an absorbing side without a layer, for a wave in a fluid at 45 degrees, (1 - cos)/(1 +
#: cos).
REFLECTION_45 = (1 - math.sqrt(0.5)) / (1 + math.sqrt(0.5))
#: Minimum advised thickness of an absorbing layer, in wavelengths, with errors of about 2 %.
ADVISED_LAYER_THICKNESS = 0.5
#: Maximum relative growth of the energy if waves cross the static field outside a source box.
ADVISED_STATIC_ENERGY = 0.5
#: Integral of a moment rate, relative to that of its magnitude, below which a moment is not permanent.
STATIC_SHARE = 1e-6
#: Maximum advised relative error of 1/Q at the peak frequency of the sources and in the band.
ADVISED_QUALITY_ERROR = 0.2
#: Minimum samples of a seismogram in the period of the highest frequency (Nyquist).
ADVISED_SAMPLES = 2.0
#: Maximum relative growth of the energy due to rounding.
ADVISED_GROWTH = {"float64": 1e-9, "float32": 1e-4}
_LAYER = "theory/waves.md#automatic-checks"


def wave_estimates(setup: WaveSetup) -> list[Estimate]:
    """Return the estimates of a wave case before a run, the same on every rank."""
    return [
        *_resolution(setup),
        *_media(setup),
        *_near_deltas(setup),
        *_receivers(setup),
        *_records(setup),
        *_cut(setup),
        *_sides(setup),
        *_qualities(setup),
        Estimate(name="time step over maximum stable time step", value=setup.dt / setup.limit),
    ]


def _resolution(setup: WaveSetup) -> Iterator[Estimate]:
    if setup.resolution is not None:
        fewest, advised, frequency = setup.resolution
        yield Estimate(
            name="nodes per shortest wavelength",
            value=fewest,
            where=f"{frequency:.3g} Hz, the highest frequency",
            lower_bound=advised,
            effect=f"the error is above {100 * advised_error(setup.case):.2g} % per wavelength",
            remedy="use smaller elements (mesh.size) or more nodes (mesh.nodes)",
            source="theory/waves.md#6-mesh",
        )


def _media(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the resolution of each medium if there are several; the bound applies to the lowest resolution."""
    if len(setup.per_wavelength) > 1:
        for name, elements in setup.per_wavelength.items():
            nodes = elements * setup.case.mesh.nodes
            yield Estimate(name="nodes per shortest wavelength", value=nodes, where=f'material["{name}"]')


def _receivers(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the smallest distance of a receiver from a source."""
    distances = [setup.distance(number) for number in range(len(setup.sources))]
    if distances and math.isfinite(nearest := min(distances)) and len(setup.deltas) < len(distances):
        number = distances.index(nearest)
        yield Estimate(name="nearest receiver", value=nearest, unit="elements", where=f"source[{number}]")


def _records(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the peak times of pulses, the arrival at the farthest receiver, and the sampling of the records."""
    duration = setup.steps * setup.dt
    peaks = {f"source[{number}]": peak_time(source.time) / duration for number, source in enumerate(setup.sources)}
    if peaks and max(peaks.values()) > 0:
        where = max(peaks, key=peaks.__getitem__)
        yield Estimate(
            name="peak of the pulse over the duration of the run",
            value=peaks[where],
            where=where,
            upper_bound=1.0,
            effect="the source emits nothing, or only the beginning of its pulse",
            remedy=f"use time.duration of more than {peaks[where] * duration:.3g} s, or a shorter delay",
            source=_LAYER,
        )
    if not setup.receivers:
        return
    places = np.array([source.position for source in setup.sources])
    if len(places):
        distances = np.linalg.norm(np.array(setup.receivers)[:, None] - places, axis=2).min(1)
        farthest = int(np.argmax(distances))
        arrival = float(distances[farthest]) / setup.max_speed
        if arrival > 0:
            yield Estimate(
                name="duration over the travel time from the nearest source at the highest speed",
                value=duration / arrival,
                where=f'receiver["{setup.names[farthest]}"]',
                lower_bound=1.0,
                effect="no wave reaches this receiver",
                remedy=f"use time.duration of more than {arrival:.3g} s",
                source=_LAYER,
            )
    if setup.resolution is not None:
        every, highest = setup.sample_every * setup.dt, setup.resolution[2]
        yield Estimate(
            name="samples of the receivers per shortest period",
            value=1.0 / (every * highest),
            where="output.receivers.every",
            lower_bound=ADVISED_SAMPLES,
            effect="seismograms alias the highest frequencies",
            remedy=f"use output.receivers.every of at most {1.0 / (ADVISED_SAMPLES * highest):.2g} s",
            source=_LAYER,
        )


def peak_time(pulse: TimeFunction) -> float:
    """Return the time of the peak of a pulse with a delay, or of the first sample of a pulse from a file, s."""
    while isinstance(pulse, Multiple):
        pulse = pulse.function
    if isinstance(pulse, Sampled):
        return float(pulse.times[0])
    return float(getattr(pulse, "delay", 0.0))


def _sides(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the reflection coefficient of absorbing sides, or the thickness of the absorbing layer."""
    if not absorbing_sides(setup.case).any():
        return
    thickness = setup.sponge
    if not thickness:
        yield Estimate(name="reflection of absorbing sides at 45 degrees", value=REFLECTION_45, source=_LAYER)
    elif setup.resolution is not None:
        wavelength = setup.max_speed * PEAK_SHARE / setup.resolution[2]
        yield Estimate(
            name="thickness of the absorbing layer",
            value=thickness / wavelength,
            unit="wavelengths",
            where="boundary.sponge" if setup.case.boundary.sponge else "boundary.margin",
            lower_bound=ADVISED_LAYER_THICKNESS,
            effect="waves return from it with several per cent of their amplitude",
            remedy="use boundary.margin with trees beyond the box, "
            f"{ADVISED_LAYER_THICKNESS * wavelength:.2g} m in all or more",
            source=_LAYER,
        )


def energy_estimate(setup: WaveSetup, growth: float | None) -> Iterator[Estimate]:
    """Yield the largest relative growth of the energy beyond the supply of the sources; None: not known yet."""
    if growth is not None:
        yield Estimate(
            name="growth of energy beyond the supply of sources"
            if setup.sources
            else "relative growth of energy so far",
            value=growth,
            upper_bound=ADVISED_STATIC_ENERGY
            if _leaves_static_field(setup)
            else ADVISED_GROWTH[setup.case.run.precision],
            effect="the run is unstable",
            remedy="use a smaller time step",
            source="theory/waves.md#automatic-checks",
        )


def _leaves_static_field(setup: WaveSetup) -> bool:
    """Return whether a source with an incident field has a permanent moment, whose static field is not in its box."""
    times = setup.dt * np.arange(setup.steps + 1, dtype=np.float64)
    for number, source in enumerate(setup.sources):
        if number not in setup.deltas and source.moment is not None:
            amplitudes = np.asarray(source.time(times), np.float64)
            if abs(amplitudes.sum()) > STATIC_SHARE * np.abs(amplitudes).sum():
                return True
    return False


def _qualities(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the largest error of 1/Q in the band of the attenuation, and those at frequencies of the sources."""
    table = setup.case.attenuation
    qualities = {q for item in setup.case.material for q in (item.qp, item.qs) if q is not None and math.isfinite(q)}
    if table is None or not qualities:
        return
    low, high = table.band
    yield Estimate(
        name="relative error of 1/Q",
        value=quality_error(qualities, (low, high), table.mechanisms, np.geomspace(low, high, 50)),
        where="attenuation.band",
        upper_bound=ADVISED_QUALITY_ERROR,
        effect="the relaxation mechanisms do not follow a constant Q",
        remedy="use more attenuation.mechanisms, or a narrower attenuation.band",
        source=_LAYER,
    )
    if setup.resolution is None:
        return
    highest = setup.resolution[2]
    for name, frequency, bound in (("peak", highest / PEAK_SHARE, ADVISED_QUALITY_ERROR), ("highest", highest, None)):
        yield Estimate(
            name="relative error of 1/Q",
            value=quality_error(qualities, (low, high), table.mechanisms, np.array([frequency])),
            where=f"{frequency:.3g} Hz, the {name} frequency",
            upper_bound=bound,
            effect=f"it is outside attenuation.band, {low:g} to {high:g} Hz, where losses are smaller than those of Q",
            remedy=f'use attenuation.band = ["{min(low, frequency / 2):.2g} Hz", "{max(high, 2 * frequency):.2g} Hz"]',
            source=_LAYER,
        )


def quality_error(
    qualities: Iterable[float], band: tuple[float, float], mechanisms: int, frequencies: npt.NDArray[np.float64]
) -> float:
    """Return the largest relative error of 1/Q of fits of `qualities` over a band, at `frequencies` (n,) in Hz."""
    poles = mechanism_frequencies(band, mechanisms)
    largest = 0.0
    for quality in qualities:
        shares = fitted_shares(quality, poles, band)
        modulus = np.array([complex(relaxation(shares, poles, 2 * np.pi * value)) for value in frequencies])
        largest = max(largest, float(np.abs(quality * modulus.imag / modulus.real - 1).max()))
    return largest


def _near_deltas(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the distance of the nearest receiver from each source that is represented as a delta."""
    distances = {f"source[{number}], a delta": setup.distance(number) for number in setup.deltas}
    if distances and math.isfinite(min(distances.values())):
        yield Estimate.lowest(
            distances,
            name="nearest receiver",
            unit="elements",
            lower_bound=DELTA_REACH,
            effect="velocities at this receiver may be wrong by tens of per cent",
            remedy="use smaller elements, or move the source to a position where an incident field is possible",
            source="theory/waves.md#13-waves-near-point-sources",
        )


def _cut(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the fraction of elements that interfaces cut."""
    if setup.cut:
        averaged = setup.case.mesh.material == "average"
        yield Estimate(
            name="elements cut by interfaces",
            value=100 * setup.cut / setup.mesh.total,
            unit="%",
            upper_bound=None if averaged else 0.0,
            effect="the solution at the interfaces is only first-order accurate",
            remedy='set mesh.material = "average" for second-order accuracy, or align elements with the interfaces',
            source="theory/waves.md#14-interfaces-inside-elements",
        )
