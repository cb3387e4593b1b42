# SPDX-License-Identifier: BSD-3-Clause
"""Keys of a compressed output: the filter, and the largest error of its stored values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from seiche.case.quantities import PositivePressure, PositiveVelocity
from seiche.case.tables import Table
from seiche.io.compression import Compression, ErrorBound


class ErrorTable(Table):
    """Largest absolute error of stored values by field; each component of a vector has it."""

    def given(self) -> dict[str, float]:
        """Return the bounds (SI units) by field."""
        return {name: getattr(self, name) for name in self.present(type(self).model_fields)}


class WaveErrors(ErrorTable):
    """Largest absolute error of stored values by field; each component of a vector has it."""

    pressure: PositivePressure | None = Field(default=None, description="error of pressures")
    velocity: PositiveVelocity | None = Field(default=None, description="error of velocities")


class CompressedTable(Table):
    """Keys of an output that may be compressed; derived tables add the key `absolute_error`, an `ErrorTable`."""

    compression: Literal["none", "deflate"] = Field(
        default="none", description="deflate: smaller files with the same values, or with these errors"
    )
    relative_error: float | None = Field(
        default=None, ge=1e-7, le=0.1, description="largest error of values relative to them; by default none"
    )

    @property
    def stored_fields(self) -> Iterable[str] | None:
        """Return the names of the fields in the file; None if they are not known."""
        return getattr(self, "fields", None)

    @property
    def absolute_errors(self) -> dict[str, float]:
        """Return the largest absolute errors (SI units) by field."""
        table: ErrorTable | None = getattr(self, "absolute_error", None)
        return table.given() if table is not None else {}

    @model_validator(mode="after")
    def _errors_are_of_compressed_fields(self) -> Self:
        for name in ("relative_error", "absolute_error"):
            if self.compression == "none" and getattr(self, name, None) is not None:
                raise ValueError(f'{name}: is only allowed with compression = "deflate"')
        fields = self.stored_fields
        for name in self.absolute_errors if fields is not None else ():
            if name not in tuple(fields or ()):
                raise ValueError(f"absolute_error.{name}: the file does not contain this field")
        return self

    def compression_of(self, quantities: dict[str, str]) -> Compression | None:
        """Return the compression of a file; `quantities` are the keys of `absolute_error` by name of the field."""
        return Compression(dict(self._bounds(quantities))) if self.compression != "none" else None

    def _bounds(self, quantities: dict[str, str]) -> Iterator[tuple[str, ErrorBound]]:
        for name, key in quantities.items():
            if (absolute := self.absolute_errors.get(key)) is not None:
                yield name, ErrorBound(absolute=absolute)
            elif self.relative_error is not None:
                yield name, ErrorBound(relative=self.relative_error)


def same(names: Iterable[str]) -> dict[str, str]:
    """Return the argument of `compression_of` for fields with the names of keys."""
    return {name: name for name in names}
