# SPDX-License-Identifier: BSD-3-Clause
"""Options that every command has, and completion in a shell."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tools import reference

from seiche.cli import main

COMMANDS = dict(reference.commands())


@pytest.mark.parametrize("path", ["seiche", "seiche bench", "seiche validate", *COMMANDS])
def test_every_command_has_a_short_option_for_help(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split()[1:], "-h"]) == 0
    assert "-h, --help" in capsys.readouterr().out


def test_the_short_option_of_an_output_is_the_same_everywhere() -> None:
    outputs = {
        path: parameter.opts
        for path, made in COMMANDS.items()
        for parameter in made.params
        if "--output" in parameter.opts
    }
    assert {"seiche run", "seiche render", "seiche report", "seiche schema"} <= set(outputs)
    assert all("-o" in names for names in outputs.values()), outputs


@pytest.mark.parametrize(
    ("words", "expected"), [("seiche ru", "run"), ("seiche run --out", "--output"), ("seiche bench wa", "waves")]
)
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    script = "import sys; sys.argv = ['seiche']; from seiche.cli import main; sys.exit(main())"
    request = {"_SEICHE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), **request}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == [expected], done.stderr
