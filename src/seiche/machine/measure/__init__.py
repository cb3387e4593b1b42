# SPDX-License-Identifier: BSD-3-Clause
"""Measure a machine (`survey.measure`): each module knows how to time one kind of data movement."""
