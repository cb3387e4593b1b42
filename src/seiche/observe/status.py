# SPDX-License-Identifier: BSD-3-Clause
"""Status page of a run for a browser on the same machine: read-only, on the loopback address."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from socket import SHUT_RDWR, socket
from threading import BoundedSemaphore, Thread, Timer
from time import monotonic, sleep
from typing import Any

#: Loopback: not reachable from other machines.
ADDRESS = "127.0.0.1"
_REFRESH_SECONDS = 2
#: Limits: simultaneous connections, idle seconds and total seconds of a connection.
_MAX_CONNECTIONS, _IDLE_SECONDS, _MAX_SECONDS = 16, 5.0, 20.0
#: Seconds before the next accept after a failed one.
_RETRY_SECONDS = 0.1

#: Loads the state every two seconds, and the figures when they have changed; the last ones remain after the run.
_SCRIPT = """
const part = name => document.getElementById(name);
const get = path => fetch(path, {cache: "no-store"}).then(answer => answer.ok ? answer.text() : Promise.reject());
let shown = part("live").firstElementChild.dataset.figures;
async function update() {
  try {
    part("live").innerHTML = await get("/live");
    const latest = part("live").firstElementChild.dataset.figures;
    if (latest !== shown) { part("figures").innerHTML = await get("/figures"); shown = latest; }
    part("note").textContent = "";
  } catch { part("note").textContent = "No answer since " + new Date().toLocaleTimeString() + ": the run has ended."; }
  setTimeout(update, SECONDS * 1000);
}
setTimeout(update, SECONDS * 1000);
""".replace("SECONDS", str(_REFRESH_SECONDS))
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()}'"
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<noscript><meta http-equiv="refresh" content="{seconds}"></noscript>
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>:root {{ color-scheme: light dark; --line: #8884; --soft: #8881; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem; max-width: 62rem; }}
h1 {{ font-size: 1.3rem; margin: 0 0 .5rem; }} h2 {{ font-size: 1rem; margin: 1rem 0 .3rem; width: 100%; }}
progress {{ width: 100%; }} td {{ padding: .1rem 1rem .1rem 0; overflow-wrap: anywhere; }} p {{ margin: .2rem 0; }}
#figures {{ display: flex; flex-wrap: wrap; gap: 1rem; }} figure {{ margin: 0; flex: 1 1 20rem; max-width: 30rem; }}
svg {{ width: 100%; height: auto; display: block; }}
svg text {{ font: 11px system-ui, sans-serif; fill: currentColor; }}
svg .axis {{ stroke: currentColor; stroke-opacity: .45; fill: none; }}
figure p, .key {{ font-size: .85rem; }} .key {{ display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .2rem 0; }}
.key {{ padding: 0; list-style: none; }}
.key i {{ display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin-right: .35rem; }}
.row {{ display: grid; grid-template-columns: minmax(6rem, 11rem) 1fr 3.5rem; gap: .5rem; font-size: .85rem; }}
.row {{ align-items: center; }} .row small {{ text-align: right; }}
.bar {{ height: .8rem; background: var(--soft); border-radius: .2rem; }}
.bar span {{ display: block; height: 100%; border-radius: .2rem; }}</style>
</head><body><h1>{title}</h1><div id="live">{live}</div><p id="note"></p><div id="figures">{figures}</div>
<script>{script}</script></body></html>
"""


@dataclass(frozen=True)
class Figures:
    """Figures of the status page as HTML; `number` changes with them."""

    number: int = 0
    html: str = ""


class _Server(ThreadingHTTPServer):
    """Server with limited connections, to protect the threads and file descriptors of the run."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._free_connections = BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(*arguments)

    def get_request(self) -> tuple[socket, Any]:
        """Accept a connection; `serve_forever` ignores an OSError."""
        try:
            return super().get_request()
        except OSError:
            sleep(_RETRY_SECONDS)  # too many open files: the connection remains pending
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or close the connection if too many are open."""
        if not self._free_connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free_connections.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and close the connection after `_MAX_SECONDS` at the latest."""
        time_limit = Timer(_MAX_SECONDS, _shut_down, (request,))
        time_limit.daemon = True
        try:
            time_limit.start()
            super().process_request_thread(request, client_address)
        finally:
            time_limit.cancel()
            self._free_connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Suppress the log, since the run prints to the terminal."""


def _shut_down(connection: socket) -> None:
    """Close a connection that may already be closed."""
    with suppress(OSError):
        connection.shutdown(SHUT_RDWR)


class StatusServer:
    """Read-only server of a state: a page at `/` that updates itself, JSON at `/status.json`.

    Args:
        state: returns names and values; `share` (0..1) is shown as a bar. Called in another thread.
        title: heading of the page.
        port: TCP port; 0 selects a free one.
        figures: returns the figures of the page. Called in another thread.
    """

    def __init__(
        self,
        state: Callable[[], Mapping[str, Any]],
        title: str,
        port: int = 0,
        figures: Callable[[], Figures] = Figures,
    ) -> None:
        """Start serving.

        Raises:
            OSError: the port is in use.
        """
        self._last_view = -inf
        views: dict[str, Callable[[], str]] = {
            "/": lambda: page(title, state(), figures()),
            "/live": lambda: live_part(state(), figures().number),
            "/figures": lambda: figures().html,
        }

        def record_view() -> None:
            self._last_view = monotonic()

        class Handler(BaseHTTPRequestHandler):
            timeout = _IDLE_SECONDS

            def do_GET(self) -> None:
                """Answer with the page or the JSON."""
                # DNS rebinding: reject requests by any other host name.
                host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
                if host not in (ADDRESS, "localhost"):
                    self.send_error(403)
                elif self.path in views:
                    record_view()
                    self._answer("text/html; charset=utf-8", views[self.path]())
                elif self.path == "/status.json":
                    self._answer("application/json", json.dumps(dict(state())))
                else:
                    self.send_error(404)

            def _answer(self, kind: str, text: str) -> None:
                content = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Security-Policy", _POLICY)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Suppress the log, since the run prints to the terminal."""

        self._server = _Server((ADDRESS, port), Handler)
        self._thread = Thread(target=self._server.serve_forever, name="seiche status", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{ADDRESS}:{self._server.server_port}/"

    @property
    def unwatched_seconds(self) -> float:
        """Return the seconds since a browser last asked for the page, infinite before the first time."""
        return monotonic() - self._last_view

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def page(title: str, state: Mapping[str, Any], figures: Figures) -> str:
    """Return the page of a state."""
    live = live_part(state, figures.number)
    parts = {"live": live, "figures": figures.html, "script": _SCRIPT, "seconds": _REFRESH_SECONDS}
    return _PAGE.format(title=escape(title), **parts)


def live_part(state: Mapping[str, Any], figures: int) -> str:
    """Return the bar and the table of a state, with the number of the latest figures."""
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td><td>{escape(str(value))}</td></tr>"
        for name, value in state.items()
        if name != "share" and value is not None
    )
    share = float(state.get("share", 0.0))
    return f'<div data-figures="{figures}"><progress max="1" value="{share}"></progress><table>{rows}</table></div>'
