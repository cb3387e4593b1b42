# SPDX-License-Identifier: BSD-3-Clause
"""Predicted steps follow from bytes, launches and messages that can be counted by hand, and say what they lack."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prediction_cases import case_file, machine, piece
from seiche.case import predictions
from seiche.case.plans import planned_case
from seiche.case.predictions import completed, machine_of, predict_case, ranks_of, scales_of_run
from seiche.cli import main
from seiche.errors import CaseError
from seiche.machine.laws.file import FittedPiece, Launch, Measured, read_machine, write_machine
from seiche.machine.laws.steps import Scale, at_bound, planned_placements, predict_step, scales_of
from seiche.observe.plan import PlannedRank, PlannedStage, RunPlan, base_name, magnified
from seiche.report.prediction import as_json, as_text, prediction_figure

SEND = PlannedStage("send halo", 0, 1, useful=False, exchanges=(((1, 4000, 4000),),), packed=2000)
RECEIVE = PlannedStage("receive halo", 0, 1, useful=False, arrivals=1, packed=2000)


def ring(ranks: int, *, gpu: bool = False, inner: int = 2_000_000) -> RunPlan:
    """Return a plan whose ranks exchange 4000 B with the next and the last one; rank 0 has twice the bytes."""

    def rank(number: int) -> PlannedRank:
        peers = sorted({(number + 1) % ranks, (number - 1) % ranks})
        send = replace(SEND, exchanges=(tuple((peer, 4000, 4000) for peer in peers),))
        own = inner * (2 if number == 0 else 1)
        interior = PlannedStage("sweep interior", own, 3)
        stages = (send, interior, RECEIVE, PlannedStage("sweep edge", 40_000, 1))
        return PlannedRank(((1.0, stages),), 1000, own)

    return RunPlan(tuple(rank(number) for number in range(ranks)), gpu, "auto", "sites", 0)


def test_a_step_on_processors_is_the_sum_of_its_parts() -> None:
    """Four ranks share 20 GB/s. Two messages of 10 us, the second 2 us later, at 1 GB/s each, and two launches."""
    step = predict_step(ring(4), machine())
    useful = [4_040_000 / 5e9 + 4e-6, *3 * [2_040_000 / 5e9 + 4e-6]]
    messages = 10e-6 + 2e-6 + 2 * 4e-6 + 2e-6 + 4000 / 5e9
    assert step.useful == pytest.approx(useful, rel=1e-12)
    assert step.exchange == pytest.approx(messages, rel=1e-12)
    assert step.seconds == pytest.approx(useful[0] + messages, rel=1e-12)
    assert (step.slowest, step.limit, step.transport) == (0, "memory", "host")
    assert step.load_balance == pytest.approx(sum(useful) / (4 * useful[0]))
    assert step.communication == pytest.approx(useful[0] / step.seconds)
    assert step.parallel == pytest.approx(sum(useful) / (4 * step.seconds))
    assert sum(step.parts.values()) == pytest.approx(step.seconds)
    assert step.parts["message latency"] == pytest.approx(14e-6)
    assert step.parts["message bandwidth"] == pytest.approx(8e-6 + 4000 / 5e9)


def test_little_work_is_limited_by_the_latency_of_messages() -> None:
    step = predict_step(ring(8, inner=1000), machine(memory={"host": 2e11}))
    assert step.limit == "message latency"


def test_the_interval_is_that_of_the_fits_parameters() -> None:
    """All of alpha and beta 10 % up or down: the gap of the second message and the launches have no interval."""
    step = predict_step(ring(4), machine())
    assert step.high - step.seconds == pytest.approx(0.1 * (10e-6 + 8e-6), rel=1e-9)
    assert step.seconds - step.low == pytest.approx(0.1 * (10e-6 + 8e-6), rel=1e-9)
    known = machine(paths=[Measured(path="host", locality="on-socket", pieces=[piece(1e-5, 1e-9)])])
    sharp = predict_step(ring(4), known)
    assert sharp.low == sharp.seconds == sharp.high


def test_a_device_hides_messages_behind_what_it_computes_meanwhile() -> None:
    fast = {
        "hardware": {"sockets": 1, "cores": 8, "hosts": 1, "ranks": 4, "gpus": ["x"] * 4},
        "memory": {"device": 4e12},
    }
    paths = [Measured(path="nccl", locality="on-socket", pieces=[piece(1e-5, 1e-10)])]
    message = {"launch": {"device": Launch(kernel=2e-6, graph_kernel=1e-6, event=0.0)}, "paths": paths}
    gpus = machine(**fast, **message)
    hidden = predict_step(ring(4, gpu=True, inner=20_000_000), gpus)
    assert hidden.transport == "nccl"
    exchange = 10e-6 + 2 * 4000e-10 + 2 * 1e-6 + 4000 / 1e12  # launches as in a graph
    assert hidden.exchange == pytest.approx(exchange)
    # Rank 1 computes 20 us and three launches during the exchange of 12.8 us, which is completely hidden.
    assert hidden.messages[1] == 0.0
    bare = predict_step(ring(4, gpu=True, inner=2_000_000), gpus)
    assert bare.messages[1] == pytest.approx(exchange - (2e-6 + 3e-6))
    alone = predict_step(replace(ring(4, gpu=True, inner=2_000_000), graphs=False), gpus)
    assert alone.messages[1] == pytest.approx(exchange + 2e-6 - (2e-6 + 6e-6))


def test_exchanges_that_were_measured_whole_have_their_packing() -> None:
    whole = Measured(path="host_exchange", locality="on-socket", pieces=[piece(2e-5, 2e-9)])
    step = predict_step(ring(4), machine(paths=[*machine().paths, whole]))
    assert step.exchange == pytest.approx(20e-6 + 2e-6 + 2 * 4000 * 2e-9, rel=1e-12)


def test_a_transport_that_the_case_names_is_taken_or_rejected() -> None:
    assert predict_step(replace(ring(2), transport="host"), machine()).transport == "host"
    with pytest.raises(CaseError, match="machine 'toy' has no data for transport 'nccl' on 2 ranks"):
        predict_step(replace(ring(2), transport="nccl"), machine())


def test_ranks_fill_nodes_and_the_network_must_be_known() -> None:
    hosts = [place.host for place in planned_placements(machine(), 5, 2, gpu=False)]
    assert hosts == ["node 0", "node 0", "node 1", "node 1", "node 2"]
    assert [place.gpu_node for place in planned_placements(read_machine("summit"), 6, 6, gpu=True)] == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]
    with pytest.raises(CaseError, match=r"has no data for messages of 4 ranks on 2 nodes; it has host on-socket"):
        predict_step(ring(4), machine(), ranks_per_node=2)
    with pytest.raises(CaseError, match="machine 'toy' has no copy bandwidth for device memory; it has host"):
        predict_step(ring(1, gpu=True), machine())


def test_magnified_ranks_compute_more_and_send_as_surfaces_do() -> None:
    grown = magnified(ring(2), 8.0)
    send, interior, _, _ = grown.ranks[1].steps[0][1]
    assert interior.bytes == 8 * 2_000_000
    assert send.exchanges == (((0, 16000, 16000),),)
    assert send.packed == 4 * 2000
    assert magnified(ring(2), 4.0, 2).ranks[1].steps[0][1][0].exchanges == (((0, 8000, 8000),),)
    assert grown.ranks[0].memory == 8000


def test_what_a_run_has_shown_scales_stages_on_any_number_of_ranks() -> None:
    """Stages of one rank alone have no edge: the parts of a sweep share what is known of it."""
    roof = 4_040_000 / 2e10 + 4e-6
    alone = RunPlan(
        (PlannedRank(((1.0, (PlannedStage("sweep interior", 4_040_000, 4),)),), 0, 0),), False, "auto", "", 0
    )
    scales = scales_of(alone, machine(), {"sweep interior": (3 * roof, 2.7 * roof), "unknown": (1.0, 1.0)})
    assert scales == {"sweep": Scale(*map(pytest.approx, (3.0, 2.7, 3.3)), memory=0)}
    plain, scaled = predict_step(ring(4), machine()), predict_step(ring(4), machine(), scales=scales)
    assert scaled.useful == pytest.approx([3 * item for item in plain.useful])
    assert scaled.low < scaled.seconds < scaled.high
    with pytest.raises(
        CaseError, match="the run lacks most of the stages of the case: sweep interior; use a run of the same solver"
    ):
        scales_of(alone, machine(), {"other": (1.0, 1.0)})
    assert base_name("elements edge") == base_name("elements interior") == base_name("elements")


def test_a_cache_helps_no_rank_that_holds_much_more_than_it_was_seen_with() -> None:
    """Half the time that the memory needs, with a rank of 1 kB. Of 4 kB is known that caches may hold it."""

    def step(memory: int, factor: float) -> tuple[float, float, float]:
        rank = PlannedRank(((1.0, (PlannedStage("sweep", 4_000_000, 0),)),), memory, 0)
        plan = RunPlan((rank,), False, "auto", "", 0)
        scale = Scale(factor, 0.9 * factor, 1.1 * factor, memory=1000)
        result = predict_step(plan, machine(launch={}), scales={"sweep": scale})
        return tuple(seconds / (4_000_000 / 2e10) for seconds in (result.low, result.seconds, result.high))

    assert step(1900, 0.5) == pytest.approx((0.45, 0.5, 0.55))
    assert step(4000, 0.5) == pytest.approx((0.45, 1.0, 1.0))
    assert step(4000, 3.0) == pytest.approx((2.7, 3.0, 3.3))


def test_bounds_of_a_machine_leave_what_has_none() -> None:
    low = at_bound(machine(), "low").paths[0].pieces[0]
    assert (low.alpha, low.beta) == pytest.approx((0.9e-5, 0.9e-9))
    assert at_bound(machine(), "latency").paths[0].pieces[0].beta == 0.0
    assert at_bound(machine(), "best") == machine()


def test_the_interval_of_the_memorys_rate_is_one_of_stages() -> None:
    """Rates from 16 to 25 GB/s about 20: what streams takes 1.25 times as long, or 0.8 times."""
    known = machine(memory_intervals={"host": (1.6e10, 2.5e10)}, launch={})
    alone = RunPlan((PlannedRank(((1.0, (PlannedStage("sweep", 4_000_000, 0),)),), 0, 0),), False, "auto", "", 0)
    step = predict_step(alone, known)
    assert step.seconds == pytest.approx(4_000_000 / 2e10)
    assert (step.low / step.seconds, step.high / step.seconds) == pytest.approx((0.8, 1.25), rel=1e-12)
    # What a run took on the same machine is known, whatever its memory's rate is; of another one it is not.
    same, other = Scale(2.0, 1.9, 2.1), Scale(2.0, 1.9, 2.1, elsewhere=True)
    ratios = [
        (result.low / result.seconds, result.high / result.seconds)
        for result in (predict_step(alone, known, scales={"sweep": scale}) for scale in (same, other))
    ]
    assert ratios[0] == pytest.approx((0.95, 1.05), rel=1e-12)
    assert ratios[1] == pytest.approx((0.95 * 0.8, 1.05 * 1.25), rel=1e-12)
    # Two nodes that take over the rate of one node take over its interval.
    two = {"sockets": 1, "cores": 8, "hosts": 2, "ranks": 16}
    assert completed(machine(memory={}, hardware=two), known).memory_intervals == {"host": (3.2e10, 5e10)}
    assert completed(machine(), known).memory_intervals == {}


def test_numbers_of_ranks_are_lists_and_doublings() -> None:
    assert ranks_of("1..512") == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert ranks_of("6, 1,2..12") == [1, 2, 4, 6, 8, 12]
    for wrong in ("0..4", "4..1", "some", "", "1..", "5000"):
        with pytest.raises(CaseError, match=r"--ranks .*: expected numbers from 1 to 4096 such as 1,2,4, or 1..512"):
            ranks_of(wrong)


def test_a_machine_can_be_completed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = machine(name="other", memory={"host": 4e10, "device": 8e12}, hardware={"ranks": 8, "hosts": 2})
    both = completed(machine(memory={"host": 2e10}), other)
    assert both.memory == {"host": 2e10, "device": 8e12}  # of eight ranks, in both files
    assert both.name == "toy (with other)"
    assert len(both.paths) == 1
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEICHE_MACHINE", raising=False)
    with pytest.raises(CaseError, match=r"machine file machine.json: does not exist; .* or name one of lassen, summit"):
        machine_of(None)
    write_machine(tmp_path / "toy.json", machine(units={"time": "s", "size": "B", "rate": "B/s"}))
    monkeypatch.setenv("SEICHE_MACHINE", "toy.json")
    assert machine_of(None).name == "toy"
    assert machine_of(Path("summit")).name == "summit"


@pytest.mark.parametrize("name", ["flow", "waves", "ultrasound"])
def test_every_solver_is_predicted_and_more_ranks_take_less_memory_each(tmp_path: Path, name: str) -> None:
    case = planned_case(case_file(tmp_path, name))
    result = predict_case(case, machine(), [1, 2])
    assert [step.ranks for step in result.strong] == [1, 2]
    assert result.item == {"flow": "sites", "waves": "elements", "ultrasound": "points"}[name]
    one, two = result.strong
    assert one.exchange == 0 < two.exchange
    assert max(two.memory) < max(one.memory) or name == "ultrasound"  # overlaps are as large as this grid
    assert 0 < two.load_balance <= 1
    assert 0 < two.communication < one.communication <= 1
    assert result.weak[1].seconds > result.strong[1].seconds
    text = as_text(result)
    assert "rank 0: memory" in text
    assert "note: stage times assume that only memory bandwidth" in text
    row = as_json(result)["strong"][1]
    assert row["interval_s"][0] <= row["step_s"] <= row["interval_s"][1]


def test_sweeps_on_gpus_reach_what_was_measured_of_their_layout(tmp_path: Path) -> None:
    case = planned_case(case_file(tmp_path, "flow"), device="cuda")
    plan = case.plan(1)
    assert plan.gpu
    assert 0.3 < plan.shares["stream-collide"] < 1.0
    gpus = read_machine("summit")
    moved = sum(stage.bytes for stage in plan.ranks[0].steps[0][1] if "stream" in stage.name)
    step = predict_step(plan, gpus)
    sweep = sum(seconds for name, seconds in step.computing.items() if "stream" in name)
    assert sweep == pytest.approx(moved / plan.shares["stream-collide"] / gpus.memory["device"], rel=0.2)


def test_a_machine_without_intervals_is_reported_to_have_none(tmp_path: Path) -> None:
    result = predict_case(planned_case(case_file(tmp_path, "flow")), read_machine("summit"), [1])
    assert "note: machine 'summit' has no confidence intervals:" in as_text(result)


def test_the_warnings_of_a_machine_file_are_repeated(tmp_path: Path) -> None:
    summit = read_machine("summit")
    first = summit.paths[0].model_copy(update={"warnings": ["only 3 points", "the machine was busy"]})
    machine = summit.model_copy(update={"paths": [first]})
    result = predict_case(planned_case(case_file(tmp_path, "ultrasound")), machine, [1])
    name = f"{first.path} {first.locality}"
    line = f"machine 'summit' was measured with warnings: {name}: only 3 points (and 1 more in its file)"
    assert line in result.notes


@pytest.mark.parametrize(("trust", "advice"), [(0.98, ""), (0.5, "; measure it again for longer, or when it is idle")])
def test_the_trust_in_a_machine_file_is_repeated(tmp_path: Path, trust: float, advice: str) -> None:
    machine = read_machine("summit").model_copy(update={"trust": trust})
    result = predict_case(planned_case(case_file(tmp_path, "ultrasound")), machine, [1])
    line = f"machine 'summit': {trust:.0%} of its times were reproduced by another round of the measurement{advice}"
    assert line in result.notes and f"note: {line}" in as_text(result)


def test_a_flat_path_of_a_machine_file_is_noted(tmp_path: Path) -> None:
    """A survey of a busy machine that had time for two sizes only: 1.2 us for every message."""
    summit = read_machine("summit")
    piece = FittedPiece(begin=1, end=2, alpha=1.2e-6, beta=0.0, points=2)
    flat = summit.paths[0].model_copy(update={"pieces": [piece], "sizes": [1, 2], "seconds": [1.2e-6] * 2})
    case = planned_case(case_file(tmp_path, "ultrasound"))
    machine = summit.model_copy(update={"paths": [flat, *summit.paths[1:]]})
    text = f"machine 'summit': {flat.path} {flat.locality} takes 1.2 us for every size from 1 B on: "
    assert any(note.startswith(text) for note in predict_case(case, machine, [1]).notes)
    assert not any("for every size" in note for note in predict_case(case, summit, [1]).notes)


def test_a_machine_without_an_injection_rate_is_noted(tmp_path: Path) -> None:
    summit, case = read_machine("summit"), planned_case(case_file(tmp_path, "ultrasound"))
    for measured, noted in ((summit, False), (summit.model_copy(update={"injection": []}), True)):
        notes = predict_case(case, measured, [1]).notes
        text = "has no injection rate: a node is assumed to send no faster than one process does"
        assert any(text in note for note in notes) == noted


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_stages_of_ultrasound_declare_the_bytes_of_the_theory(tmp_path: Path, device: str) -> None:
    """Theory/ultrasound, "Transforms and bytes": lossless, uniform, single precision, a spectrum of n/2 + 1 numbers."""
    plan = planned_case(case_file(tmp_path, "ultrasound"), device=device).plan(1)
    result = {stage.name: stage.bytes / plan.items for stage in plan.ranks[0].steps[0][1]}
    wide = 17 / 16  # rows of 32 points have spectra of 17 numbers
    assert result["pressure"] == pytest.approx(16)
    assert result["density"] == pytest.approx(40)
    library = {"gradient": (18 + 4 * 24) * wide, "velocity": 36, "divergence": (26 + 6 * 24) * wide}
    if device == "cpu":
        assert {name: result[name] for name in library} == pytest.approx(library)
    else:  # lines are transformed by kernels that read and write what lies between two passes once
        assert sum(result[name] for name in library) < 0.85 * sum(library.values())


def test_transposes_of_slabs_are_messages_of_the_step(tmp_path: Path) -> None:
    case = planned_case(case_file(tmp_path, "ultrasound"), ["run.basis=global"], device="cpu")
    plan, half = case.plan(2), 8 * (64 // 2) * (48 // 2) * (32 // 2 + 1)
    for number, rank in enumerate(plan.ranks):
        for _, stages in rank.steps:
            result = [stage for stage in stages if stage.name == "transpose"]
            assert len(result) == (1 + 3) + (3 + 3)  # of the gradient and of the divergence, there and back
            for stage in result:
                assert stage.exchanges == (((1 - number, half, half),),) * stage.arrivals
    one, two = predict_case(case, machine(), [1, 2]).strong
    assert one.exchange == 0.0
    assert two.transport == "host"
    assert two.exchange >= 10 * (10e-6 + half / 1e9)
    assert two.waiting["transpose"] == pytest.approx(two.exchange)


def test_too_many_ranks_are_left_out_with_the_reason(tmp_path: Path) -> None:
    case = planned_case(case_file(tmp_path, "flow"))
    result = predict_case(case, machine(), [1, 2, 16])
    assert list(result.omitted) == [16]
    assert "on 2 nodes" in result.omitted[16]
    assert "omitted: 16 ranks: machine 'toy' has no data for messages" in as_text(result)
    with pytest.raises(CaseError, match="has no data for messages of 16 ranks"):
        predict_case(case, machine(), [16])
    prediction_figure(tmp_path / "curves.png", result)
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_the_command_stores_what_it_says_and_takes_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, known = case_file(tmp_path, "flow"), tmp_path / "toy.json"
    write_machine(known, machine(units={"time": "s", "size": "B", "rate": "B/s"}))
    assert main(["run", str(path), "--output", str(tmp_path / "out"), "--set", "time.steps=200"]) == 0
    capsys.readouterr()
    given = ["predict", str(path), "--machine", str(known), "--ranks", "1,2"]
    assert main([*given, "--run", str(tmp_path / "out"), "--json", str(tmp_path / "p.json")]) == 0
    shown = capsys.readouterr()
    assert f"{path} on toy:" in shown.out and not shown.err
    stored: dict[str, Any] = json.loads((tmp_path / "p.json").read_text())
    assert stored["schema"] == "seiche-prediction-1"
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    sweep = next(row for row in summary["stages"] if row["name"].startswith("stream-collide"))
    predicted = stored["strong"][0]["computing_s"][sweep["name"]]
    assert predicted == pytest.approx(sweep["mean"], rel=1e-9)  # on the ranks of the run it is the run's own time
    assert main([*given[:3], "missing.json"]) == 2
    assert "machine file missing.json: does not exist" in capsys.readouterr().err
    for option, note in (("--fallback-machine", ""), ("--with", "note: --with is now called --fallback-machine\n")):
        assert main([*given, option, str(known)]) == 0
        assert capsys.readouterr().err == note
        assert main([*given, option, "missing.json"]) == 2
        assert "machine file missing.json: does not exist" in capsys.readouterr().err
    assert main([*given, "--run-on", str(known)]) == 2
    assert capsys.readouterr().err == f"seiche: error: --run-on {known}: requires --run\n"
    (tmp_path / "bad").mkdir()
    for change, output in (({"stages": [{"mean": 1.0}]}, "'name' is missing"), ({"ranks": 10**9}, "1000000000 ranks")):
        (tmp_path / "bad" / "summary.json").write_text(json.dumps({**summary, **change}))
        assert main([*given, "--run", str(tmp_path / "bad")]) == 2
        assert f"summary.json: content: not a valid summary: {output}" in capsys.readouterr().err
    waves = case_file(tmp_path, "waves")
    with pytest.raises(CaseError, match=r"--run .*summary.json: the run lacks most of the stages .*elements"):
        scales_of_run(planned_case(waves), machine(), tmp_path / "out")


def test_a_long_prediction_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, known = case_file(tmp_path, "flow"), tmp_path / "toy.json"
    write_machine(known, machine(units={"time": "s", "size": "B", "rate": "B/s"}))
    predicted = predictions.predict_step

    def slow(*words: Any, **options: Any) -> Any:
        time.sleep(0.05)
        return predicted(*words, **options)

    monkeypatch.setattr("seiche.observe.elapsed_time.EVERY", 0.01)
    monkeypatch.setattr(predictions, "predict_step", slow)
    assert main(["predict", str(path), "--machine", str(known), "--ranks", "1,2"]) == 0
    lines = capsys.readouterr().err.splitlines()
    for count in (1, 2):
        assert f"seiche: planning {count} of at most 2 ranks, 0 s" in lines
