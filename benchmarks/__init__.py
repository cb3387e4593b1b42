# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks of Seiche that are not commands of the package, and their stored results."""
