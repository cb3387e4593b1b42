# SPDX-License-Identifier: BSD-3-Clause
"""Effects of absorbed sound on tissue: heat, temperature, thermal dose (theory/ultrasound, section 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, open_backend
from seiche.errors import CaseError
from seiche.kernels.registry import kspace as registry
from seiche.ultrasound.medium import Medium, on_grid
from seiche.ultrasound.medium_arrays import neper_coefficient
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import Absorption

Floats = npt.NDArray[np.float64]
#: Fraction of the longest stable step.
_SAFETY = 0.8


def heat_deposition(amplitude: npt.ArrayLike, frequency: float, medium: Medium) -> Floats:
    """Return the heat (W/m3) deposited by waves of a pressure `amplitude` (Pa) at `frequency` (Hz), eq. 28.

    Raises:
        CaseError: the medium does not absorb, or the shapes differ.
    """
    pressure = np.asarray(amplitude, np.float64)
    shape = pressure.shape
    if medium.alpha_coeff is None or (medium.alpha_power is None and medium.alpha_mode != "stokes"):
        raise CaseError("medium.alpha_coeff, alpha_power: are missing; without absorption there is no heat")
    if not frequency > 0:
        raise CaseError(f"frequency: {frequency:g} Hz is not positive")
    power = 2.0 if medium.alpha_power is None else on_grid("medium.alpha_power", medium.alpha_power, shape)
    coefficient = on_grid("medium.alpha_coeff", medium.alpha_coeff, shape)
    decibels = np.asarray(coefficient) * (frequency / 1e6) ** np.asarray(power)
    alpha = neper_coefficient(Absorption(decibels, 0.0))  # dB/cm in Np/m
    speed = np.asarray(on_grid("medium.sound_speed", medium.sound_speed, shape))
    density = np.asarray(on_grid("medium.density", medium.density, shape))
    return np.asarray(alpha * pressure**2 / (density * speed), np.float64)


@dataclass(frozen=True)
class Tissue:
    """Thermal properties of tissue: numbers, or arrays in the shape of the grid.

    Attributes:
        density: kg/m3.
        heat_capacity: J/(kg K).
        conductivity: W/(m K).
        perfusion: volume flow of blood per volume of tissue, 1/s.
        blood_density, blood_heat_capacity, blood_temperature: of the inflowing blood, degrees Celsius.
    """

    density: npt.ArrayLike = 1000.0
    heat_capacity: npt.ArrayLike = 3600.0
    conductivity: npt.ArrayLike = 0.5
    perfusion: npt.ArrayLike = 0.0
    blood_density: float = 1060.0
    blood_heat_capacity: float = 3617.0
    blood_temperature: float = 37.0


class Bioheat:
    """Tissue temperature by Pennes' equation (eq. 29), in double precision, with insulated borders.

    Attributes:
        time: seconds.
        max_stable_dt: a stable step, s.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        spacing: tuple[float, ...],
        tissue: Tissue,
        temperature: npt.ArrayLike = 37.0,
        *,
        device: str = "cpu",
        threads: int | None = None,
        symmetry: Literal["axisymmetric"] | None = None,
    ) -> None:
        """Start from a temperature, one number or an array, on a device; `symmetry` is that of `Grid`.

        Raises:
            CaseError: shapes that differ, or impossible values.
            BackendUnavailable: no such device.
        """
        spacings = tuple(float(d) for d in real_numbers("spacing", spacing))
        if len(spacings) != len(shape) or not all(0 < d < np.inf for d in spacings):
            raise CaseError(f"spacing: {spacing} is not one positive number for each axis of {shape} points")
        if symmetry is not None and (symmetry != "axisymmetric" or len(shape) != 2):
            raise CaseError(f"symmetry: {symmetry!r} is not axisymmetric, with two axes")
        for name in ("blood_density", "blood_heat_capacity", "blood_temperature"):
            if not np.isfinite(getattr(tissue, name)):
                raise CaseError(f"tissue.{name}: {getattr(tissue, name)} is not a finite number")

        def field(name: str, minimum: float, exclusive: bool) -> Floats:
            value = np.asarray(on_grid(f"tissue.{name}", getattr(tissue, name), shape), np.float64)
            low = float(np.min(value))
            if not np.isfinite(value).all() or low < minimum or (exclusive and low == minimum):
                raise CaseError(
                    f"tissue.{name}: {low:g} is not a finite number {'>' if exclusive else '>='} {minimum:g}"
                )
            return value

        capacity = field("density", 0.0, True) * field("heat_capacity", 0.0, True)
        conductivity = field("conductivity", 0.0, False)
        cooling = field("perfusion", 0.0, False) * (tissue.blood_density * tissue.blood_heat_capacity)
        start = np.asarray(on_grid("temperature", temperature, shape), np.float64)
        if not np.isfinite(start).all():
            raise CaseError("temperature: not every value is a finite number")
        self.time, self._shape, self._blood = 0.0, shape, tissue.blood_temperature
        # Upper bound: both neighbours along each axis have the largest conductivity.
        exchange = 4 * float(conductivity.max()) * sum(1 / d**2 for d in spacings)
        if symmetry is not None:  # the relative area of the face of a cell on the axis is four, not two
            exchange += 4 * float(conductivity.max()) / spacings[-1] ** 2
        rate = (exchange + float(cooling.max())) / float(capacity.min())
        self.max_stable_dt = 2 / rate if rate > 0 else np.inf
        self._backend = open_backend(device, threads)
        self._inverse_squares = (*(0.0,) * (3 - len(shape)), *(1 / d**2 for d in spacings))
        self._temperature, self._dose = self._upload(start), self._upload(np.zeros(1))
        self._fields: dict[str, Array | None] = {
            "temperature": self._temperature,
            "predicted": self._upload(np.zeros(1)),
            "dose": self._dose,
            "conductivity": self._upload(conductivity),
            "cooling": self._upload(cooling),
            "capacity": self._upload(capacity),
            "faces": None if symmetry is None else self._backend.upload(_radial_faces(shape[-1])),
        }

    @property
    def temperature(self) -> Floats:
        """Return degrees Celsius, in the shape of the grid."""
        return self._host(self._temperature)

    @property
    def dose(self) -> Floats:
        """Return the thermal dose in equivalent minutes at 43 degrees (eq. 30), in the shape of the grid."""
        return self._host(self._dose)

    def run(self, seconds: float, heat: npt.ArrayLike = 0.0) -> None:
        """Advance by `seconds` with a constant heat source (W/m3): second order in time, in equal steps.

        Raises:
            CaseError: a time that is not positive, or heat of another shape.
        """
        if not (np.isfinite(seconds) and seconds > 0):
            raise CaseError(f"seconds: {seconds:g} is not a finite number > 0")
        source = np.asarray(on_grid("heat", heat, self._shape), np.float64)
        if not np.isfinite(source).all():
            raise CaseError("heat: not every value is a finite number")
        steps = max(1, int(np.ceil(seconds / (_SAFETY * self.max_stable_dt)))) if np.isfinite(self.max_stable_dt) else 1
        dt, fields = seconds / steps, {**self._fields, "heat": self._upload(source)}
        predict, correct = (self._bind(corrects, dt, fields) for corrects in (False, True))
        for _ in range(steps):
            predict()
            correct()
            self.time += dt
        self._backend.synchronize()  # the kernels use `fields` until then

    def _bind(self, corrects: bool, dt: float, fields: dict[str, Array | None]) -> Callable[[], None]:
        planes, middle, length = (1,) * (3 - len(self._shape)) + self._shape
        kernel = self._backend.load(registry.bioheat(len(self._shape), corrects, fields["faces"] is not None))
        lengths = {"planes": planes, "middle": middle, "length": length, "half": length // 2 + 1}
        packed = self._backend.pack(
            kernel,
            **fields,
            rows={**lengths, "points": planes * middle * length, "spectrum": 0},
            squares=self._inverse_squares,
            blood=self._blood,
            dt=dt,
        )
        return kernel.bind(packed, 0, planes * middle)

    def _upload(self, values: Floats) -> Array:
        return self._backend.upload(np.ascontiguousarray(np.broadcast_to(values, self._shape)).reshape(-1))

    def _host(self, array: Array) -> Floats:
        return np.array(self._backend.download(array)).reshape(self._shape)


def _radial_faces(points: int) -> Floats:
    """Return the areas of the inner and outer faces of cells along a radius times d over their volumes, (points, 2)."""
    j = np.arange(points, dtype=np.float64)
    faces = 1 + np.array([-0.5, 0.5]) / np.maximum(j, 1)[:, None]
    faces[0] = 0.0, 4.0
    return faces
