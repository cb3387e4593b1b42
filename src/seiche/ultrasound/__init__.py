# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound by the k-space pseudospectral method, in one, two and three dimensions; SI units."""

from __future__ import annotations
