# SPDX-License-Identifier: BSD-3-Clause
"""The performance pages and the README's table, made from the stored results: `python -m benchmarks.page`."""
