# SPDX-License-Identifier: BSD-3-Clause
"""Cases of waves: tables of their own, the same commands."""
