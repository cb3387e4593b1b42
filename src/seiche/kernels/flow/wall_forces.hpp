// SPDX-License-Identifier: BSD-3-Clause
/// Forces of the fluid on walls by the exchange of momentum along wall links (theory/flow, eqs. 38b and 38c).
#pragma once
#include "walls.hpp"

namespace seiche {

/// Item: a block of the wall links of one body. A link transfers the momentum c (f* + f), with the outgoing population
/// f* and the returning one f. Sums are integers, so they do not depend on the order of links and the number of ranks.
/// Bytes per link: two populations, slot, direction, lever.
template <class R, class S>
struct WallForces {
  static constexpr int words = 6;  ///< force, torque
  struct Scratch {
    Index units[words][wall_lanes];
  };
  const S* f;           ///< populations after the stage of the walls: returning ones in the slots of wall links
  const u32* slots;     ///< slot of the link
  const S* outgoing;    ///< outgoing populations of the links
  const u32* code;      ///< two bits for each component of the direction, plus one
  const double* lever;  ///< [axis][link] site minus the centre of the body, in units in which it is at most 1
  Index links;
  const Index* first;  ///< first link of each block, and the end of the last
  const u32* body;     ///< of each block
  Index* sums;         ///< [body][words]
  static constexpr int bytes = wall_block * (2 * sizeof(S) + 8 + 3 * sizeof(double));
  SEICHE_FN void operator()(const Team& team, Index block, Scratch& scratch) const {
    const Index begin = first[block], end = first[block + 1], part = body[block];
    static_for<0, words>([&]<int w>() SEICHE_INLINED {
      team.for_each(wall_lanes, [&](int lane) SEICHE_INLINED { scratch.units[w][lane] = 0; });
    });
    for (Index from = begin; from < end; from += wall_lanes) {
      const int count = end - from < wall_lanes ? static_cast<int>(end - from) : wall_lanes;
      team.for_each(count, [&](int lane) SEICHE_INLINED {
        const Index k = from + lane;
        const double both = static_cast<double>(decode<R>(outgoing[k])) + static_cast<double>(decode<R>(f[slots[k]]));
        const u32 bits = code[k];
        const double x = both * component(bits, 0), y = both * component(bits, 1), z = both * component(bits, 2);
        const double a = lever[k], b = lever[links + k], c = lever[2 * links + k];
        scratch.units[0][lane] += in_units(x);
        scratch.units[1][lane] += in_units(y);
        scratch.units[2][lane] += in_units(z);
        scratch.units[3][lane] += in_units(b * z - c * y);
        scratch.units[4][lane] += in_units(c * x - a * z);
        scratch.units[5][lane] += in_units(a * y - b * x);
      });
    }
    for (int half = wall_lanes / 2; half > 0; half /= 2) {
      team.barrier();
      static_for<0, words>([&]<int w>() SEICHE_INLINED {
        team.for_each(half, [&](int lane) SEICHE_INLINED { scratch.units[w][lane] += scratch.units[w][lane + half]; });
      });
    }
    team.barrier();
    team.for_each(words, [&](int w) SEICHE_INLINED { add_atomically(sums + words * part + w, scratch.units[w][0]); });
  }
  static SEICHE_FN double component(u32 bits, int axis) {
    return static_cast<double>(static_cast<int>(bits >> (2 * axis) & 3u) - 1);
  }
};

}  // namespace seiche
