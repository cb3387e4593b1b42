// SPDX-License-Identifier: BSD-3-Clause
/// Streaming and collision of one site (theory/flow, eqs. 1 to 12): the bulk of every step.
/// Bytes a site: those of the layout (2 Q populations and its addressing) and those of the relaxation.
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
  static constexpr int bytes = Layout::bytes + Relaxation::bytes;
  /// From the populations that arrived to the ones that leave.
  SEICHE_FN void update(Index i, typename Layout::Real (&f)[Layout::Lattice::Q]) const {
    using Lattice = typename Layout::Lattice;
    const auto m = moments<Lattice>(f, force);
    const auto rates = relaxation.template operator()<Lattice>(i, f, m, force);
    Collision::template collide<Lattice>(f, m, rates, force);
  }
  SEICHE_FN void operator()(Index i) const { run(i, layout.site(i)); }
  /// On the GPU, layouts with a table bring their part of it into shared memory first.
  template <int threads, class From = Layout>
  using Staging = typename From::template Staging<threads>;
  template <class Rows>
  SEICHE_FN void stage(Rows& staging, Index first, Index end, int thread) const {
    layout.stage(staging, first, end, thread);
  }
  template <class Rows>
  SEICHE_FN void operator()(Index i, int thread, const Rows& staging) const {
    run(i, layout.site(i, thread, staging));
  }
  SEICHE_FN void run(Index i, const typename Layout::Site& site) const {
    using Lattice = typename Layout::Lattice;
    SEICHE_SKIP_IF(Layout::solid(site));
    typename Layout::Real f[Lattice::Q];
    layout.load(site, f);
    update(i, f);
    layout.store(site, f);
  }
  /// The same for a batch of items on the CPU: gather all, collide as one vector loop, put all.
  static constexpr int lanes = 64;
  SEICHE_FN void batch(Index first) const {
    using Lattice = typename Layout::Lattice;
    using Real = typename Layout::Real;
    alignas(64) Real lane[Lattice::Q][lanes];
    layout.load_lanes(first, lane);
    for_lanes<lanes>([&](int k) SEICHE_INLINED {
      Real f[Lattice::Q];
      each<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { f[q] = lane[q][k]; });
      update(first + k, f);
      each<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { lane[q][k] = f[q]; });
    });
    layout.store_lanes(first, lane);
  }
};

}  // namespace seiche
