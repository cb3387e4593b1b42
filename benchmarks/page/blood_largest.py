# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about the largest suspension of one device, its checkpoint and a restart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.page.stored import origin_of, unfit
from seiche.report.table import markdown

_INTRODUCTION = """\
# The largest suspension of one device

A periodic box at the load of Ames et al. (2020): cells of 162 vertices without surface viscosity at a hematocrit of
0.40, sites of 1 um, a delta function of support 3, moments in FP32 (`python benchmarks/blood_largest.py`). The run ends
with a checkpoint, from which a second process restarts. Seconds of set-up are those before the first step. Memory of
the host is the peak of the process, memory of the device the peak of all memory in use there.
"""
#: Stages of the set-up, and stages of a step, as columns.
_SET_UP = ("link", "pack", "model", "solver", "compile", "upload")
_STEP = {
    "sweep": "stream-collide interior",
    "membranes": "membrane forces",
    "interpolation": "interpolate velocity",
    "spreading": "spread force",
    "contact": "contact forces",
}


def largest_part(documents: Sequence[tuple[Path, dict[str, Any]]]) -> str:
    """Return the text about the largest suspensions; nothing without results.

    Raises:
        FormatError: a value is missing.
    """
    return "\n".join([_INTRODUCTION, *(_section(*document) for document in documents)]) if documents else ""


def _section(path: Path, document: dict[str, Any]) -> str:
    try:
        runs = {name: document[name] for name in ("first", "restarted") if name in document}
        set_up = ("process", *_SET_UP, "all of the set-up", "whole process", "GB on the host", "GB on the device")
        step = ("process", "sites", "cells", "steps", "step (ms)", *_STEP)
        set_up_lines = [(name, *_set_up_cells(run)) for name, run in runs.items()]
        step_lines = [(name, *_step_cells(run)) for name, run in runs.items()]
        size, first = document["checkpoint_bytes"], document["first"]
        written = sum(
            stage["seconds"] for stage in first["stages"] if stage["name"] in ("checkpoints", "wait for output")
        )
        origin = f"{document['date']}, {origin_of(str(document['commit']))}, data in `benchmarks/results/{path.name}`."
        head = f"## {document['device']}: {path.stem}\n\n{origin}\n\n"
        checkpoint = f"\nThe checkpoint of {size / 1e9:.1f} GB was collected and written in {written:.0f} s.\n"
    except (KeyError, TypeError, ValueError) as error:
        raise unfit(path, document, error) from None
    tables = (markdown(step, step_lines, text_columns=1), markdown(set_up, set_up_lines, text_columns=1))
    return head + "\nSeconds of the set-up:\n\n".join(tables) + checkpoint


def _set_up_cells(run: dict[str, Any]) -> Iterator[str]:
    """Return the seconds of the stages of the set-up, of all of it and of the process, and the memory."""
    yield from (f"{run['set_up'].get(name, 0.0):.1f}" for name in _SET_UP)
    yield f"{sum(run['set_up'].values()):.0f}"
    yield f"{run['wall_seconds']:.0f}"
    yield f"{run['host_bytes'] / 1e9:.0f}"
    yield "" if run["device_bytes"] is None else f"{run['device_bytes'] / 1e9:.0f}"


def _step_cells(run: dict[str, Any]) -> Iterator[str]:
    """Return the size of a run, the time of a step and those of its stages, with their shares."""
    means = {stage["name"]: stage["mean"] for stage in run["stages"]}
    step = sum(means.values())
    yield f"{run['sites']:,}"
    yield f"{sum(kind['cells'] for kind in run['cells'].values()):,}"
    yield f"{run['steps']:,}"
    yield f"{1e3 * step:.1f}"
    yield from (f"{1e3 * means[name]:.1f} ({means[name] / step:.0%})" for name in _STEP.values())
