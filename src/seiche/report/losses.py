# SPDX-License-Identifier: BSD-3-Clause
"""Split of the time of a run into useful time and losses, with an explanation of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Losses below this fraction of the run are reported without advice.
_ADVICE_THRESHOLD = 0.02

#: Advice on load imbalance, by solver.
_BALANCE_ADVICE = {
    "flow": 'Distribute sites by their measured cost: run.balance = "measured".',
    "blood": 'Distribute sites by the measured cost of sites and cells: run.balance = "measured".',
    "ultrasound": "Choose a number of ranks that divides the extents of the grid.",
    "waves": "Elements are distributed by their cost; use more elements per rank for a better balance.",
}


@dataclass(frozen=True)
class Loss:
    """One part of the time: name, seconds, fraction of the run, its efficiency factor and an explanation."""

    name: str
    seconds: float
    share: float
    factor: str
    value: float
    sentence: str


def losses(
    efficiency: Mapping[str, Any], movement: Mapping[str, Any], solver: str = "flow", item: str = "sites"
) -> list[Loss]:
    """Return the parts of the elapsed time of an average rank: useful time, then losses in the order of the factors.

    The seconds add up to the elapsed time: T = mean u + (max u - mean u) + (T_ideal - max u) + (max a - T_ideal)
    + (T - max a), theory/movement, section 8. Empty if the summary has no efficiencies. The advice is that for the
    `solver`, which distributes each `item` over ranks.
    """
    if not efficiency or "transfer" not in efficiency:
        return []
    elapsed = float(efficiency["elapsed_s"])
    max_useful, ideal = elapsed * efficiency["communication"], elapsed * efficiency["transfer"]
    active, useful = elapsed * efficiency["orchestration"], elapsed * efficiency["parallel"]
    contributions = (
        ("computing", useful, "parallel", _computing(efficiency)),
        (
            "waiting for the busiest rank",
            max_useful - useful,
            "load_balance",
            _balance(efficiency, movement, solver, item),
        ),
        ("waiting for data of other ranks", ideal - max_useful, "serialisation", _serialisation(efficiency)),
        ("messages", active - ideal, "transfer", _transfer(movement, item)),
        ("between steps", elapsed - active, "orchestration", _between_steps(elapsed, movement, item)),
    )
    return [
        _loss(name, seconds, elapsed, efficiency, factor=factor, text=text)
        for name, seconds, factor, text in contributions
    ]


def _loss(
    name: str, seconds: float, elapsed: float, efficiency: Mapping[str, Any], *, factor: str, text: tuple[str, str]
) -> Loss:
    seconds = max(0.0, seconds)
    share, (explanation, advice) = seconds / elapsed, text
    is_small = factor != "parallel" and share < _ADVICE_THRESHOLD
    sentence = explanation if is_small or not advice else f"{explanation} {advice}"
    return Loss(name, seconds, share, factor, float(efficiency[factor]), sentence)


def _computing(efficiency: Mapping[str, Any]) -> tuple[str, str]:
    return (
        f"All {efficiency['elements']} {_element_name(efficiency)} spent {efficiency['parallel']:.0%} of their time in "
        "stages that compute.",
        "",
    )


def _element_name(efficiency: Mapping[str, Any]) -> str:
    kind = "GPU" if "host" in efficiency else "rank"
    return kind if efficiency["elements"] == 1 else f"{kind}s"


def _balance(efficiency: Mapping[str, Any], movement: Mapping[str, Any], solver: str, item: str) -> tuple[str, str]:
    useful, sites = movement.get("useful_s", []), movement.get("sites", [])
    if len(useful) < 2:
        return "A single rank has no load imbalance.", ""
    busiest = max(range(len(useful)), key=lambda rank: useful[rank])
    excess = 1.0 / efficiency["load_balance"] - 1.0
    text = f"Rank {busiest} computes {excess:.0%} longer than the mean"
    if sites and sum(sites):
        text += f", with {sites[busiest] * len(sites) / sum(sites) - 1.0:+.0%} of the mean number of {item}"
    return f"{text}.", _BALANCE_ADVICE.get(solver, "")


def _serialisation(efficiency: Mapping[str, Any]) -> tuple[str, str]:
    if efficiency["elements"] == 1:
        return "A single rank does not wait for other ranks.", ""
    return (
        "Even with an ideal network, ranks would wait this long for data from other ranks.",
        "Different ranks are late in different steps; the trace shows the causes, such as outputs of one rank.",
    )


def _transfer(movement: Mapping[str, Any], item: str) -> tuple[str, str]:
    messages = movement.get("messages", [])
    if not messages:
        return "No messages are sent.", ""
    size, count = sum(row[3] for row in messages), sum(row[2] for row in messages)
    return (
        f"Packing, sending and receiving {count:.0f} messages of {size / max(count, 1):,.0f} B on average per step (all"
        f" ranks, transport {movement.get('transport', 'messages')}), without overlap with computation.",
        f"Use fewer ranks, more {item} per rank, or a faster transport (run.transport).",
    )


def _between_steps(elapsed: float, movement: Mapping[str, Any], item: str) -> tuple[str, str]:
    overheads = {name: max(seconds) for name, seconds in movement.get("host_overhead", {}).items() if seconds}
    measured = [f"{name} {seconds:.3g} s" for name, seconds in overheads.items() if seconds > 0.002 * elapsed]
    text = "Time outside stages: files, pictures, host work between stages"
    text += f"; measured: {', '.join(measured)}." if measured else "."
    if movement.get("device") == "gpu":
        return text, "Longer intervals between outputs allow steps to run as graphs."
    return text, f"Write less often, or use more {item} per rank."


def host_sentences(host: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """Return factor, value and explanation of the efficiencies of processes that drive GPUs."""
    texts = {
        "load_balance": "The loss is imbalance between processes: some spend more time in messages than others.",
        "communication": "The loss is the time in messages of the process with the fewest messages.",
        "offload": "The loss is the time in which hosts wait for their GPUs; this is normal if the GPUs are busy.",
    }
    return [(name, float(host[name]), text) for name, text in texts.items() if name in host]


def hybrid_sentences(hybrid: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """Return factor, value and explanation of the efficiencies of processes and GPUs together."""
    texts = {
        "load_balance": "The loss is imbalance between processes, each with its GPU.",
        "communication": "The loss is the time in which the busiest process and its GPU do no useful work, on average.",
        "parallel": "The useful fraction of the time of all processes and GPUs: the mean of the next two lines.",
        "cpu": "Processes: the fraction of time outside messages and waits for GPUs.",
        "gpu": "GPUs: the fraction of time in stages that compute.",
    }
    return [(name, float(hybrid[name]), text) for name, text in texts.items() if name in hybrid]


def range_text(values: Sequence[float]) -> str:
    """Return the range of values as text."""
    return f"{min(values):.3g}" if len(set(values)) == 1 else f"{min(values):.3g} to {max(values):.3g}"
