# SPDX-License-Identifier: BSD-3-Clause
"""Instrumentation of a run: stages, timers, efficiencies, trace and progress."""
