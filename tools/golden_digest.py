# SPDX-License-Identifier: BSD-3-Clause
"""Digests of the files of a run, by file and data set; independent of an installed Seiche."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

#: Digest by the name of a data set, or the names of stages in their order.
Table = dict[str, Any]

#: Pictures depend on fonts, time lines on time.
EXCLUDED_SUFFIXES = {".png", ".pdf", ".svg", ".gif", ".mp4", ".html", ".trace"}
#: Attributes of HDF5 files that name programs, hosts and dates.
EXCLUDED_ATTRIBUTES = {"program", "created_by", "creation_date", "host_names", "last_modified"}
#: Keys of summaries for speed, machine, versions and date of a run, and for the prose of estimates. Memory is that of
#: the whole process; the values of `host_overhead`, such as `wait for output`, are measured times in s.
EXCLUDED_KEYS = {
    *("date", "device", "seconds", "mlups", "copy_bandwidth", "efficiency", "versions", "threads", "hosts"),
    *("set_up", "set_up_s", "useful_s", "active_s", "waited_s", "steps_s", "memory_B", "host_overhead", "seiche"),
    *("writing", "counters", "host_messages_s"),
    *("effect", "remedy", "source", "warning"),
}
#: Rows of the table of stages that appear only if they took time.
EXCLUDED_ROWS = {
    *("other", "wait for output", "first step", "prepare steps", "open files", "run control"),
    *("mark inside cells", "assign cells"),
}
#: Estimates whose value depends on the number of comparisons of energies, for which a run takes 1 % of its time.
EXCLUDED_ESTIMATES = {"growth of energy beyond the supply of sources", "relative growth of energy so far"}
_PREAMBLE = struct.Struct("<8sIIQQ28x")


def short(data: bytes) -> str:
    """Return the first 48 bits of the SHA-256 of `data`, enough to detect a change."""
    return hashlib.sha256(data).hexdigest()[:12]


def of_json(value: Any) -> str:
    """Return the digest of a value as written in JSON."""
    return short(json.dumps(value, sort_keys=True).encode())


def of_array(array: np.ndarray) -> str:
    """Return the digest of type, shape and content."""
    if array.dtype.hasobject:
        return of_json([array.shape, repr(array.tolist())])
    return short(f"{array.dtype.descr}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())


def of_hdf5(path: Path) -> Table:
    """Return the digests of all data sets, attributes ("path@name") and links of an HDF5 file."""
    table: Table = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        for key, value in item.attrs.items():
            if key not in EXCLUDED_ATTRIBUTES:
                table[f"{name}@{key}"] = of_array(np.asarray(value))
        if isinstance(item, h5py.Dataset):
            table[name] = of_array(np.asarray(item[()]))
            return
        for key in item:
            link = item.get(key, getlink=True)
            if isinstance(link, h5py.SoftLink | h5py.ExternalLink):
                table[f"{name}/{key}"] = "-> " + getattr(link, "filename", "") + link.path
            else:
                visit(f"{name}/{key}" if name else key, item[key])

    with h5py.File(path) as file:
        visit("", file)
    return table


def of_checkpoint(path: Path) -> Table:
    """Return the digests of the arrays of a checkpoint, rows in the order of their keys, and of its attributes.

    Version 1 has one set of rows, whose keys are its first array; version 2 has several, each after its keys, and
    arrays without rows; version 3 has keys of 32 bits.
    """
    data = path.read_bytes()
    _, version, _, offset, length = _PREAMBLE.unpack(data[: _PREAMBLE.size])
    footer = json.loads(data[offset : offset + length])
    position = 64

    def take(item: dict[str, Any], *count: int) -> np.ndarray:
        nonlocal position
        shape = (*count, *item["shape"])
        array = np.frombuffer(data, np.dtype(item["dtype"]), int(np.prod(shape)), position).reshape(shape)
        position += array.nbytes
        return array

    table: Table = {"version": of_json(version)}
    if version == 1:
        table |= {"sites": of_json(footer["sites"]), "time_step": of_json(footer["time_step"])}
        sets = [("site", footer["sites"], footer["arrays"][1:])]
    else:
        table["time_step"] = of_json(footer["step"])
        sets = [(f"keys of {rows['name']}", rows["total"], rows["arrays"]) for rows in footer["sets"]]
    for name, total, arrays in sets:
        dtype = "<u4" if version > 2 and total <= 1 << 32 else "<i8"
        keys = take({"dtype": dtype, "shape": []}, total).astype(np.int64)
        order = np.argsort(keys, kind="stable")
        table[name] = of_array(keys[order])
        table |= {item["name"]: of_array(take(item, total)[order]) for item in arrays}
    table |= {item["name"]: of_array(take(item)) for item in footer.get("numbers", [])}
    return table | {f"@{name}": of_json(value) for name, value in footer["attributes"].items()}


def of_json_file(path: Path) -> Table:
    """Return the digests of a JSON file by key; for stages only their names, without times."""
    content = json.loads(path.read_text())
    table: Table = {}
    if isinstance(content, dict) and str(content.get("schema", "")).startswith("seiche-summary"):
        rows = [row["name"] for row in content.pop("stages", [])]
        table["stages"] = [name for name in rows if name not in EXCLUDED_ROWS]
        estimates = content.get("estimates") or []
        content["estimates"] = [entry for entry in estimates if entry["name"] not in EXCLUDED_ESTIMATES]
        movement = content.get("movement") or {}
        table["movement.stages"] = [*movement.pop("stages", {})]
        table["movement.message_stages"] = movement.pop("message_stages", [])
    return table | dict(_leaves(content, ""))


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the digests of the leaves of tables, and of lists of tables column by column."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in EXCLUDED_KEYS:
                yield from _leaves(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        keys = dict.fromkeys(key for row in value for key in row)
        yield from _leaves({key: [row.get(key, {}) for row in value] for key in keys}, name)
    else:
        yield name, of_json(value)


def of_file(path: Path) -> Table | None:
    """Return the digests of a file by data set, None for pictures, web pages and traces."""
    with path.open("rb") as file:
        magic = file.read(8)
    if path.suffix in EXCLUDED_SUFFIXES:
        return None
    if magic == b"\x89HDF\r\n\x1a\n":
        return of_hdf5(path)
    if magic == b"\x89SEICHE\n":
        return of_checkpoint(path)
    if path.suffix == ".json":
        return of_json_file(path)
    return {"content": short(path.read_bytes())}


def of_folder(folder: Path) -> dict[str, Table]:
    """Return the digests of all files in a folder except hidden ones; SAC files share one table."""
    tables: dict[str, Table] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = path.name.startswith(".")  # the record of a run, with its date
        table = of_file(path) if path.is_file() and not path.is_symlink() and not hidden else None
        if table is None:
            continue
        if ".sac/" in name:
            tables.setdefault(re.sub(r"\.sac/.*", ".sac", name), {})[path.name] = table["content"]
        else:
            tables[name] = table
    return tables
