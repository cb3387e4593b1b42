# SPDX-License-Identifier: BSD-3-Clause
"""Measure a machine (`survey.measure`): each module times one kind of data movement."""
