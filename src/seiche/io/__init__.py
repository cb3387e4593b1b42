# SPDX-License-Identifier: BSD-3-Clause
"""What goes to and comes from disk: geometry formats, fields, checkpoints."""
