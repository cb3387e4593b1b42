# SPDX-License-Identifier: BSD-3-Clause
"""Run short cases of every kind with CPU kernels that check addresses and undefined behaviour.

    python tools/sanitize.py build/sanitize                    # the small cases of tools/golden.py on one rank
    python tools/sanitize.py build/sanitize 'flow,waves*'      # some of them

A copy of the package in the folder gets a table without kernels, so that each kernel is compiled on first use, with
AddressSanitizer and UndefinedBehaviorSanitizer. NumPy allocates the arrays with the checked allocator. The first error
of a kernel ends its run. The digests of the outputs must also agree with the stored baseline.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SANITIZERS = (
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"),
    # Null is a valid address of an array without items.
    "-fno-sanitize=null,pointer-overflow",
)
#: Libraries that must be loaded before all others; the second because the first replaces functions of it.
RUNTIMES = ("libasan.so", "libstdc++.so")


#: The small cases of all kinds: layouts, precisions, walls, openings, cells, schemes, integrators.
SMALL = "flow*,windkessel,rotor,blood*,waves,attenuation,leapfrog*,ultrasound*,tissue*,sensors"


def prepare(folder: Path, compiler: list[str]) -> Path:
    """Copy the package into `folder` with a checked library without kernels; return the folder of the package."""
    package = folder / "seiche"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "seiche", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    sys.path.insert(0, str(folder))
    from seiche.backend.host_compiler import flags_of
    from seiche.native.levels import cpu_field, levels_of
    from seiche.native.make_table import headers_hash

    kernels = package / "kernels"
    source = (
        '#include "row.hpp"\nnamespace seiche {\nconst Row* const tables[] = {nullptr};\n'
        "const int none = 0;\nconst int* const table_sizes[] = {&none};\nconst int table_count = 0;\n"
        f'const char* const headers = "launch.hpp";\n'
        f'const char* const headers_hash = "{headers_hash(kernels, ["launch.hpp"])}";\n}}\n#include "native.cpp"\n'
    )
    level = levels_of(cpu_field("flags").split())[0]
    includes, target = (f"-I{kernels}", f"-I{package / 'native'}"), str(package / "native" / f"seiche_{level}.so")
    command = [*compiler, *flags_of(level), *includes, "-x", "c++", "-", "-o", target]
    subprocess.run(command, input=source, text=True, check=True)
    return package


def runtimes(compiler: list[str]) -> str:
    """Return the libraries that a process must load before all others."""
    paths = [
        subprocess.run([compiler[0], f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        for name in RUNTIMES
    ]
    return ":".join(path.strip() for path in paths)


def checked_python(compiler: list[str]) -> list[str]:
    """Return the command that starts Python with the libraries of the sanitizers."""
    variables = {
        "LD_PRELOAD": runtimes(compiler),
        # Python and its libraries do not free all memory before the process ends.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=77",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable]


def main(folder: Path, only: str = SMALL) -> int:
    """Run the cases; return the status of the comparison with the baseline."""
    compiler = [*shlex.split(os.environ.get("CXX", "g++")), *SANITIZERS]
    folder = folder.absolute()
    prepare(folder, compiler)
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "CXX": shlex.join(compiler),
        "SEICHE_CACHE": str(folder / "kernels"),
    }
    seiche = [*checked_python(compiler), "-m", "seiche"]
    words = ["compare", "--ranks", "1", "--only", only, "--seiche", shlex.join(seiche), "--verbose"]
    command = [sys.executable, str(ROOT / "tools" / "golden.py"), *words]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
