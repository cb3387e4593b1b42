# SPDX-License-Identifier: BSD-3-Clause
"""Run the Python blocks of pages of documentation as they are printed, each page in a temporary folder.

    python -m tools.run_page docs/howto/notebook.md

The blocks of a page run one after the other in one interpreter, like the cells of a notebook. If a block fails, the
exit status is 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def python_script(text: str) -> str:
    """Return the fenced blocks of Python of a page as a script, in which every line has its number on the page."""
    script = ""
    for match in _BLOCK.finditer(text):
        script += "\n" * (text.count("\n", 0, match.start(1)) - script.count("\n")) + match[1]
    return script


def run_page(page: Path) -> str:
    """Run the blocks of a page; return a message with the line of the page if one fails, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / f"{page.stem}.py"
        script.write_text(python_script(page.read_text()))
        done = subprocess.run([sys.executable, script.name], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = re.findall(rf'File "[^"]*{re.escape(script.name)}", line (\d+)', done.stderr)
    return f"{page}:{lines[0] if lines else 1}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"


def main(pages: list[str]) -> int:
    """Run the pages; return the exit status."""
    for name in pages:
        if message := run_page(Path(name)):
            print(message, file=sys.stderr)
            return 1
        print(f"{len(_BLOCK.findall(Path(name).read_text()))} blocks of {name} run")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
