# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a run went, in seconds of a rank, and a sentence on each loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Losses below this part of the run are said to be small, without advice.
_SMALL = 0.02


#: What can be done where ranks do not compute equally long, by solver.
_SHARING = {
    "flow": 'Sites can be shared by what they cost: run.balance = "measured".',
    "blood": 'Sites can be shared by what they and their cells cost: run.balance = "measured".',
    "ultrasound": "Parts are as equal as the grid can be cut: take a number of ranks that divides its extents.",
    "waves": "Elements are shared by what they compute; few to a rank cannot be shared evenly.",
}


@dataclass(frozen=True)
class Loss:
    """One part of the time: its name, seconds, part of the run, the factor that holds it, and a sentence."""

    name: str
    seconds: float
    share: float
    factor: str
    value: float
    sentence: str


def losses(
    efficiency: Mapping[str, Any], movement: Mapping[str, Any], solver: str = "flow", item: str = "sites"
) -> list[Loss]:
    """Return how the elapsed time of a mean rank splits: useful, then what was lost, in the order of the tree.

    The seconds add up to the elapsed time: T = mean u + (max u - mean u) + (T_ideal - max u) + (max a - T_ideal)
    + (T - max a), theory/movement, section 8. Empty where the summary has no efficiencies. Sentences give the advice
    that fits the `solver`, whose ranks share out each `item`.
    """
    if not efficiency or "transfer" not in efficiency:
        return []
    elapsed = float(efficiency["elapsed_s"])
    longest, ideal = elapsed * efficiency["communication"], elapsed * efficiency["transfer"]
    active, useful = elapsed * efficiency["orchestration"], elapsed * efficiency["parallel"]
    parts = (
        ("computing", useful, "parallel", _computing(efficiency)),
        ("waiting for the busiest", longest - useful, "load_balance", _balance(efficiency, movement, solver, item)),
        ("waiting for work of others", ideal - longest, "serialisation", _serialisation(efficiency)),
        ("messages", active - ideal, "transfer", _transfer(movement, item)),
        ("between steps", elapsed - active, "orchestration", _between(elapsed, movement, item)),
    )
    return [
        _loss(name, seconds, elapsed, efficiency, factor=factor, text=text) for name, seconds, factor, text in parts
    ]


def _loss(
    name: str, seconds: float, elapsed: float, efficiency: Mapping[str, Any], *, factor: str, text: tuple[str, str]
) -> Loss:
    seconds = max(0.0, seconds)
    share, (fact, advice) = seconds / elapsed, text
    small = factor != "parallel" and share < _SMALL
    sentence = fact if small or not advice else f"{fact} {advice}"
    return Loss(name, seconds, share, factor, float(efficiency[factor]), sentence)


def _computing(efficiency: Mapping[str, Any]) -> tuple[str, str]:
    return (
        f"Of the time of all {efficiency['elements']} {_elements(efficiency)},"
        f" {efficiency['parallel']:.0%} went into stages that compute.",
        "",
    )


def _elements(efficiency: Mapping[str, Any]) -> str:
    kind = "GPU" if "host" in efficiency else "rank"
    return kind if efficiency["elements"] == 1 else f"{kind}s"


def _balance(efficiency: Mapping[str, Any], movement: Mapping[str, Any], solver: str, item: str) -> tuple[str, str]:
    useful, sites = movement.get("useful_s", []), movement.get("sites", [])
    if len(useful) < 2:
        return "One rank has nobody to wait for.", ""
    busiest = max(range(len(useful)), key=lambda rank: useful[rank])
    more = 1.0 / efficiency["load_balance"] - 1.0
    text = f"Rank {busiest} computes {more:.0%} longer than the mean"
    if sites and sum(sites):
        text += f", with {sites[busiest] * len(sites) / sum(sites) - 1.0:+.0%} of the mean number of {item}"
    return f"{text}.", _SHARING.get(solver, "")


def _serialisation(efficiency: Mapping[str, Any]) -> tuple[str, str]:
    if efficiency["elements"] == 1:
        return "One rank waits for no other.", ""
    return (
        "On a network without cost ranks would still wait so long for what others compute before they send.",
        "Ranks take turns in being late: look at the trace for what makes them so, such as outputs of one rank.",
    )


def _transfer(movement: Mapping[str, Any], item: str) -> tuple[str, str]:
    messages = movement.get("messages", [])
    if not messages:
        return "No messages are sent.", ""
    size, count = sum(row[3] for row in messages), sum(row[2] for row in messages)
    return (
        f"Packing, sending and receiving {count:.0f} messages of {size / max(count, 1):,.0f} B in the mean a step, all"
        f" ranks together, by {movement.get('transport', 'messages')}, as far as no computing hides it.",
        f"Fewer ranks, more {item} a rank, or a faster transport (run.transport) lower it.",
    )


def _between(elapsed: float, movement: Mapping[str, Any], item: str) -> tuple[str, str]:
    beside = {name: max(seconds) for name, seconds in movement.get("beside", {}).items() if seconds}
    known = [f"{name} {seconds:.3g} s" for name, seconds in beside.items() if seconds > 0.002 * elapsed]
    text = "No stage was under way: making files and pictures, the host between stages"
    said = f"{text}; measured: {', '.join(known)}." if known else f"{text}."
    if movement.get("device") == "gpu":
        return said, "Longer stretches without output let steps run as one graph."
    return said, f"Write less often, or give each rank more {item}."


def host_sentences(host: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """Return factor, value and a sentence for the tree of the processes that drive GPUs."""
    texts = {
        "load_balance": "Processes that spend less time in messages than others make up the rest.",
        "communication": "Even the process with the least messages spends the rest of its time in them.",
        "offload": "Outside messages the host waits for its GPU for the rest of the time; it has little else to do.",
    }
    return [(name, float(host[name]), text) for name, text in texts.items() if name in host]


def spread(values: Sequence[float]) -> str:
    """Return the least and greatest of some numbers in words."""
    return f"{min(values):.3g}" if len(set(values)) == 1 else f"{min(values):.3g} to {max(values):.3g}"
