# SPDX-License-Identifier: BSD-3-Clause
"""The page of a run: one file that needs no network, whose numbers are those of the summary and add up."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from case_files import toml_of, tube_tables
from seiche.cli import main
from seiche.machine.laws.file import Machine, read_machine
from seiche.machine.laws.models import roofline
from seiche.observe.efficiency import efficiency, hybrid_efficiency
from seiche.report.html import number
from seiche.report.losses import losses
from seiche.report.predicted import compare_with_prediction
from seiche.report.run_report import text
from seiche.report.summary import Summary, read_summary, write_summary
from seiche.report.table import StageRow

CHROMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSERS = (*CHROMES, "firefox")
HEADLESS = ("--headless", "--no-sandbox", "--disable-gpu")
#: Elements that have no end tag.
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Checks while it reads that every element is closed in turn and that nothing is fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        names = {name for name, _ in attrs}
        assert not names & {"src", "href", "srcset", "onload", "onclick"}, (tag, attrs)
        assert len(names) == len(attrs)
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            assert (self.get_starttag_text() or "").endswith("/>"), f"</{tag}> closes {self.open}"

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def prose(self) -> str:
        """Return all that a reader sees."""
        return " ".join(" ".join(self.words).split())


def check_page(text: str) -> Page:
    """Assert that a page is whole, needs no network and fits a phone."""
    assert text.startswith("<!doctype html>")
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert not re.search(r"https?://|url\(|@import|<script|<link|<iframe|<img", text)
    page = Page(text)
    assert {"html", "head", "body", "style", "title", "table"} <= page.tags
    # Whatever may be wider than a phone scrolls by itself.
    assert text.count("<table>") == text.count('<div class="scroll"><table>')
    return page


def summary_of(ranks: int = 4, scale: float = 1.0, **changes: Any) -> Summary:
    """Return a run of 100 steps of `ranks` ranks in a ring; rank 1 computes most."""
    useful = [scale * (0.4 + 0.1 * (rank == 1)) for rank in range(ranks)]
    tree = efficiency(useful, 1.0, ideal=max(useful) + 0.05, active=[max(useful) + 0.2] * ranks)
    ring = [[rank, (rank + step) % ranks, 1.0, 8000.0] for rank in range(ranks) for step in (1, ranks - 1)]
    movement = {
        "transport": "host",
        "device": "cpu",
        "hosts": ["a"] * (ranks // 2) + ["b"] * (ranks - ranks // 2),
        "sites": [1000] * ranks,
        "useful_s": useful,
        "active_s": [max(useful) + 0.2] * ranks,
        "waited_s": [0.0] * ranks,
        "steps_s": [0.9] * ranks,
        "memory_B": [100_000_000 + rank for rank in range(ranks)],
        "stages": {
            "stream-collide": [u / 100 for u in useful],
            "receive halo": [0.002 + 0.0001 * r for r in range(ranks)],
        },
        "message_stages": ["receive halo"],
        "host_overhead": {"monitor": [0.05] * ranks},
        "messages": ring if ranks > 2 else [],
    }
    rows = (
        StageRow("stream-collide", 0.425, 0.425, 1e10, 0.5, 0.00425, 0.004, 0.005, 7),
        StageRow("receive halo", 0.2, 0.2, None, None, 0.002, 0.001, 0.003, 7),
        StageRow("other", 0.375, 0.375),
    )
    arguments = {
        "case": "ring <of> ranks & more",
        "device": "a processor",
        "sites": 1000 * ranks,
        "steps": 100,
        "seconds": 1.0,
        "ranks": ranks,
        "copy_bandwidth": 2e10,
        "stages": rows,
        "efficiency": tree.as_dict(),
        "movement": movement,
        "flow_rates": {"in": 1e-6, "out": -1e-6},
        "invariants": {"mach": 0.05},
    }
    return Summary(**{**arguments, **changes})


def stored(folder: Path, summary: Summary) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_summary(folder / "summary.json", summary)
    return folder


def machine(**changes: Any) -> Machine:
    return read_machine("summit").model_copy(update={"memory": {"host": 2e10}, "launch": {}, **changes})


def test_parts_of_the_time_add_up_and_name_what_was_lost(tmp_path: Path) -> None:
    summary = read_summary(stored(tmp_path, summary_of()) / "summary.json")
    parts = {part.name: part for part in losses(summary["efficiency"], summary["movement"])}
    assert sum(part.seconds for part in parts.values()) == pytest.approx(1.0)
    expected = (0.425, 0.075, 0.05, 0.15, 0.3)
    assert [part.seconds for part in parts.values()] == pytest.approx(expected)
    assert "Rank 1 computes 18% longer than the mean" in parts["waiting for the busiest rank"].sentence
    assert "measured" in parts["waiting for the busiest rank"].sentence
    assert "8 messages of 8,000 B" in parts["messages"].sentence
    assert "monitor 0.05 s" in parts["between steps"].sentence
    assert losses({}, {}) == []


def test_small_losses_get_no_advice() -> None:
    tree = efficiency([0.99, 0.99], 1.0, ideal=0.99, active=[0.995, 0.995]).as_dict()
    result = losses(tree, {"useful_s": [0.99, 0.99], "sites": [1, 1], "messages": [[0, 1, 1.0, 8.0]]})
    assert all("run." not in part.sentence and "Write less" not in part.sentence for part in result)


def test_the_page_of_a_run_says_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stored(tmp_path / "run", summary_of())
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"seiche: wrote {folder / 'report.html'}\n"
    written = (folder / "report.html").read_text()
    page = check_page(written)
    headings = re.findall(r"<h2>(.*?)</h2>", written)
    assert headings == [
        "Where the time went",
        "Stages",
        "Ranks: a timed step",
        "Prediction",
        "Roofline",
        "Messages",
        "Memory",
        "Set-up, output and checkpoints by rank",
        "Results",
    ]
    assert "ring &lt;of&gt; ranks &amp; more" in written
    assert "parallel efficiency" in page.prose and "42%" in page.prose
    assert "svg" in page.tags
    assert "between steps: monitor 0.05 0.05 0 1.00" in page.prose
    assert main(["report", str(folder)]) == 0  # a report is replaced by a report


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no browser is installed")
def test_the_page_opens_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(text(json.loads(json.dumps(read_summary(stored(tmp_path, summary_of()) / "summary.json")))))
    browser = next(result for name in BROWSERS if (result := shutil.which(name)))
    picture = tmp_path / "page.png"
    options = (
        ["--headless", f"--screenshot={picture}", "--window-size=390,844"]
        if "firefox" in browser
        else [*HEADLESS, f"--screenshot={picture}", "--window-size=390,844"]
    )
    subprocess.run([browser, *options, path.as_uri()], check=True, timeout=60, capture_output=True)
    assert picture.stat().st_size > 10_000


@pytest.mark.skipif(not any(map(shutil.which, CHROMES)), reason="no browser with a printed document is installed")
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_of_the_page_lies_next_to_the_screen(width: int, tmp_path: Path) -> None:
    page = text(json.loads(json.dumps(read_summary(stored(tmp_path, summary_of()) / "summary.json"))))
    measure = """<script>
    const wide = [...document.querySelectorAll("svg text, td.words, .cards b, .row small")];
    const right = Math.max(...wide.map(each => each.getBoundingClientRect().right));
    const left = Math.min(...wide.map(each => each.getBoundingClientRect().left));
    document.body.dataset.found = [document.documentElement.scrollWidth, innerWidth, left, right].join(" ");
    </script>"""
    path = tmp_path / "report.html"
    path.write_text(page.replace("</body>", f"{measure}</body>"))
    browser = next(result for name in CHROMES if (result := shutil.which(name)))
    options = [*HEADLESS, f"--window-size={width},844", "--dump-dom", path.as_uri()]
    done = subprocess.run([browser, *options], check=True, timeout=60, capture_output=True, text=True)
    result = re.search(r'data-found="([^"]*)"', done.stdout)
    assert result is not None
    scrolled, inside, remaining, right = map(float, result.group(1).split())
    assert scrolled <= inside and 0 <= remaining and right <= inside


def test_numbers_have_no_exponents() -> None:
    values = (0.0, 0.01234, 9.876, 999.4, 999.7, 3451.2, -3451.2, 12345678.0, 2.5e12)
    written = ["0", "0.0123", "9.88", "999", "1,000", "3,451", "-3,451", "12,345,678", "2.5e+12"]
    assert [number(value) for value in values] == written
    assert number(1226.4, 4) == "1226" and number(12264.0, 4) == "12,264"


def test_predictions_are_those_of_the_machine_file(tmp_path: Path) -> None:
    summary = read_summary(stored(tmp_path, summary_of()) / "summary.json")
    rows = {row.name: row for row in compare_with_prediction(summary, machine())}
    assert rows["stream-collide"].predicted == pytest.approx(roofline(1e10 * 0.00425, 2e10))
    assert rows["stream-collide"].ratio == pytest.approx(2.0)
    # Two messages of 8000 B from each rank, one in its host and one out of it, two senders a node.
    host = machine().messages("host")
    assert host is not None
    assert rows["messages"].predicted == pytest.approx(host.seconds({"on-node": 1.0, "off-node": 1.0}, 8000.0, 2))
    assert rows["messages"].measured == pytest.approx(0.0023)
    assert "stream-collide" in check_page(text(summary, machine())).prose


@pytest.mark.parametrize("strategy", ["mpi", "three-step"])
def test_transposes_on_processors_are_predicted_as_messages_of_the_host(strategy: str, tmp_path: Path) -> None:
    times = []
    for name in (strategy, "host"):
        summary = read_summary(stored(tmp_path / name, summary_of()) / "summary.json")
        summary["movement"] |= {"transport": name, "device": "cpu"}
        times.append(compare_with_prediction(summary, machine())[-1])
    assert times[0] == times[1]
    assert times[0].predicted is not None


def test_what_a_machine_file_lacks_is_reported(tmp_path: Path) -> None:
    summary = read_summary(stored(tmp_path, summary_of()) / "summary.json")
    rows = {row.name: row for row in compare_with_prediction(summary, machine(memory={}, paths=[]))}
    assert rows["stream-collide"].predicted is None
    assert rows["stream-collide"].reason == "the machine file has no bandwidth for this memory"
    assert rows["messages"].reason == "the machine file has no data for transport host"
    near = [item for item in machine().paths if item.locality != "off-node"]
    (row,) = [row for row in compare_with_prediction(summary, machine(paths=near)) if row.name == "messages"]
    assert row.reason == "the machine file has no host messages off-node"
    check_page(text(summary, machine(memory={}, paths=[])))


@pytest.mark.parametrize("ranks", [1, 2, 200])
def test_pages_of_one_rank_and_of_many_are_whole(ranks: int, tmp_path: Path) -> None:
    summary = read_summary(stored(tmp_path, summary_of(ranks)) / "summary.json")
    written = text(summary, machine())
    assert len(check_page(written).prose) > 500
    assert len(written) < 200_000


def test_a_summary_without_timed_steps_or_of_an_earlier_version_makes_a_page(tmp_path: Path) -> None:
    bare = read_summary(stored(tmp_path, summary_of(1, efficiency={}, movement={}, stages=())) / "summary.json")
    del bare["movement"]
    page = check_page(text(bare, machine()))
    assert "No step of this run was timed" in page.prose


def test_gpu_runs_show_their_host_processes(tmp_path: Path) -> None:
    summary = summary_of()
    host = {"load_balance": 0.9, "communication": 0.8, "offload": 0.1, "parallel": 0.072}
    changed = summary_of(
        efficiency={**summary.efficiency, "host": host}, movement={**summary.movement, "device": "gpu"}
    )
    page = check_page(text(read_summary(stored(tmp_path, changed) / "summary.json")))
    assert "Processes that drive the GPUs" in page.prose
    assert "Processes and GPUs together" not in page.prose  # a summary of an earlier version
    hybrid = hybrid_efficiency([0.2, 0.4], [0.6, 0.8], 1.0).as_dict()
    changed = replace(changed, efficiency={**changed.efficiency, "hybrid": hybrid})
    page = check_page(text(read_summary(stored(tmp_path, changed) / "summary.json")))
    assert "Processes and GPUs together" in page.prose and "parallel 0.500" in page.prose
    assert "4 GPUs" in page.prose


def test_two_runs_are_compared_with_the_first_as_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = stored(tmp_path / "a", summary_of(1, scale=1.2))
    second = stored(tmp_path / "b", summary_of(4, sites=1000))
    assert main(["report", "--compare", str(first), str(second)]) == 0
    assert str(second / "compare.html") in capsys.readouterr().out
    page = check_page((second / "compare.html").read_text())
    # 0.48 useful seconds on one rank, 1.7 on four.
    assert f"computation scaling 1.000 {0.48 / 1.7:.3f}" in page.prose
    assert f"global 0.480 {0.48 / 4:.3f}" in page.prose
    assert "1.00 times as many sites" in page.prose
    assert "ranks 1 4 ≠" in page.prose


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "b"], "report: got 2 runs; expected one (several with --compare)"),
        (["--compare", "a"], "report: --compare needs at least two runs"),
        (["nowhere"], "nowhere: expected the folder or the summary of a run"),
        (["empty"], "empty: expected one summary of a run, found none"),
        (["two"], "two: expected one summary of a run, found one.json, other.json"),
        (["a", "--output", "notes.html"], "notes.html exists and is not a report; choose another file with --output"),
        (["a", "--output", "empty"], "cannot write empty: Is a directory"),
    ],
)
def test_what_cannot_be_reported_gives_a_one_line_error(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "a", summary_of())
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    for name in ("one.json", "other.json"):
        write_summary(tmp_path / "two" / name, summary_of())
    (tmp_path / "notes.html").write_text("mine")
    assert main(["report", *arguments]) == 2
    assert capsys.readouterr().err == f"seiche: error: {message}\n"
    assert (tmp_path / "notes.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("sites",), None, "unsupported format string passed to NoneType.__format__"),
        (("stages", 0, "minimum"), "MISSING", "'minimum' is missing"),
        (("stages",), 3, "'int' object is not iterable"),
        (("efficiency", "elapsed_s"), 0, "float division by zero"),
        (("movement", "messages"), [[0, 1]], "list index out of range"),
        (("movement",), "none", "'str' object has no attribute 'get'"),
    ],
)
def test_a_damaged_summary_gives_a_one_line_error(
    place: tuple[Any, ...], value: Any, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "a", summary_of()) / "summary.json"
    stored(tmp_path / "b", summary_of())
    content = json.loads(path.read_text())
    part = content
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    if value == "MISSING":
        del part[place[-1]]
    path.write_text(json.dumps(content))
    assert main(["report", str(tmp_path / "a")]) == 2
    assert capsys.readouterr().err == f"seiche: error: {path}: content: not a valid summary: {reason}\n"
    if place[0] != "sites":
        status = main(["report", "--compare", str(tmp_path / "b"), str(tmp_path / "a")])
        text = capsys.readouterr().err
        assert status == 0 or text.startswith(f"seiche: error: {tmp_path / 'b' / 'summary.json'} or {path}: content: ")
    assert not (tmp_path / "a" / "report.html").exists()


def test_the_summary_may_have_another_name(tmp_path: Path) -> None:
    write_summary(tmp_path / "numbers.json", summary_of())
    (tmp_path / "trace.json").write_text('{"schema": "seiche-trace-1"}')
    assert main(["report", str(tmp_path)]) == 0
    assert main(["report", str(tmp_path / "numbers.json"), "--output", str(tmp_path / "other.html")]) == 0
    assert (tmp_path / "report.html").read_text() == (tmp_path / "other.html").read_text()


def test_a_run_can_be_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "case.toml").write_text(toml_of(tube_tables()))
    assert main(["run", str(tmp_path / "case.toml")]) == 0
    assert main(["report", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    page = check_page((tmp_path / "out" / "report.html").read_text())
    assert "stream-collide interior" in page.prose
    parts = losses(**{key: read_summary(tmp_path / "out" / "summary.json")[key] for key in ("efficiency", "movement")})
    assert sum(part.share for part in parts) == pytest.approx(1.0)
