# SPDX-License-Identifier: BSD-3-Clause
"""The kernel headers (C++20, one functor a file) and the registry of the specialisations that Seiche uses."""
