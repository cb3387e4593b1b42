# SPDX-License-Identifier: BSD-3-Clause
"""What a run shows at its end: tables, the summary file and figures."""
