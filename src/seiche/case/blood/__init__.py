# SPDX-License-Identifier: BSD-3-Clause
"""Cases of flow with cells."""
