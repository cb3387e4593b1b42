# SPDX-License-Identifier: BSD-3-Clause
"""What moving data costs on a machine: measure it, fit models to it, predict with them."""
