// SPDX-License-Identifier: BSD-3-Clause
/// List layouts: sparse sites in structure-of-arrays order, slot = q stride + i, adjacency as absolute slots.
/// At a link to a wall or an iolet, the adjacency is a slot of the site itself, so half-way bounce-back needs no extra
/// work.
/// A layout defines where incoming populations of site i are read (`load`), where outgoing ones are written (`store`),
/// and the slot of the outgoing population along q (`outgoing`).
#pragma once
#include "../warps.hpp"
#include "lanes.hpp"

namespace seiche {

/// All sites of a list are fluid.
struct FluidSites {
  template <class Site>
  static SEICHE_FN bool solid(const Site&) {
    return false;
  }
  template <int lanes>
  static SEICHE_FN bool solid_lanes(Index) {
    return false;
  }
};

/// Two copies: incoming populations are pulled from f_in, outgoing ones written to the site's own slots of f_out.
/// adjacency[q - 1][i]: slot of (x - c_q, q), or of (x, -q) if that site is not fluid. Bytes: 38 s + 72 per site.
template <class L, class R, class S>
struct ListAB : FluidSites {
  using Lattice = L;
  using Real = R;
  const S* f_in;
  S* f_out;
  const u32* adjacency;
  Index stride;
  static constexpr int bytes = 2 * L::Q * sizeof(S) + 4 * (L::Q - 1);
  using Site = Index;
  SEICHE_FN Site site(Index i) const { return i; }
  SEICHE_FN void load(Site i, Real (&f)[L::Q]) const {
    f[0] = decode<Real>(f_in[i]);
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED { f[q] = decode<Real>(f_in[adjacency[(q - 1) * stride + i]]); });
  }
  SEICHE_FN void store(Site i, const Real (&f)[L::Q]) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { encode(f_out[q * stride + i], f[q]); });
  }
  template <int q>
  SEICHE_FN S& outgoing(Site i) const {
    return f_out[q * stride + i];
  }
  template <int lanes>
  SEICHE_FN void load_lanes(Index i, Real (&f)[L::Q][lanes]) const {
    gather_sites<lanes>(f_in, adjacency, stride, i, f);
  }
  template <int lanes>
  SEICHE_FN void store_lanes(Index i, const Real (&f)[L::Q][lanes]) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { put_lanes<lanes>(f[q], f_out + q * stride + i); });
  }
};

/// Consecutive slots of the sites of a run up to number `end`; the preceding piece ends where this one begins.
struct Piece {
  u32 slot, end;
};

/// Populations of 16 sites in place, for the CPU: along each direction consecutive values, in memory or as a copy. The
/// outgoing population along q replaces the incoming one along -q.
template <class L, class S>
struct RunInPlace {
  static constexpr int sites = 16;
  const u32* row;
  S* at[L::Q];
  alignas(64) S copy[L::Q][2 * sites];
  /// Prefetches populations of the sites that follow soon in the list.
  SEICHE_FN void prefetch() const {
    constexpr int line = 64 / static_cast<int>(sizeof(S)), distance = 8 * line;
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED {
      for (int k = 0; k < sites; k += line) prefetch_line_soon(at[q] + distance + k);
    });
  }
};

/// In place, even step (Bailey et al. 2009): reads the own slots and writes them with directions exchanged. Bytes: 38
/// s.
template <class L, class R, class S>
struct ListAAEven : FluidSites {
  using Lattice = L;
  using Real = R;
  S* f;
  const u32* adjacency;
  Index stride;
  static constexpr int bytes = 2 * L::Q * sizeof(S);
  using Site = Index;
  SEICHE_FN Site site(Index i) const { return i; }
  SEICHE_FN void load(Site i, Real (&g)[L::Q]) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { g[q] = decode<Real>(f[q * stride + i]); });
  }
  SEICHE_FN void store(Site i, const Real (&g)[L::Q]) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { encode(f[opposite(q) * stride + i], g[q]); });
  }
  template <int q>
  SEICHE_FN S& outgoing(Site i) const {
    return f[opposite(q) * stride + i];
  }
  using Run = RunInPlace<L, S>;
  SEICHE_FN void open(Index i, Run& run) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { run.at[q] = f + q * stride + i; });
    run.prefetch();
  }
  SEICHE_FN void close(const Run&) const {}
};

/// In place, odd step: reads (x - c_q, -q), writes (x + c_q, q). Both are the same set of slots, so sites never
/// conflict.
/// adjacency[q - 1][i]: slot of (x - c_q, -q), or of (x, q) if that site is not fluid. Bytes: 38 s + 72 per site.
/// The batches of the CPU read a row of `runs` for 16 sites instead of the adjacency.
/// runs[i/16][q]: the first of 16 consecutive slots along q, or the index of the first of several pieces if bit q of
/// runs[i/16][0] is set.
template <class L, class R, class S>
struct ListAAOdd : FluidSites {
  using Lattice = L;
  using Real = R;
  S* f;
  const u32* adjacency;
  Index stride;
  const u32* runs;
  const Piece* pieces;
  static constexpr int bytes = 2 * L::Q * sizeof(S) + 4 * (L::Q - 1);
  struct Site {
    Index i;
    u32 slot[L::Q];
  };
  SEICHE_FN Site site(Index i) const {
    Site s;
    s.i = i;
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED { s.slot[q] = adjacency[(q - 1) * stride + i]; });
    return s;
  }
  SEICHE_FN void load(const Site& s, Real (&g)[L::Q]) const {
    g[0] = decode<Real>(f[s.i]);
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED { g[q] = decode<Real>(f[s.slot[q]]); });
  }
  SEICHE_FN void store(const Site& s, const Real (&g)[L::Q]) const {
    encode(f[s.i], g[0]);
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED { encode(f[s.slot[opposite(q)]], g[q]); });
  }
  template <int q>
  SEICHE_FN S& outgoing(const Site& s) const {
    if constexpr (q == 0) {
      return f[s.i];
    } else {
      return f[s.slot[opposite(q)]];
    }
  }
  using Run = RunInPlace<L, S>;
  SEICHE_FN void open(Index i, Run& run) const {
    constexpr int n = Run::sites;
    run.row = runs + i / n * L::Q;
    run.at[0] = f + i;
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED { run.at[q] = f + run.row[q]; });
    run.prefetch();  // before the pieces, although it does not help the directions that have several
    for_bits(run.row[0], [&](int q) SEICHE_INLINED {
      const Piece* piece = pieces + run.row[q];
      run.at[q] = run.copy[q];
      // A whole vector is copied for each piece; the next piece overwrites the values beyond the end.
      for (u32 lane = 0; lane < n; ++piece) {
        const S* source = f + piece->slot;
        S* target = run.copy[q] + lane;
        for_lanes<n>([&](int k) SEICHE_INLINED { target[k] = source[k]; });
        lane = piece->end;
      }
    });
  }
  SEICHE_FN void close(const Run& run) const {
    constexpr u32 n = Run::sites;
    for_bits(run.row[0], [&](int q) SEICHE_INLINED {
      const Piece* piece = pieces + run.row[q];
      for (u32 lane = 0; lane < n; ++piece) {
        const u32 end = piece->end;
        S* target = f + (static_cast<Index>(piece->slot) - lane);
        const S* source = run.copy[q];
        for_lanes<n>([&](int k) SEICHE_INLINED {
          if (static_cast<u32>(k) >= lane && static_cast<u32>(k) < end) target[k] = source[k];
        });
        lane = end;
      }
    });
  }
};

}  // namespace seiche
