# SPDX-License-Identifier: BSD-3-Clause
"""Input and output: geometry formats, fields, checkpoints."""
