# SPDX-License-Identifier: BSD-3-Clause
"""The status page shows the progress of a run, to this machine only, and accepts no input."""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import time
from pathlib import Path

import pytest

from case_files import toml_of, tube_tables
from seiche.cli import main
from seiche.observe import status
from seiche.observe.progress import Progress
from seiche.observe.stage import Stage
from seiche.observe.status import StatusServer
from seiche.observe.timers import StageTimers


def request(server: StatusServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str]:
    port = int(server.url.rstrip("/").rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_the_page_shows_the_state_of_now_and_takes_nothing() -> None:
    state = {"share": 0.25, "step": "25/100", "note": "<b>"}
    server = StatusServer(lambda: state, "a & b")
    try:
        code, text = request(server, "/")
        assert code == 200
        assert "25/100" in text and 'value="0.25"' in text and "&lt;b&gt;" in text and "a &amp; b" in text
        assert "viewport" in text and text.count("<script") == 1
        state["step"] = "26/100"
        assert json.loads(request(server, "/status.json")[1])["step"] == "26/100"
        assert request(server, "/etc/passwd")[0] == 404
        assert request(server, "/", "POST")[0] == request(server, "/", "DELETE")[0] == 501
        assert request(server, "/", host="evil.example")[0] == 403
        assert request(server, "/", host="localhost:1")[0] == 200
    finally:
        server.close()
    with pytest.raises(OSError):
        request(server, "/")


def test_idle_connections_take_few_descriptors_and_never_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_IDLE_SECONDS", 0.5)
    server = StatusServer(lambda: {"share": 0.5}, "run")
    port = int(server.url.rstrip("/").rpartition(":")[2])
    before = len(os.listdir("/proc/self/fd"))
    idle: list[socket.socket] = []
    try:
        for _ in range(300):
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        time.sleep(0.3)
        # Both ends of each connection are in this process: 300 of the clients, at most 16 and one of the server.
        assert len(os.listdir("/proc/self/fd")) - before <= 300 + 17
        time.sleep(1.0)
        assert request(server, "/status.json")[0] == 200
        accepted = server._server.socket.accept
        failing = [OSError(errno.EMFILE, "Too many open files")] * 3

        def accept() -> tuple[socket.socket, object]:
            if failing:
                raise failing.pop()
            return accepted()

        monkeypatch.setattr(server._server, "socket", Listening(server._server.socket, accept))
        assert request(server, "/status.json")[0] == 200
        assert not failing
    finally:
        for one in idle:
            one.close()
        server.close()


class Listening:
    """A socket whose `accept` is another function."""

    def __init__(self, of: socket.socket, accept: object) -> None:
        self._of, self.accept = of, accept

    def __getattr__(self, name: str) -> object:
        """Return what the socket has."""
        return getattr(self._of, name)


def test_progress_tells_imbalance_and_checkpoint() -> None:
    now = [0.0]
    progress = Progress(100, 1_000_000, visible=False, clock=lambda: now[0])
    with progress:
        now[0] = 2.0
        progress.update(50, imbalance=1.25, checkpoint=40)
        state = progress.state()
        line = progress.status_text()
    assert (state["step"], state["share"], state["time to go"]) == ("50 of 100", 0.5, "0:02")
    assert state["busiest rank"] == "25 % above the mean"
    assert state["last checkpoint"] == "step 40"
    assert "25 % imbalance" in line and "checkpoint 40" in line


def test_a_run_serves_its_status_where_it_is_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "case.toml").write_text(toml_of(tube_tables()))
    assert main(["run", str(tmp_path / "case.toml"), "--serve"]) == 0
    assert "seiche: status at http://127.0.0.1:" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["run", str(tmp_path / "case.toml"), "--replace", "--serve", "--port", str(port)]) == 2
        assert f"seiche: error: --port {port}: " in capsys.readouterr().err
    assert main(["run", str(tmp_path / "case.toml"), "--port", "8000"]) == 2
    assert capsys.readouterr().err == "seiche: error: --port 8000: requires --serve\n"


def test_checks_of_the_balance_read_no_mark_of_the_newest_steps() -> None:
    timers = StageTimers(every=1, skip=0)
    stages = [Stage("work", lambda: sum(range(1000)))]
    timers.step(stages)
    assert timers.mean_useful_seconds() == 0.0
    timers.step(stages)
    assert timers.mean_useful_seconds() > 0.0
