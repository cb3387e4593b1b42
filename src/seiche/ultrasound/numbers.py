# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of user input to real numbers, with messages that begin with `name`; factors of whole numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError


def real_numbers(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return an array in double precision; raise CaseError for anything but real numbers."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":  # not complex numbers, nor texts that parse as numbers
            raise TypeError(array.dtype)
        return np.asarray(array, np.float64)
    except (TypeError, ValueError):
        raise CaseError(f"{name}: is not an array of numbers") from None


def one_number(name: str, value: npt.ArrayLike) -> float:
    """Return a real number; raise CaseError for another count."""
    array = real_numbers(name, value)
    if array.size != 1:
        raise CaseError(f"{name}: shape {array.shape} is not one number")
    return float(array.ravel()[0])


def positive_number(name: str, value: npt.ArrayLike) -> float:
    """Return a finite number above zero; raise CaseError for others."""
    number = one_number(name, value)
    if not (np.isfinite(number) and number > 0):
        raise CaseError(f"{name}: {number:g} is not a finite number > 0")
    return number


def whole_number(name: str, value: float) -> int:
    """Return an integer; raise CaseError for other numbers."""
    try:
        if int(value) == value:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise CaseError(f"{name}: {value} is not a whole number")


def prime_factors(number: int) -> list[int]:
    """Return the factors of a number: fours first, then primes in ascending order."""
    factors = []
    for factor in (4, 2, 3, 5):
        while number % factor == 0:
            factors.append(factor)
            number //= factor
    candidate = 7
    while number > 1:
        if candidate * candidate > number:
            candidate = number
        while number % candidate == 0:
            factors.append(candidate)
            number //= candidate
        candidate += 2
    return factors


def largest_prime_factor(number: int) -> int:
    """Return the largest prime factor of a positive number; 1 for 1."""
    return max(prime_factors(number), default=1)
