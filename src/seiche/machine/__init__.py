# SPDX-License-Identifier: BSD-3-Clause
"""Data movement on a machine: measurement, cost models and prediction."""
