# SPDX-License-Identifier: BSD-3-Clause
"""Acoustic medium from a CT image of a head: bone by its porosity (theory/ultrasound, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import real_numbers

#: Hounsfield units of air.
AIR = -1000.0
#: Hounsfield units between which the density of tissue is linear, and the slopes and intercepts (kg/m3) there, of
#: the fit of k-Wave to the tissues of Schneider, Pedroni and Lomax, Phys. Med. Biol. 41 (1996) 111-124. The argument
#: is the value plus 1000.
_DENSITY_LIMITS = (-70.0, 98.0, 260.0)
_DENSITY_FITS = (
    (1.025793065681423, -5.680404011488714),
    (0.9082709691264, 103.6151457847139),
    (0.5108369316599, 539.9977189228704),
    (0.6625370912451, 348.8555178455294),
)
#: Slope and intercept of the density as a function of the sound speed (m/s): Mast, Acoust. Res. Lett. Online 1 (2000)
#: 37-42, for soft tissues.
_MAST = (0.893, -349.0)
#: Lowest value of the density fit; air below it has the density of this value.
_LOWEST = -990.0


def tissue_of_ct(hounsfield: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return sound speed (m/s) and density (kg/m3) of tissues by their Hounsfield units.

    The density is a fit in four linear pieces to measured tissues (Schneider et al. 1996). The sound speed is that of
    soft tissues of this density (Mast 2000); for bone it is an extrapolation.

    Raises:
        CaseError: the image is not an array of finite numbers.
    """
    image = real_numbers("hounsfield", hounsfield)
    if not image.ndim or not np.isfinite(image).all():
        raise CaseError("hounsfield: is not an array of finite numbers")
    shifted = np.maximum(image, _LOWEST) + 1000.0
    first, second, third = (limit + 1000.0 for limit in _DENSITY_LIMITS)
    pieces = [slope * shifted + intercept for slope, intercept in _DENSITY_FITS]
    density = np.select([shifted < first, shifted <= second, shifted < third], pieces[:3], pieces[3])
    return np.asarray((density - _MAST[1]) / _MAST[0]), np.asarray(density)


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
        shear_speed: of compact bone, m/s, for the elastic solver. The ratio of shear and sound speeds, and with it
            Poisson's ratio, is the same in all bone; soft tissue has no shear waves.
        shear_attenuations: of shear waves, minimum and maximum of bone, dB/(MHz^2 cm).
    """

    sound_speeds: tuple[float, float] = (1500.0, 3100.0)
    densities: tuple[float, float] = (1000.0, 2100.0)
    attenuations: tuple[float, float, float] = (0.0, 2.0, 16.0)
    exponent: float = 0.5
    hounsfield: tuple[float, float] = (0.0, 1000.0)
    threshold: float = 100.0
    shear_speed: float | None = None
    shear_attenuations: tuple[float, float] | None = None


def medium_of_ct(
    hounsfield: npt.ArrayLike,
    *,
    model: BoneModel | None = None,
    alpha_power: float | None = 1.1,
    BonA: float | None = None,
) -> Medium:
    """Return the medium of a CT image in Hounsfield units: an array in the shape of the grid (eq. 31).

    Values above that of compact bone (metal, artefacts) are treated as compact bone. Without `alpha_power` there is no
    absorption. With a shear speed of the model, its exponent must be 2.

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

    def attenuation(soft: float, minimum: float, maximum: float) -> npt.NDArray[np.float64]:
        porous = minimum + (maximum - minimum) * (1 - bone_fraction) ** bone.exponent
        return np.asarray(np.where(is_bone, porous, soft))

    (soft_speed, bone_speed), (soft_density, bone_density) = bone.sound_speeds, bone.densities
    speed = soft_speed + (bone_speed - soft_speed) * bone_fraction
    shear_speed, shear_loss = bone.shear_speed, bone.shear_attenuations
    if shear_speed is None and shear_loss is not None:
        raise CaseError("model.shear_speed: is missing; shear_attenuations needs it")
    return Medium(
        speed,
        soft_density + (bone_density - soft_density) * bone_fraction,
        BonA=BonA,
        alpha_coeff=None if alpha_power is None else attenuation(*bone.attenuations),
        alpha_power=alpha_power,
        shear_speed=None if shear_speed is None else np.where(is_bone, speed * shear_speed / bone_speed, 0.0),
        shear_alpha_coeff=None if alpha_power is None or shear_loss is None else attenuation(0.0, *shear_loss),
    )
