# SPDX-License-Identifier: BSD-3-Clause
"""What a run did and what it cost: stages, timers, efficiencies, trace and progress."""
