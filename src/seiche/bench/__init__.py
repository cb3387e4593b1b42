# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks: what a step costs, against bytes, bandwidth, models and other codes."""
