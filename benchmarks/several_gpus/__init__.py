# SPDX-License-Identifier: BSD-3-Clause
"""Sets of measurements on several GPUs of one host, or on several ranks of a CPU."""
