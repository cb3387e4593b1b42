# SPDX-License-Identifier: BSD-3-Clause
"""The CPU instantiations of the kernels: a table behind a C ABI, built at install, no logic."""
