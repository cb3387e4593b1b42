# SPDX-License-Identifier: BSD-3-Clause
"""Triangles of Gmsh files, version 2, text: nodes `id x y z`, elements `id type tags... nodes`, type 2 a triangle."""

from __future__ import annotations

import os

import numpy as np

from seiche.domain.surface import Surface
from seiche.errors import FormatError
from seiche.io.formats.off import content_lines, read_numbers

_TRIANGLE = 2


def read_gmsh(path: str | os.PathLike[str]) -> Surface:
    """Read the triangles of a Gmsh 2 text file, in the unit of the file, without other elements and unused nodes.

    Raises FormatError for another version, a binary file, missing or truncated sections and elements with nodes that do
    not exist, OSError if the file cannot be read.
    """
    lines = content_lines(path)
    version = _section(path, lines, "MeshFormat")
    if not version or version[0][1].split()[:2] not in (["2", "0"], ["2.0", "0"], ["2.1", "0"], ["2.2", "0"]):
        raise FormatError(path, "line 2", "expected Gmsh version 2 in text form")
    nodes = [read_numbers(path, *line, 4) for line in _entries(path, _section(path, lines, "Nodes"), "nodes")]
    row_of = {int(node[0]): row for row, node in enumerate(nodes)}
    faces = []
    for line_number, line in _entries(path, _section(path, lines, "Elements"), "elements"):
        words = line.split()
        if not all(word.lstrip("-").isdigit() for word in words) or len(words) < 4:
            raise FormatError(path, f"line {line_number}", "expected an element as number, type, tags and nodes")
        if int(words[1]) != _TRIANGLE:
            continue
        corners = [row_of.get(int(word), -1) for word in words[3 + int(words[2]) :]]
        if len(corners) != 3 or min(corners) < 0:
            raise FormatError(path, f"line {line_number}", "expected a triangle of three existing nodes")
        faces.append(corners)
    if not faces:
        raise FormatError(path, "whole file", "contains no triangle")
    used_nodes, renumbered = np.unique(np.array(faces), return_inverse=True)
    return Surface(np.array(nodes)[used_nodes, 1:], renumbered.reshape(-1, 3).astype(np.int32))


def _section(path: str | os.PathLike[str], lines: list[tuple[int, str]], name: str) -> list[tuple[int, str]]:
    """Return the lines between $name and $Endname."""
    words = [line for _, line in lines]
    if f"${name}" not in words or f"$End{name}" not in words:
        raise FormatError(path, "whole file", f"the section ${name} is missing or has no end")
    return lines[words.index(f"${name}") + 1 : words.index(f"$End{name}")]


def _entries(path: str | os.PathLike[str], lines: list[tuple[int, str]], item: str) -> list[tuple[int, str]]:
    """Return the lines after the first one, which has their number."""
    if not lines or not lines[0][1].isdigit() or int(lines[0][1]) != len(lines) - 1:
        location = f"line {lines[0][0]}" if lines else "whole file"
        raise FormatError(path, location, f"the number of {item} differs from the number of lines ({len(lines) - 1})")
    return lines[1:]
