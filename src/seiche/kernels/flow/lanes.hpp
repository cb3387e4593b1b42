// SPDX-License-Identifier: BSD-3-Clause
/// Transfers of lanes between a buffer and storage, for the batches of the CPU.
#pragma once
#include "lattice.hpp"

namespace seiche {

template <int lanes, class S, class Real>
SEICHE_FN void copy_lanes(const S* from, Real* to) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { to[k] = decode<Real>(from[k]); });
}

template <int lanes, class S, class Real>
SEICHE_FN void gather_lanes(const S* from, const u32* slots, Real* to) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { to[k] = decode<Real>(from[slots[k]]); });
}

/// Arriving populations of the sites from i of a list: g[q] from the slots of row q - 1 of `adjacency`.
template <int lanes, int count, class S, class Real>
SEICHE_FN void gather_sites(const S* f, const u32* adjacency, Index stride, Index i, Real (&g)[count][lanes]) {
  copy_lanes<lanes>(f + i, g[0]);
  static_for<1, count>([&]<int q>() SEICHE_INLINED { gather_lanes<lanes>(f, adjacency + (q - 1) * stride + i, g[q]); });
}

/// Prefetches values.
template <int lanes, class S>
SEICHE_FN void prefetch(const S* from) {
  for (int k = 0; k < lanes; k += 64 / static_cast<int>(sizeof(S))) prefetch_line(from + k);
}

/// Stores to memory that was just read and is in the cache.
template <int lanes, class S, class Real>
SEICHE_FN void store_lanes_cached(const Real* from, S* to) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { encode(to[k], from[k]); });
}

template <int lanes, class S, class Real>
SEICHE_FN void scatter_lanes(const Real* from, S* to, const u32* slots) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { encode(to[slots[k]], from[k]); });
}

/// Stores to memory that was not read, bypassing the caches. This avoids reading each cache line before it is
/// overwritten.
template <int lanes, class S, class Real>
SEICHE_FN void put_lanes(const Real* from, S* to) {
  if (can_stream(to)) {
    alignas(64) S line[lanes];
    store_lanes_cached<lanes>(from, line);
    stream_out(to, line, sizeof line);
  } else {
    store_lanes_cached<lanes>(from, to);
  }
}

}  // namespace seiche
