# SPDX-License-Identifier: BSD-3-Clause
"""Words of devices."""

from __future__ import annotations

import pytest

from seiche.backend import Device, parse_device
from seiche.errors import BackendUnavailable


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("cpu", Device("cpu")),
        ("cuda", Device("cuda")),
        ("cuda:12", Device("cuda", 12)),
        ("cuda:free", Device("cuda", first_free=True)),
        ("cpu:planned", Device("cpu", is_planned=True)),
        ("cuda:planned", Device("cuda", is_planned=True)),
    ],
)
def test_words_of_devices(word: str, named: Device) -> None:
    assert parse_device(word) == named
    assert parse_device(named.planned) == Device(named.kind, is_planned=True)


@pytest.mark.parametrize("word", ["", "gpu", "cpu:", "cpu:1", "cuda:", "cuda:-1", "cuda:\u00b2", "cuda:x", None, 3])
def test_other_words_name_no_device(word: object) -> None:
    with pytest.raises(BackendUnavailable, match=r"device .* is unknown: use 'cpu', 'cuda' or 'cuda:K'"):
        parse_device(word)  # type: ignore[arg-type]
