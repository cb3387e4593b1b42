// SPDX-License-Identifier: BSD-3-Clause
/// Populations next to boundaries in moment storage (theory/flow, section 9). Outgoing and incoming populations of
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
  const u32* outgoing;        ///< bit q: the outgoing population along c_q is written to slot first_outgoing + q
  const u32* first_outgoing;  ///< slot of the rest population
  const u32* incoming;  ///< bit q: the incoming population along c_q is written to the next slot from `first_incoming`,
                        ///< by direction
  const u32* first_incoming;
  static constexpr int bytes = Layout::bytes / 2 + Layout::Lattice::Q * sizeof(typename Layout::Value) + 24;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const auto site = layout.site(sites[k]);
    const auto m = Layout::coefficients(layout.f_in + site.tile, site.lane);
    auto* values = layout.link_values + first_outgoing[k];
    const u32 outgoing_bits = outgoing[k], incoming_bits = incoming[k];
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED {
      if (outgoing_bits >> q & 1u) encode(values[q], population<L, q>(m));
    });
    values = layout.link_values + first_incoming[k];
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED {
      if (incoming_bits >> q & 1u) encode(*values++, population<L, q>(layout.template upwind<q>(site)));
    });
  }
};

}  // namespace seiche
