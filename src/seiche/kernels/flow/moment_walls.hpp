// SPDX-License-Identifier: BSD-3-Clause
/// Populations beside boundaries in moment storage (theory/flow, section 9): what leaves chosen sites, and what arrives
/// there, rebuilt into the side table of links, where the kernels of walls and openings find them by their slots.
#pragma once
#include "layout_moments.hpp"

namespace seiche {

/// Item: a site, with the directions wanted. Bytes are those of the coefficients and of all that leaves.
template <class Layout>
struct RebuiltPopulations {
  using Real = typename Layout::Real;
  Layout layout;
  const Index* sites;
  const u32* leaving;   ///< bit q: what left along c_q goes to slot left + q
  const u32* left;      ///< slot of the population at rest
  const u32* arriving;  ///< bit q: what arrives along c_q goes to the next slot from `arrived` on, by direction
  const u32* arrived;
  static constexpr int bytes = Layout::bytes / 2 + Layout::Lattice::Q * sizeof(typename Layout::Value) + 24;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const auto site = layout.site(sites[k]);
    const auto own = Layout::coefficients(layout.f_in + site.tile, site.lane);
    auto* to = layout.link_values + left[k];
    const u32 leaves = leaving[k], arrives = arriving[k];
    each<0, L::Q>([&]<int q>() SEICHE_INLINED {
      if (leaves >> q & 1u) encode(to[q], population<L, q>(own));
    });
    to = layout.link_values + arrived[k];
    each<1, L::Q>([&]<int q>() SEICHE_INLINED {
      if (arrives >> q & 1u) encode(*to++, population<L, q>(layout.template upwind<q>(site)));
    });
  }
};

}  // namespace seiche
