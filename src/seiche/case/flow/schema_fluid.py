# SPDX-License-Identifier: BSD-3-Clause
"""Shear-thinning fluids of the case file; presets contain published constants of blood."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from seiche.case.quantities import PositiveRate, PositiveTime, Pressure, Viscosity
from seiche.case.tables import Table


class ThinningFluid(Table):
    """A law with all constants given, or with a preset."""

    def check_constants(self, presets: tuple[str, ...]) -> None:
        """Refuse a preset together with constants, an incomplete set, and eta_inf above eta_0."""
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        constants = [name for name in names if name not in ("kind", "preset")]
        present = [names[name] for name in constants if getattr(self, name) is not None]
        preset, count = getattr(self, "preset", None), {2: "two", 3: "three", 4: "four", 5: "five"}[len(constants)]
        if preset is not None and present:
            raise ValueError(f'preset = "{preset}" already sets {present[0]}; give a preset or all {count} constants')
        if preset is None and len(present) < len(constants):
            missing = next(names[name] for name in constants if getattr(self, name) is None)
            listed = ", ".join(names[name] for name in constants[:-1]) + f" and {names[constants[-1]]}"
            raise ValueError(f"{missing} is missing; give {listed}, or a preset ({', '.join(presets)})")
        low, high = getattr(self, "eta_inf", None), getattr(self, "eta_0", None)
        if low is not None and high is not None and low > high:
            raise ValueError("eta_inf is larger than eta_0; a shear-thinning fluid has eta_inf <= eta_0")


class CassonFluid(ThinningFluid):
    """Blood with a yield stress: eta = (sqrt(yield_stress) + sqrt(eta_inf g))^2/g, at most eta_0; g the shear rate."""

    kind: Literal["casson"]
    preset: Literal["human"] | None = Field(default=None, description="published constants; else give all three")
    yield_stress: Pressure | None = Field(default=None, ge=0, description="stress below which the fluid hardly flows")
    eta_inf: Viscosity | None = Field(default=None, description="viscosity at high shear rate")
    eta_0: Viscosity | None = Field(default=None, description="viscosity at zero shear rate, the maximum")

    @model_validator(mode="after")
    def _complete(self) -> CassonFluid:
        self.check_constants(("human",))
        return self


class PowerLawFluid(ThinningFluid):
    """A truncated power law: eta = consistency (g s)^(n - 1), with the shear rate g limited to a range."""

    kind: Literal["power-law"]
    preset: Literal["human"] | None = Field(default=None, description="published constants; else give all four")
    consistency: Viscosity | None = Field(default=None, description="viscosity of the law at a shear rate of 1/s")
    n: float | None = Field(default=None, gt=0, le=1, description="exponent: stress ~ g^n")
    shear_rate_min: PositiveRate | None = Field(default=None, description="the viscosity is constant below")
    shear_rate_max: PositiveRate | None = Field(default=None, description="the viscosity is constant above")

    @model_validator(mode="after")
    def _complete(self) -> PowerLawFluid:
        self.check_constants(("human",))
        low, high = self.shear_rate_min, self.shear_rate_max
        if low is not None and high is not None and low > high:
            raise ValueError("shear_rate_min is larger than shear_rate_max")
        return self


class CarreauYasudaFluid(ThinningFluid):
    """Shear-thinning blood: eta = eta_inf + (eta_0 - eta_inf)(1 + (lambda g)^a)^((n - 1)/a)."""

    kind: Literal["carreau-yasuda"]
    preset: Literal["human", "mouse"] | None = Field(
        default=None, description="published constants; else give all five"
    )
    eta_0: Viscosity | None = Field(default=None, description="viscosity at zero shear rate")
    eta_inf: Viscosity | None = Field(default=None, description="viscosity at high shear rate")
    relaxation_time: PositiveTime | None = Field(default=None, alias="lambda", description="time constant")
    a: float | None = Field(default=None, gt=0, le=100, description="sharpness of the transition")
    n: float | None = Field(default=None, gt=0, le=1, description="exponent of the power-law range")

    @model_validator(mode="after")
    def _complete(self) -> CarreauYasudaFluid:
        self.check_constants(("human", "mouse"))
        return self
