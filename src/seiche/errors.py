# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions that every layer may raise; each message is one line that says what, where and what to do."""

from __future__ import annotations


class SeicheError(Exception):
    """Base of every error that Seiche raises on purpose."""


class CaseError(SeicheError):
    """A case file, or a model built from one, asks for something impossible; names key, value and allowed range."""


class FormatError(SeicheError):
    """A file is not what its format says; names file, place and reason."""

    def __init__(self, path: object, place: str, reason: str) -> None:
        """Say that `path` is wrong at `place` (byte, line, block ...) because of `reason`."""
        super().__init__(f"{path}: {place}: {reason}")
        self.path, self.place, self.reason = str(path), place, reason


class BackendUnavailable(SeicheError):
    """A device, library or extra that was asked for is not there; names what to install."""


class KernelCompileError(SeicheError):
    """The run-time compiler refused a kernel; carries its log."""


class UnstableError(SeicheError):
    """A field stopped being finite or left its range; names field, place, rank, step and last checkpoint."""


class TransportError(SeicheError):
    """A message between ranks did not arrive or did not fit."""
