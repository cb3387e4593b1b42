# SPDX-License-Identifier: BSD-3-Clause
"""`make sanitize`: CPU kernels compiled with checks end a process that reads or writes beyond an array."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import sanitize

#: Updates eight numbers more than the array has in place, or as many.
UPDATE = """
from seiche.backend import open_backend
import numpy as np
library = open_backend("cpu", 1)._library
array = np.zeros(1000)
library.seiche_move(array.ctypes.data, array.ctypes.data, 1000 + {more}, 2, 1)
print("updated")
"""


@pytest.mark.slow
def test_a_kernel_that_leaves_its_array_is_found(tmp_path: Path) -> None:
    compiler = [*(os.environ.get("CXX", "g++").split()), *sanitize.SANITIZERS]
    if shutil.which(compiler[0]) is None or "/" not in sanitize.runtimes(compiler).partition(":")[0]:
        pytest.skip("no compiler with AddressSanitizer")
    # In a process of its own: the copy of the package must not be mixed with the one that is tested.
    code = (
        f"from pathlib import Path; from tools import sanitize; sanitize.prepare(Path({str(tmp_path)!r}), {compiler})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=sanitize.ROOT, check=True, env=os.environ | {"PYTHONPATH": "."})
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    result = []
    for more in (0, 8):
        command = [*sanitize.checked_python(compiler), "-c", UPDATE.format(more=more)]
        result.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
        )
    assert (result[0].returncode, result[0].stdout) == (0, "updated\n"), result[0].stderr
    assert result[1].returncode == 77 and "heap-buffer-overflow" in result[1].stderr
    assert "seiche_move" in result[1].stderr
