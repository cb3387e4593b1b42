# SPDX-License-Identifier: BSD-3-Clause
"""Copies of other ranks' data: which slots (`HaloPlan`), how they travel (`transports`), and the exchange of both."""

from __future__ import annotations

from seiche.halo.exchange import HaloExchange, Mode
from seiche.halo.plan import HaloPlan, build_plan

__all__ = ["HaloExchange", "HaloPlan", "Mode", "build_plan"]
