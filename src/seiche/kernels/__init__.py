# SPDX-License-Identifier: BSD-3-Clause
"""Kernel headers (C++20, one functor per file) and the registry of the specialisations that Seiche uses."""
