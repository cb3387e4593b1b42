# SPDX-License-Identifier: BSD-3-Clause
"""How far a run is, for a browser on the same machine: a page that only tells, on the loopback address alone."""

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

#: Nothing outside this machine reaches it.
ADDRESS = "127.0.0.1"
_SECONDS = 2
#: Most connections at a time, the seconds for which one may say nothing, and those that all of one may take.
_MOST, _IDLE, _LONGEST = 16, 5.0, 20.0
#: Seconds until a connection is accepted again after one that could not be.
_PAUSE = 0.1

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{seconds}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.6 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem; max-width: 30rem; }}
progress {{ width: 100%; }} td {{ padding: .1rem 1rem .1rem 0; overflow-wrap: anywhere; }}</style>
</head><body><h1>{title}</h1><progress max="1" value="{share}"></progress><table>{rows}</table></body></html>
"""


class _Server(ThreadingHTTPServer):
    """A few connections for a short time each: whoever connects, the run keeps its threads and descriptors."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._free = BoundedSemaphore(_MOST)
        super().__init__(*arguments)

    def get_request(self) -> tuple[socket, Any]:
        """Accept a connection; what fails here is left out by `serve_forever`."""
        try:
            return super().get_request()
        except OSError:
            sleep(_PAUSE)  # too many open files: the connection still waits, so that the next look finds it again
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or close the connection where too many are open."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be made
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and end the connection after `_LONGEST` whatever it sends."""
        end = Timer(_LONGEST, _end, (request,))
        end.daemon = True
        try:
            end.start()
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the terminal belongs to the run."""


def _end(connection: socket) -> None:
    """End a connection that may have ended already."""
    with suppress(OSError):
        connection.shutdown(SHUT_RDWR)


class StatusServer:
    """Serves what `state` returns: a page at `/` that renews itself, JSON at `/status.json`; nothing can be sent to it.

    Args:
        state: returns names and values; `share` (0..1) is drawn as a bar. Called in another thread.
        title: heading of the page.
        port: 0 takes a free one.
    """

    def __init__(self, state: Callable[[], Mapping[str, Any]], title: str, port: int = 0) -> None:
        """Begin to serve.

        Raises:
            OSError: the port is taken.
        """

        class Handler(BaseHTTPRequestHandler):
            timeout = _IDLE

            def do_GET(self) -> None:
                """Answer with the page or the JSON."""
                # A page of another site must not read this one through a name that it has made to point here.
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
                """Say nothing: the terminal belongs to the run."""

        self._server = _Server((ADDRESS, port), Handler)
        self._thread = Thread(target=self._server.serve_forever, name="seiche status", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where the page is."""
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
    return _PAGE.format(title=escape(title), share=float(state.get("share", 0.0)), rows=rows, seconds=_SECONDS)
