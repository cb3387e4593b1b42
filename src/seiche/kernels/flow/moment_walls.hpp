// SPDX-License-Identifier: BSD-3-Clause
/// Populations next to boundaries in moment storage (theory/flow, section 9). Outgoing and arriving populations of
/// selected sites are rebuilt into the side table of links. Kernels of walls and openings address them there by slot.
#pragma once
#include "layout_moments.hpp"

namespace seiche {

/// Item: a site and its selected directions. Bytes: the coefficients and all outgoing populations.
template <class Layout>
struct RebuiltPopulations {
  using Real = typename Layout::Real;
  Layout layout;
  const Index* sites;
  const u32* leaving;        ///< bit q: the outgoing population along c_q is written to slot first_leaving + q
  const u32* first_leaving;  ///< slot of the rest population
  const u32* arriving;  ///< bit q: the arriving population along c_q is written to the next slot from `first_arriving`,
                        ///< by direction
  const u32* first_arriving;
  static constexpr int bytes = Layout::bytes / 2 + Layout::Lattice::Q * sizeof(typename Layout::Value) + 24;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const auto site = layout.site(sites[k]);
    const auto own = Layout::coefficients(layout.f_in + site.tile, site.lane);
    auto* to = layout.link_values + first_leaving[k];
    const u32 leaves = leaving[k], arrives = arriving[k];
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED {
      if (leaves >> q & 1u) encode(to[q], population<L, q>(own));
    });
    to = layout.link_values + first_arriving[k];
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED {
      if (arrives >> q & 1u) encode(*to++, population<L, q>(layout.template upwind<q>(site)));
    });
  }
};

}  // namespace seiche
