# SPDX-License-Identifier: BSD-3-Clause
"""Puts this folder on the path of the tests, for the helpers that lie in it."""
