# SPDX-License-Identifier: BSD-3-Clause
"""Pages whose Python blocks the build of the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.run_page import main, python_script

from page_blocks import ROOT

PAGE = """# Page

```python
number = 1
```

```sh
exit 1
```

```python
assert number == {}, "another number"
```
"""


def test_blocks_run_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(1))
    assert main([str(page)]) == 0
    assert capsys.readouterr().out == f"2 blocks of {page} run\n"
    page.write_text(PAGE.format(2))
    assert main([str(page)]) == 1
    assert capsys.readouterr().err == f"{page}:12: AssertionError: another number\n"


def test_the_build_of_the_documentation_runs_the_notebook_page() -> None:
    recipe = re.search(r"^docs:.*?\n\n", (ROOT / "Makefile").read_text(), re.DOTALL | re.MULTILINE)
    assert recipe is not None
    (page,) = re.findall(r"tools\.run_page (\S+)", recipe[0])
    assert python_script((ROOT / page).read_text()).count("new_case(") == 4
