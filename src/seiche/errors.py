# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions of all layers. Each message is one line that states the problem, its location and what to do."""

from __future__ import annotations


class SeicheError(Exception):
    """Base of all deliberate errors."""


class CaseError(SeicheError):
    """A case file, or a model built from one, is invalid; names key, value and allowed range."""


class FormatError(SeicheError):
    """A file violates its format; names file, location and reason."""

    def __init__(self, path: object, location: str, reason: str) -> None:
        """Report an error in `path` at `location` (byte, line, block ...) because of `reason`."""
        reason = " ".join(reason.split())  # texts of damaged files may contain line breaks
        super().__init__(f"{path}: {location}: {reason}")
        self.path, self.location, self.reason = str(path), location, reason

    @property
    def place(self) -> str:
        """Return `location`, under its former name."""
        return self.location


class BackendUnavailable(SeicheError):
    """A requested device, library or optional dependency is missing; names the package to install."""


class KernelCompileError(SeicheError):
    """The run-time compiler rejected a kernel; contains its log."""


class UnstableError(SeicheError):
    """A field is not finite or out of range; names field, position, rank, step and last checkpoint."""


class TransportError(SeicheError):
    """A message between ranks did not arrive or had the wrong size."""
