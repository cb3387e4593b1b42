# SPDX-License-Identifier: BSD-3-Clause
"""Pack, Unpack and UnpackAdd against NumPy indexing."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.kernels.registry.halo import VALUES_PER_GROUP, halo_move, halo_move_groups, halo_pack_parts

DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("action", "store"),
    [
        *((action, store) for action in ("Pack", "Unpack") for store in ("float64", "float32", "float16")),
        ("UnpackAdd", "float64"),  # sums are never stored in 16 bits
        ("UnpackAdd", "float32"),
    ],
)
def test_slots_move_as_numpy_indexing_moves_them(device, store, action):
    if device == "cuda":
        pytest.importorskip("cupy")
    backend = open_backend(device, 2 if device == "cpu" else None)
    random = np.random.default_rng(5)
    array = random.standard_normal(1000).astype(store)
    message = random.standard_normal(313).astype(store)
    slots = random.permutation(1000)[:313].astype(np.uint32)
    on_device = {name: backend.upload(host) for name, host in (("array", array), ("buffer", message), ("slots", slots))}

    kernel = backend.load(halo_move(action, store))
    # A part of the items only, as for a message in the middle of a buffer.
    kernel.bind(backend.pack(kernel, **on_device), 13, 300)()

    part = slice(13, 300)
    if action == "Pack":
        message[part] = array[slots[part]]
    elif action == "Unpack":
        array[slots[part]] = message[part]
    else:
        array[slots[part]] += message[part]
    np.testing.assert_array_equal(backend.download(on_device["array"]), array)
    np.testing.assert_array_equal(backend.download(on_device["buffer"]), message)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("store", ["float64", "float32", "float16"])
@pytest.mark.parametrize("action", ["Pack", "Unpack", "PackParts"])
def test_several_values_of_a_thread_move_as_one_by_one(device, store, action):
    if device == "cuda":
        pytest.importorskip("cupy")
    backend = open_backend(device, 2 if device == "cpu" else None)
    random = np.random.default_rng(6)
    count = 2 * VALUES_PER_GROUP + 77
    array, message = (random.standard_normal(n).astype(store) for n in (9000, count + 5))
    slots = random.permutation(9000)[:count].astype(np.uint32)
    on_device = {name: backend.upload(host) for name, host in (("array", array), ("slots", slots))}
    buffer = backend.upload(message)
    if action == "PackParts":
        begin = backend.pointer(buffer)  # two messages, five values apart
        addresses = np.array([begin, begin + (3000 + 5) * message.itemsize], np.uint64)
        starts, spec = backend.upload(np.array([0, 3000])), halo_pack_parts(store)
        on_device |= {"buffers": backend.upload(addresses), "starts": starts, "parts": 2}
    else:
        on_device["buffer"], spec = buffer, halo_move(action, store)

    kernel = backend.load(halo_move_groups(spec))
    kernel.bind(backend.pack(kernel, move=on_device, end=count), 0, 3)()

    if action == "Unpack":
        array[slots] = message[:count]
    elif action == "Pack":
        message[:count] = array[slots]
    else:
        message[:3000], message[3005:] = array[slots[:3000]], array[slots[3000:]]
    np.testing.assert_array_equal(backend.download(on_device["array"]), array)
    np.testing.assert_array_equal(backend.download(buffer), message)


@pytest.mark.parametrize("store", ["float64", "float32", "float16"])
def test_declared_bytes_are_those_of_value_value_and_slot(store):
    backend = open_backend("cpu", 1)
    size = np.dtype(store).itemsize
    assert backend.load(halo_move("Pack", store)).bytes_per_item == 2 * size + 4
    assert backend.load(halo_move("Unpack", store)).bytes_per_item == 2 * size + 4
