# SPDX-License-Identifier: BSD-3-Clause
"""CPU instantiations of the kernels: a table with a C ABI, built at installation."""
