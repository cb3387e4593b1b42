# SPDX-License-Identifier: BSD-3-Clause
"""Checks against exact solutions and published numbers, a package a subject; tests and `seiche validate` share them."""
