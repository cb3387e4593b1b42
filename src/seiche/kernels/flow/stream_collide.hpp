// SPDX-License-Identifier: BSD-3-Clause
/// Streaming and collision of one site (theory/flow, eqs. 1 to 12; eqs. 31 to 35): the bulk of every step.
/// Bytes per site: the bytes of the layout (2 Q populations and its addressing), of the relaxation and of the force.
#pragma once
#include "collision.hpp"
#include "layout_list.hpp"
#include "layout_tiles.hpp"

namespace seiche {

template <class Layout, class Collision, class Relaxation, class Force>
struct StreamCollide {
  Layout layout;
  Relaxation relaxation;
  Force force;
  static constexpr int bytes = Layout::bytes + Relaxation::bytes + Force::bytes;
  /// Maps incoming populations to outgoing ones.
  SEICHE_FN void update(Index i, typename Layout::Real (&f)[Layout::Lattice::Q]) const {
    using Lattice = typename Layout::Lattice;
    const auto& g = force.at(i);
    const auto m = moments<Lattice>(f, g);
    const auto p = nonequilibrium<Lattice>(f, m, g);  // eliminated by the compiler for constant rates
    const auto rates = relaxation(i, p, m.rho);
    Collision::template collide<Lattice>(f, m, p, rates, g);
  }
  SEICHE_FN void operator()(Index i) const { run(i, layout.site(i)); }
  /// On the GPU, layouts with a table first load their part of it into shared memory. A thread may process two
  /// neighbours as one.
  template <int items, class From = Layout>
  using Staging = typename From::template Staging<items>;
  template <class Rows>
  SEICHE_FN void stage(Rows& staging, Index first, Index end, int thread, int threads) const {
    layout.stage(staging, first, end, thread, threads);
  }
  template <int items, class Rows>
  SEICHE_FN void handle(Index i, int item, const Rows& staging) const {
    if constexpr (items == 1) {
      run(i, layout.site(i, item, staging));
    } else {
      run_two(i, layout.site(i, item, staging), layout.site(i + 1, item + 1, staging));
    }
  }
  SEICHE_FN void run(Index i, const typename Layout::Site& site) const {
    using Lattice = typename Layout::Lattice;
    SEICHE_SKIP_IF(Layout::solid(site));
    typename Layout::Real f[Lattice::Q];
    layout.load(site, f);
    update(i, f);
    layout.store(site, f);
  }
  template <class Site>
  SEICHE_FN void run_two(Index i, const Site& site, const Site& next) const {
    using Lattice = typename Layout::Lattice;
    using Real = typename Layout::Real;
    SEICHE_SKIP_IF(Layout::solid(site) && Layout::solid(next));
    typename Layout::Two two[Lattice::Q];
    layout.load_two(site, next, two);
    static_for<0, 2>([&]<int k>() SEICHE_INLINED {
      Real f[Lattice::Q];
      static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { f[q] = decode<Real>(two[q].of[k]); });
      update(i + k, f);
      static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { encode(two[q].of[k], f[q]); });
    });
    layout.store_two(site, two);
  }
  /// The same for a batch of items on the CPU: in place by runs of sites, or gather all, collide in one vector loop,
  /// store all.
  static constexpr int lanes = 64;
  SEICHE_FN void batch(Index first) const {
    if constexpr (requires { typename Layout::Run; }) {
      for (int k = 0; k < lanes; k += Layout::Run::sites) run_in_place(first + k);
    } else {
      gather_and_store(first);
    }
  }
  SEICHE_FN void run_in_place(Index first) const {
    using Lattice = typename Layout::Lattice;
    using Run = typename Layout::Run;
    Run run;
    layout.open(first, run);
    for_lanes<Run::sites>([&](int k) SEICHE_INLINED {
      typename Layout::Real f[Lattice::Q];
      static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { f[q] = decode<typename Layout::Real>(run.at[q][k]); });
      update(first + k, f);
      static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { encode(run.at[opposite(q)][k], f[q]); });
    });
    layout.close(run);
  }
  SEICHE_FN void gather_and_store(Index first) const {
    using Lattice = typename Layout::Lattice;
    using Real = typename Layout::Real;
    if (layout.template solid_lanes<lanes>(first)) return;
    alignas(64) Real lane[Lattice::Q][lanes];
    layout.load_lanes(first, lane);
    for_lanes<lanes>([&](int k) SEICHE_INLINED {
      Real f[Lattice::Q];
      static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { f[q] = lane[q][k]; });
      update(first + k, f);
      static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { lane[q][k] = f[q]; });
    });
    layout.store_lanes(first, lane);
  }
};

}  // namespace seiche
