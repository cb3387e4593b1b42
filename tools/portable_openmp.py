# SPDX-License-Identifier: BSD-3-Clause
"""Copy the compiler's OpenMP library such that it also runs with an older glibc: `portable_openmp.py FOLDER`.

glibc 2.34 moved the functions of libpthread and libdl into libc and gave them the new version GLIBC_2.34, a few of them
GLIBC_2.32. Their behaviour did not change. A libgomp that was linked with such a glibc requires these versions, and an
older glibc rejects it. In the copy these functions have no version, so each glibc uses its own default version. The
copy also requires libpthread and libdl, which contain the functions in an older glibc. The code remains the same.

A function of any other glibc newer than 2.28 ends this program with an error message.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

#: Oldest supported glibc.
OLDEST = (2, 28)
#: Functions of libpthread and libdl that moved into libc, by the version that they received there.
MOVED = {
    "GLIBC_2.32": "pthread_attr_setaffinity_np pthread_getaffinity_np",
    "GLIBC_2.34": "dlclose dlerror dlopen dlsym pthread_attr_getstacksize pthread_attr_setstacksize pthread_create "
    "pthread_detach pthread_join pthread_key_create pthread_key_delete pthread_once pthread_setaffinity_np "
    "pthread_setspecific",
}
#: ELF: index of a global symbol without a version; sizes of the entries Verneed and Vernaux.
UNVERSIONED, NEED_SIZE, VERSION_SIZE = 1, 16, 16


def too_new(version: str) -> bool:
    """Return whether a symbol version is of a glibc newer than the oldest supported one."""
    numbers = re.match(r"GLIBC_(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) > OLDEST


def newer_versions(elf: ELFFile) -> dict[int, str]:
    """Return the versions of newer glibc that a library requires, by their index."""
    needs = elf.get_section_by_name(".gnu.version_r").iter_versions()
    return {aux["vna_other"]: aux.name for _, versions in needs for aux in versions if too_new(aux.name)}


def remove_versions(content: bytearray, start: int, files: int, indices: set[int]) -> None:
    """Remove required versions from the chains of the section `.gnu.version_r`, which begins at byte `start`."""
    need = start
    for _ in range(files):
        _, count, _, first, following = struct.unpack_from("<HHIII", content, need)
        entries, at = [], need + first
        for _ in range(count):
            entry = struct.unpack_from("<IHHII", content, at)
            entries += [entry] if entry[2] not in indices else []
            at += entry[4]
        if not entries:
            raise SystemExit("a library of which only functions of a newer glibc are needed")
        for number, (*entry, _) in enumerate(entries):
            last = number == len(entries) - 1
            place = need + first + number * VERSION_SIZE
            struct.pack_into("<IHHII", content, place, *entry, 0 if last else VERSION_SIZE)
        struct.pack_into("<H", content, need + 2, len(entries))
        need += following


def without_newer_versions(library: Path) -> bytes:
    """Return the content of a library whose moved functions have no version (little-endian ELF)."""
    content = bytearray(library.read_bytes())
    with library.open("rb") as file:
        elf = ELFFile(file)
        removed = newer_versions(elf)
        table = elf.get_section_by_name(".gnu.version")["sh_offset"]
        for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            (index,) = struct.unpack_from("<H", content, table + 2 * number)
            version = removed.get(index)
            if version is None:
                continue
            if symbol.name not in MOVED.get(version, "").split():
                raise SystemExit(f"{library}: {symbol.name} needs {version}. Build the wheel with an older glibc.")
            struct.pack_into("<H", content, table + 2 * number, UNVERSIONED)
        needs = elf.get_section_by_name(".gnu.version_r")
        remove_versions(content, needs["sh_offset"], needs["sh_info"], set(removed))
    return bytes(content)


def compiler_library() -> Path:
    """Return the path of the OpenMP library that the C++ compiler links."""
    compiler = os.environ.get("CXX", "g++").split()
    command = [*compiler, "-print-file-name=libgomp.so.1"]
    path = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    if not path.is_absolute():
        raise SystemExit(f"{' '.join(command)}: no such library")
    return path.resolve()


def main(folder: str) -> None:
    """Write the copy into a folder."""
    copy = Path(folder) / "libgomp.so.1"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(without_newer_versions(compiler_library()))
    needed = [argument for name in ("libpthread.so.0", "libdl.so.2") for argument in ("--add-needed", name)]
    subprocess.run(["patchelf", *needed, str(copy)], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: portable_openmp.py FOLDER")
    main(sys.argv[1])
