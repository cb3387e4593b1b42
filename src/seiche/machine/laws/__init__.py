# SPDX-License-Identifier: BSD-3-Clause
"""Cost models of data movement: machine files, models, fits, and predictions for exchanges and steps."""
