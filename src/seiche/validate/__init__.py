# SPDX-License-Identifier: BSD-3-Clause
"""Checks against exact solutions and published values, one package per subject; for `seiche validate` and tests."""
