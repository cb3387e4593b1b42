# SPDX-License-Identifier: BSD-3-Clause
"""Site sets, partitions and the processes of a run (plain Python, no device arrays)."""
