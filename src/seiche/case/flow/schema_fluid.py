# SPDX-License-Identifier: BSD-3-Clause
"""Shear-thinning fluids of the case file; blood may be named by a preset with published constants."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from seiche.case.quantities import PositiveRate, PositiveTime, Pressure, Viscosity
from seiche.case.tables import Table


class ThinningFluid(Table):
    """A law with constants that are all given, or all in a preset."""

    def all_or_preset(self, presets: tuple[str, ...]) -> None:
        """Refuse a preset beside constants, and constants that are not complete."""
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        constants = [name for name in names if name not in ("kind", "preset")]
        given = [names[name] for name in constants if getattr(self, name) is not None]
        preset, count = getattr(self, "preset", None), {2: "two", 3: "three", 4: "four", 5: "five"}[len(constants)]
        if preset is not None and given:
            raise ValueError(f'preset = "{preset}" already fixes {given[0]}; give a preset or all {count} constants')
        if preset is None and len(given) < len(constants):
            missing = next(names[name] for name in constants if getattr(self, name) is None)
            listed = ", ".join(names[name] for name in constants[:-1]) + f" and {names[constants[-1]]}"
            raise ValueError(f"{missing} is missing; give {listed}, or a preset ({', '.join(presets)})")


class CassonFluid(ThinningFluid):
    """Blood with a yield stress: eta = (sqrt(yield_stress) + sqrt(eta_inf g))^2/g, at most eta_0; g the shear rate."""

    kind: Literal["casson"]
    preset: Literal["human"] | None = Field(default=None, description="published constants; else give all three")
    yield_stress: Pressure | None = Field(default=None, ge=0, description="stress below which the fluid hardly flows")
    eta_inf: Viscosity | None = Field(default=None, description="viscosity at high shear rate")
    eta_0: Viscosity | None = Field(default=None, description="viscosity at rest: the cap of the law")

    @model_validator(mode="after")
    def _complete(self) -> CassonFluid:
        self.all_or_preset(("human",))
        if self.eta_0 is not None and self.eta_inf is not None and self.eta_inf > self.eta_0:
            raise ValueError("eta_inf is larger than eta_0; shear-thinning fluid has eta_inf <= eta_0")
        return self


class PowerLawFluid(ThinningFluid):
    """A truncated power law: eta = consistency (g s)^(n - 1), the shear rate g taken between two ends."""

    kind: Literal["power-law"]
    preset: Literal["human"] | None = Field(default=None, description="published constants; else give all four")
    consistency: Viscosity | None = Field(default=None, description="viscosity that the law has at a shear rate of 1/s")
    n: float | None = Field(default=None, gt=0, le=1, description="exponent: stress ~ g^n")
    shear_rate_min: PositiveRate | None = Field(default=None, description="below, the viscosity rises no more")
    shear_rate_max: PositiveRate | None = Field(default=None, description="above, the viscosity falls no more")

    @model_validator(mode="after")
    def _complete(self) -> PowerLawFluid:
        self.all_or_preset(("human",))
        if self.shear_rate_min is not None and self.shear_rate_max is not None:
            if self.shear_rate_min > self.shear_rate_max:
                raise ValueError("shear_rate_min is larger than shear_rate_max")
        return self


class CarreauYasudaFluid(ThinningFluid):
    """Shear-thinning blood: eta = eta_inf + (eta_0 - eta_inf)(1 + (lambda g)^a)^((n - 1)/a)."""

    kind: Literal["carreau-yasuda"]
    preset: Literal["human", "mouse"] | None = Field(
        default=None, description="published constants; else give all five"
    )
    eta_0: Viscosity | None = Field(default=None, description="viscosity at rest")
    eta_inf: Viscosity | None = Field(default=None, description="viscosity at high shear rate")
    relaxation_time: PositiveTime | None = Field(
        default=None, alias="lambda", description="time constant of the thinning"
    )
    a: float | None = Field(default=None, gt=0, le=100, description="sharpness of the transition")
    n: float | None = Field(default=None, gt=0, le=1, description="exponent of the power-law range")

    @model_validator(mode="after")
    def _complete(self) -> CarreauYasudaFluid:
        self.all_or_preset(("human", "mouse"))
        if self.eta_0 is not None and self.eta_inf is not None and self.eta_inf > self.eta_0:
            raise ValueError("eta_inf is larger than eta_0; shear-thinning fluid has eta_inf <= eta_0")
        return self
