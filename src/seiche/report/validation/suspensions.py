# SPDX-License-Identifier: BSD-3-Clause
"""Checks of red cells in tubes: Pries's viscosity and hematocrits, the layer without cells, shear thinning, endurance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.report.validation.check import Check, Setting
from seiche.report.validation.red_cells import PLASMA, Lattice
from seiche.report.validation.tubes import Flowing, Suspension, hematocrit_ratio, relative_viscosity

_PRIES = "Pries et al. 1992, doi:10.1152/ajpheart.1992.263.6.H1770"
_FAHRAEUS = "Pries et al. 1990, Circ. Res. 67, 826"

