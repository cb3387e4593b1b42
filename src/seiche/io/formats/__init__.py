# SPDX-License-Identifier: BSD-3-Clause
"""File formats of other programs; readers raise `FormatError` for invalid files."""
