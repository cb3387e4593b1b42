# SPDX-License-Identifier: BSD-3-Clause
"""Write the CT image of this example, a part of a head, in Hounsfield units: python phantom.py [head.nii.gz].

The skull is a shell of varying thickness with a porous layer between two compact ones. The suffix of the file is .npz,
or .nii.gz for a NIfTI file, which requires nibabel.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

#: Number of voxels along each axis and their size, mm.
SHAPE, VOXEL = (112, 112, 112), 0.8
#: Centre of the head relative to the middle of the image, and outer radius of the skull, mm.
CENTER, RADIUS = (60.0, 0.0, 0.0), 78.0
#: Thickness of the compact layers, and of the scalp, mm.
COMPACT, SCALP = 1.4, 4.0
#: Hounsfield units of air, scalp, compact and porous bone, and brain.
AIR, SKIN, BONE, POROUS, BRAIN = -1000, 60, 1000, 550, 35


def hounsfield() -> npt.NDArray[np.int16]:
    """Return the image; the middle of it is the origin."""
    x, y, z = (VOXEL * (np.arange(n) - (n - 1) / 2) for n in SHAPE)
    offset = [line - c for line, c in zip((x, y, z), CENTER, strict=True)]
    radius = np.sqrt(offset[0][:, None, None] ** 2 + offset[1][:, None] ** 2 + offset[2] ** 2)
    thickness = 6.0 + 1.2 * np.cos(y / 14.0)[:, None] * np.sin(z / 11.0 + 0.7)
    depth = np.broadcast_to(RADIUS - radius, SHAPE)
    layers = [depth < -SCALP, depth < 0, depth < COMPACT, depth < thickness - COMPACT, depth < thickness]
    return np.select(layers, [AIR, SKIN, BONE, POROUS, BONE], BRAIN).astype(np.int16)


def main(name: str) -> None:
    """Write the image to a file beside this script."""
    path = Path(__file__).with_name(name)
    if name.endswith(".npz"):
        np.savez_compressed(path, hounsfield=hounsfield())
        return
    import nibabel

    affine = np.diag([VOXEL, VOXEL, VOXEL, 1.0])
    affine[:3, 3] = [-VOXEL * (n - 1) / 2 for n in SHAPE]
    image = nibabel.Nifti1Image(hounsfield(), affine)
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "head.npz")
