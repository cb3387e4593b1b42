# SPDX-License-Identifier: BSD-3-Clause
"""The words by which devices tell each other of messages."""

from __future__ import annotations

import time

import numpy as np

from seiche.backend import open_backend
from seiche.kernels.registry.halo import halo_await, halo_publish


def test_every_message_is_counted_and_waited_for_once(device: str) -> None:
    backend = open_backend(device)
    publish, wait = backend.load(halo_publish()), backend.load(halo_await())
    words, sent, received = (backend.zeros(3, np.uint32) for _ in range(3))
    start = np.array([0, 2**32 - 2, 7], np.uint32)  # one count is about to wrap around
    for array in (words, sent, received):
        backend.assign(array, start)
    failed = backend.pinned(1, np.uint32)
    failed[0] = 0
    addresses = backend.upload(np.array([backend.pointer(words) + 4 * k for k in range(3)], np.uint64))
    tell = publish.bind(backend.pack(publish, flags=addresses, sent=sent), 0, 3)
    arguments = backend.pack(wait, flags=words, received=received, failed=int(failed.ctypes.data), timeout=int(0.2e9))
    listen = wait.bind(arguments, 0, 3)
    for _ in range(5):
        tell()
        listen()
    backend.synchronize()
    assert failed[0] == 0
    np.testing.assert_array_equal(backend.download(words), start + np.uint32(5))
    np.testing.assert_array_equal(backend.download(received), start + np.uint32(5))
    begin = time.perf_counter()
    listen()  # nothing was sent: the wait ends, and later ones end at once
    backend.synchronize()
    assert failed[0] in (1, 2, 3)
    assert time.perf_counter() - begin >= 0.2
    begin = time.perf_counter()
    listen()
    backend.synchronize()
    assert time.perf_counter() - begin < 0.1
