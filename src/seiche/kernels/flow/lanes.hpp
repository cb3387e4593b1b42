// SPDX-License-Identifier: BSD-3-Clause
/// Transfers of lanes between a buffer and storage, for the batches of the CPU.
#pragma once
#include "lattice.hpp"

namespace seiche {

template <int lanes, class S, class Real>
SEICHE_FN void copy_lanes(const S* source, Real* target) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { target[k] = decode<Real>(source[k]); });
}

template <int lanes, class S, class Real>
SEICHE_FN void gather_lanes(const S* source, const u32* slots, Real* target) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { target[k] = decode<Real>(source[slots[k]]); });
}

/// Incoming populations of the sites from i of a list: g[q] from the slots of row q - 1 of `adjacency`.
template <int lanes, int count, class S, class Real>
SEICHE_FN void gather_sites(const S* f, const u32* adjacency, Index stride, Index i, Real (&g)[count][lanes]) {
  copy_lanes<lanes>(f + i, g[0]);
  static_for<1, count>([&]<int q>() SEICHE_INLINED { gather_lanes<lanes>(f, adjacency + (q - 1) * stride + i, g[q]); });
}

/// Prefetches values.
template <int lanes, class S>
SEICHE_FN void prefetch(const S* source) {
  for (int k = 0; k < lanes; k += 64 / static_cast<int>(sizeof(S))) prefetch_line(source + k);
}

/// Stores to memory that was just read and is in the cache.
template <int lanes, class S, class Real>
SEICHE_FN void store_lanes_cached(const Real* source, S* target) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { encode(target[k], source[k]); });
}

template <int lanes, class S, class Real>
SEICHE_FN void scatter_lanes(const Real* source, S* target, const u32* slots) {
  for_lanes<lanes>([&](int k) SEICHE_INLINED { encode(target[slots[k]], source[k]); });
}

/// Stores to memory that was not read, bypassing the caches. This avoids reading each cache line before it is
/// overwritten.
template <int lanes, class S, class Real>
SEICHE_FN void put_lanes(const Real* source, S* target) {
  if (can_stream(target)) {
    alignas(64) S line[lanes];
    store_lanes_cached<lanes>(source, line);
    stream_out(target, line, sizeof line);
  } else {
    store_lanes_cached<lanes>(source, target);
  }
}

}  // namespace seiche
