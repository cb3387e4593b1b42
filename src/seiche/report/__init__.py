# SPDX-License-Identifier: BSD-3-Clause
"""Results at the end of a run: tables, the summary file, reports and figures."""
