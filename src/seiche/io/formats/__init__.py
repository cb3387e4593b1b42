# SPDX-License-Identifier: BSD-3-Clause
"""File formats of other programs; a reader either returns what the file says or raises `FormatError`."""
