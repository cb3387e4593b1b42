# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of adjacent lines in vectors, `kspace/wide.hpp`, only for CPUs."""

from __future__ import annotations

from .kspace import CPP, cpp_bool
from .kspace_lines import radices_of
from .spec import CPP_TYPE, KernelSpec, Members, Real, pointers, typed_members

#: Lines in a vector of 64 bytes.
LANES: dict[Real, int] = {"float32": 16, "float64": 8}
#: Maximum length: a thread has two batches of lines on its stack.
_MAX_LENGTH = 1024
#: Largest factor that is not a prime, and largest prime. Larger primes take longer than a library's convolutions.
_RADIX, _MAX_PRIME = 8, 300


def wide_axis(length: int, real: Real, *, inverse: bool) -> KernelSpec | None:
    """Return the transform of lines of this length along an axis before the last; None as for `wide_rows`."""
    members: Members = (*pointers("spectra roots"), *typed_members("int64", "inner blocks"))
    return _wide("WideSide", length, real, members, inverse=inverse)


def wide_rows(length: int, real: Real, *, inverse: bool) -> KernelSpec | None:
    """Return the transform of rows of reals; None if they, or a prime factor, are too long."""
    members: Members = (*pointers("reals spectra roots"), *typed_members("int64", "rows apart"))
    return _wide("WideRows", length, real, members, inverse=inverse)


def _wide(name: str, length: int, real: Real, members: Members, *, inverse: bool) -> KernelSpec | None:
    if not 2 <= length <= _MAX_LENGTH:
        return None
    radices = _factors(length)
    if max(radices) > _MAX_PRIME:
        return None
    factors = f"{CPP}Radices<{','.join(map(str, radices))}>"
    cpp = f"{CPP}{name}<{CPP_TYPE[real]},{factors},{LANES[real]},{cpp_bool(inverse)}>"
    return KernelSpec(cpp, "kspace/wide.hpp", members, team=True)


def _factors(length: int) -> tuple[int, ...]:
    """Return the factors of a length: primes above 7, and few factors up to 8."""
    primes = []
    for prime in range(11, length + 1, 2):
        while length % prime == 0 and radices_of(prime, _RADIX) is None:
            length //= prime
            primes.append(prime)
    small = radices_of(length, _RADIX)
    assert small is not None
    return (*primes, *(small if length > 1 or not primes else ()))
