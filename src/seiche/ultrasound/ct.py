# SPDX-License-Identifier: BSD-3-Clause
"""Acoustic medium from a CT image of a head: bone by its porosity (theory/ultrasound, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import real_numbers


@dataclass(frozen=True)
class BoneModel:
    """Properties between soft tissue (or water) and compact bone.

    Attributes:
        sound_speeds: of soft tissue and compact bone, m/s.
        densities: the same, kg/m3.
        attenuations: of soft tissue, and minimum and maximum of bone, dB/(MHz^y cm).
        exponent: of the growth of attenuation with porosity.
        hounsfield: values without bone and of compact bone.
        threshold: values below are soft tissue.
    """

    sound_speeds: tuple[float, float] = (1500.0, 3100.0)
    densities: tuple[float, float] = (1000.0, 2100.0)
    attenuations: tuple[float, float, float] = (0.0, 2.0, 16.0)
    exponent: float = 0.5
    hounsfield: tuple[float, float] = (0.0, 1000.0)
    threshold: float = 100.0


def medium_of_ct(
    hounsfield: npt.ArrayLike,
    *,
    model: BoneModel | None = None,
    alpha_power: float | None = 1.1,
    BonA: float | None = None,
) -> Medium:
    """Return the medium of a CT image in Hounsfield units: an array in the shape of the grid (eq. 31).

    Values above that of compact bone (metal, artefacts) are treated as compact bone. Without `alpha_power` there is no
    absorption.

    Raises:
        CaseError: the image is not an array of numbers, or no value is above the threshold.
    """
    bone = model or BoneModel()
    image = real_numbers("hounsfield", hounsfield)
    if not image.ndim or not np.isfinite(image).all():
        raise CaseError("hounsfield: is not an array of finite numbers")
    no_bone, compact_bone = bone.hounsfield
    if not no_bone < compact_bone:
        raise CaseError(
            f"hounsfield: the value without bone, {no_bone:g}, must be below that of compact bone, {compact_bone:g}"
        )
    is_bone = image >= bone.threshold
    if not is_bone.any():
        raise CaseError(
            f"hounsfield: no value reaches the threshold {bone.threshold:g}; the maximum is {image.max():g}"
        )
    bone_fraction = np.where(is_bone, np.clip((image - no_bone) / (compact_bone - no_bone), 0.0, 1.0), 0.0)
    soft_attenuation, bone_minimum, bone_maximum = bone.attenuations
    attenuation = np.where(
        is_bone, bone_minimum + (bone_maximum - bone_minimum) * (1 - bone_fraction) ** bone.exponent, soft_attenuation
    )
    (soft_speed, bone_speed), (soft_density, bone_density) = bone.sound_speeds, bone.densities
    return Medium(
        soft_speed + (bone_speed - soft_speed) * bone_fraction,
        soft_density + (bone_density - soft_density) * bone_fraction,
        BonA=BonA,
        alpha_coeff=None if alpha_power is None else attenuation,
        alpha_power=alpha_power,
    )
