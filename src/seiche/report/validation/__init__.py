# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the flow solver against exact solutions, one module a family; tests and `seiche validate` share them."""
