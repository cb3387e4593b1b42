# SPDX-License-Identifier: BSD-3-Clause
"""Status page of a run for a browser on the same machine: read-only, on the loopback address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import BoundedSemaphore, Thread, Timer
from time import sleep
from typing import Any

#: Loopback: not reachable from other machines.
ADDRESS = "127.0.0.1"
_REFRESH_SECONDS = 2
#: Limits: simultaneous connections, idle seconds and total seconds of a connection.
_MAX_CONNECTIONS, _IDLE_SECONDS, _MAX_SECONDS = 16, 5.0, 20.0
#: Seconds before the next accept after a failed one.
_RETRY_SECONDS = 0.1

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{seconds}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.6 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem; max-width: 30rem; }}
progress {{ width: 100%; }} td {{ padding: .1rem 1rem .1rem 0; overflow-wrap: anywhere; }}</style>
</head><body><h1>{title}</h1><progress max="1" value="{share}"></progress><table>{rows}</table></body></html>
"""


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
    """Read-only server of a state: a page at `/` that refreshes itself, JSON at `/status.json`.

    Args:
        state: returns names and values; `share` (0..1) is shown as a bar. Called in another thread.
        title: heading of the page.
        port: TCP port; 0 selects a free one.
    """

    def __init__(self, state: Callable[[], Mapping[str, Any]], title: str, port: int = 0) -> None:
        """Start serving.

        Raises:
            OSError: the port is in use.
        """

        class Handler(BaseHTTPRequestHandler):
            timeout = _IDLE_SECONDS

            def do_GET(self) -> None:
                """Answer with the page or the JSON."""
                # DNS rebinding: reject requests by any other host name.
                host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
                if host not in (ADDRESS, "localhost"):
                    self.send_error(403)
                elif self.path == "/":
                    self._answer("text/html; charset=utf-8", page(title, state()))
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

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def page(title: str, state: Mapping[str, Any]) -> str:
    """Return the page of a state."""
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td><td>{escape(str(value))}</td></tr>"
        for name, value in state.items()
        if name != "share" and value is not None
    )
    return _PAGE.format(title=escape(title), share=float(state.get("share", 0.0)), rows=rows, seconds=_REFRESH_SECONDS)
