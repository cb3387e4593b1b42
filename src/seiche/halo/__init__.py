# SPDX-License-Identifier: BSD-3-Clause
"""Halo exchange: which slots are copied (`HaloPlan`), how messages travel (`transports`), and the exchange itself."""

from __future__ import annotations

from seiche.halo.exchange import HaloExchange, Mode
from seiche.halo.plan import HaloPlan, build_plan

__all__ = ["HaloExchange", "HaloPlan", "Mode", "build_plan"]
