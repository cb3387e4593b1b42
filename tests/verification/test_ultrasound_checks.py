# SPDX-License-Identifier: BSD-3-Clause
"""The checks of `seiche validate ultrasound`, in their quick form, and the command itself."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from seiche.cli import main
from seiche.validate import ultrasound as validate_ultrasound
from seiche.validate.check import Check, Setting
from seiche.validate.ultrasound import continuous_waves


@cache
def found(family: Callable[[Setting], list[Check]], device: str) -> list[Check]:
    """Return the checks of a family, computed once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks are of what is warned of
        return family(Setting(device, quick=True))


@pytest.mark.parametrize("family", validate_ultrasound.FAMILIES, ids=lambda family: family.__name__)
def test_sound_passes_its_checks(family, device: str):
    for check in found(family, device):
        assert check.passed, f"{check.name}: {check.value:.3g}, bound {check.bound:g}"


def test_command_stores_and_draws_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settings: list[Setting] = []

    def orders(setting: Setting) -> list[Check]:
        settings.append(setting)
        return found(continuous_waves.orders, "cpu")

    monkeypatch.setattr(validate_ultrasound, "FAMILIES", (orders,))
    target, plots = tmp_path / "sound.json", tmp_path / "plots"
    assert main(["validate", "ultrasound", "--quick", "--json", str(target), "--plots", str(plots)]) == 0
    assert [check["passed"] for check in json.loads(target.read_text())["checks"]] == [True, True]
    assert sorted(picture.name for picture in plots.iterdir()) == [
        "exact-order-in-time.png",
        "local4-order-in-time.png",
    ]
    assert [(setting.device, setting.quick) for setting in settings] == [("cpu", True)]
