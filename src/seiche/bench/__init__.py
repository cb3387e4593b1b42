# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks: cost of a step in comparison with memory traffic, bandwidth, models and other codes."""
