// SPDX-License-Identifier: BSD-3-Clause
/// Pressure prescribed in the plane of an iolet (theory/flow, eqs. 39 and 40). Along a link, the sum of the outgoing
/// and the returning population equals that of a site further inside. The density is linear between that site and the
/// plane, averaged with the density of the site itself.
#pragma once
#include "iolet.hpp"

namespace seiche {

/// Populations of the sites further inside: values[q][record]. [0] is the density excess, [q] is the sum of the
/// outgoing and the incoming population of a link less its even part.

/// Item: a record whose outgoing populations are overwritten before `IncomingDepth` reads them: by wall returns, or by
/// the sweep of the interior at rank boundaries.
template <class Lattice, class R, class S>
struct OutgoingDepth {
  using Real = R;
  const S* f;
  const u32* slots;   ///< [q][item]
  const u32* record;  ///< of the item
  Real* values;
  Index stride, records;
  static constexpr int bytes = Lattice::Q * (sizeof(S) + 4 + sizeof(Real)) + 4;
  SEICHE_FN void operator()(Index k) const {
    Real* to = values + record[k];
    Real outgoing[Lattice::Q];  // all loads before the first store, so that they overlap
    static_for<1, Lattice::Q>([&]<int q>() SEICHE_INLINED { outgoing[q] = decode<Real>(f[slots[q * stride + k]]); });
    static_for<1, Lattice::Q>([&]<int q>() SEICHE_INLINED { to[q * records] = outgoing[q]; });
  }
};

/// Item: a record.
template <class Lattice, class R, class S>
struct IncomingDepth {
  using Real = R;
  const S* f;
  const u32* outgoing_slots;  ///< [q][record]
  const u32* incoming_slots;  ///< [q][record] of the population opposite to q
  const u8* sampled;          ///< [record] 1 if `values` already contains its outgoing populations
  Real* values;
  Index records;
  const Real* observed;  ///< columns of Observe of these sites
  Index stride;
  static constexpr int bytes = Lattice::Q * (2 * sizeof(S) + 8 + sizeof(Real)) + 11 * sizeof(Real) + 1;
  SEICHE_FN void operator()(Index k) const {
    Real* to = values + k;
    const SiteMoments<Real> site_moments(observed + k, stride);
    Real outgoing[Lattice::Q], incoming[Lattice::Q];  // all loads before the first store
    static_for<1, Lattice::Q>([&]<int q>()
                                  SEICHE_INLINED { incoming[q] = decode<Real>(f[incoming_slots[q * records + k]]); });
    if (sampled[k]) {
      static_for<1, Lattice::Q>([&]<int q>() SEICHE_INLINED { outgoing[q] = to[q * records]; });
    } else {
      static_for<1, Lattice::Q>([&]<int q>()
                                    SEICHE_INLINED { outgoing[q] = decode<Real>(f[outgoing_slots[q * records + k]]); });
    }
    to[0] = site_moments.excess;
    static_for<1, Lattice::Q>([&]<int q>() SEICHE_INLINED {
      to[q * records] = outgoing[q] + (incoming[q] - site_moments.template even<Lattice, q>(site_moments.excess));
    });
  }
};

/// values of `at`: the density excess rho - 1 of each iolet in its plane.
template <class Layout>
struct PlanePressure {
  using Real = typename Layout::Real;
  Layout layout;
  IoletSites<Real> at;
  const Real* observed;  ///< columns of Observe of these sites before the collision
  Index stride;
  const Real* normals;  ///< [iolet][3]
  Real damping;
  Real site_weight;          ///< weight of the density of the site itself
  const Real* depths;        ///< values of sites further inside
  const u32* density;        ///< [site] index of its density excess in `depths`
  const u32* pairs;          ///< [link] index of its pair of populations
  const i32* first_link;     ///< first link of this site in `pairs`
  const Real* plane_weight;  ///< [site] weight of the plane in the density, minus that of the site further inside
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const auto site = layout.site(at.sites[k]);
    const Real plane = at.values[at.clock[0] * at.value_count + at.iolet[k]];
    SiteMoments<Real> site_moments(observed + k, stride);
    const Real inner = depths[density[k]], linear = inner + plane_weight[k] * (plane - inner);
    const Real excess = linear + site_weight * (site_moments.excess - linear);
    site_moments.damp_tangential(normals + 3 * at.iolet[k], damping);
    const u32* pair = pairs + first_link[k];
    Real inflow = Real(0);
    const u32 links = at.links[k];
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED {
      if (links >> q & 1u) {
        const Real outgoing = decode<Real>(layout.template outgoing<q>(site));
        const Real returned = site_moments.template even<L, q>(excess) + depths[*pair++] - outgoing;
        inflow += returned - outgoing;
        encode(layout.template outgoing<q>(site), returned);
      }
    });
    at.inflow[k] = inflow;
  }
};

}  // namespace seiche
