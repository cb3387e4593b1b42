# SPDX-License-Identifier: BSD-3-Clause
"""Laws of moving data: machine files, models, their fits, and what they predict of exchanges and steps."""
