# SPDX-License-Identifier: BSD-3-Clause
"""From a CT image of a head to a medium: bone by its porosity (theory/ultrasound, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.medium import Medium


@dataclass(frozen=True)
class BoneModel:
    """What lies between soft tissue (or water) and compact bone.

    Attributes:
        sound_speeds: of soft tissue and compact bone, m/s.
        densities: kg/m3.
        attenuations: of soft tissue, and the least and greatest of bone, dB/(MHz^y cm).
        exponent: how attenuation grows with porosity.
        hounsfield: values that mean no bone and compact bone.
        threshold: values below count as soft tissue.
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

    Values above compact bone (metal, artefacts) count as compact bone. Without `alpha_power` nothing is absorbed.

    Raises:
        CaseError: not numbers, or none above the threshold.
    """
    bone = model or BoneModel()
    try:
        image = np.asarray(hounsfield, np.float64)
    except (TypeError, ValueError):
        raise CaseError("hounsfield: is not an array of numbers") from None
    if not image.ndim or not np.isfinite(image).all():
        raise CaseError("hounsfield: is not an array of finite numbers")
    low, high = bone.hounsfield
    if not low < high:
        raise CaseError(f"hounsfield: no bone at {low:g} and compact bone at {high:g} is not an ascending pair")
    is_bone = image >= bone.threshold
    if not is_bone.any():
        raise CaseError(
            f"hounsfield: no value reaches the threshold {bone.threshold:g}; the greatest is {image.max():g}"
        )
    compact = np.where(is_bone, np.clip((image - low) / (high - low), 0.0, 1.0), 0.0)
    soft, least, greatest = bone.attenuations
    attenuation = np.where(is_bone, least + (greatest - least) * (1 - compact) ** bone.exponent, soft)
    (slow, fast), (light, heavy) = bone.sound_speeds, bone.densities
    return Medium(
        slow + (fast - slow) * compact,
        light + (heavy - light) * compact,
        BonA=BonA,
        alpha_coeff=None if alpha_power is None else attenuation,
        alpha_power=alpha_power,
    )
