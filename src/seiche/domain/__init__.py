# SPDX-License-Identifier: BSD-3-Clause
"""Who owns what: site sets, partitions and the processes of a run (plain Python, no device arrays)."""
