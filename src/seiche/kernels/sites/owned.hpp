// SPDX-License-Identifier: BSD-3-Clause
/// Links between the sites of a rank and those of others, and the table of a list layout on several ranks.
#pragma once
#include "rows.hpp"

namespace seiche {

/// Links along `vector` from the `own` sites to sites of other ranks. The own sites are the pieces start[i] <= s <
/// end[i] of the sites of `all`, i < pieces. Item: a run of `own`. With `fill`, writes the row and the neighbour of
/// each link from number first[i] on, in the order of the rows, otherwise counts. Bytes per item: not counted.
template <bool fill>
struct RemoteLinks {
  Rows own, all;
  i32 vector[3];
  const Index *start, *end;
  Index pieces;
  const Index* first;
  i32* counts;
  Index *rows, *sites;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index r) const {
    Index number = 0;
    if constexpr (fill) number = first[r];
    const Index row = all.at(own.row[r] / own.shape[1] + vector[0], own.row[r] % own.shape[1] + vector[1]);
    const i32 begin = own.begin[r], images = row >= 0 && all.periodic[2] ? 1 : 0;
    // Images of a row come one after the other, so the rows of links ascend.
    for (i32 image = -images; row >= 0 && image <= images; ++image) {
      const i32 shift = image * all.shape[2] - vector[2];  // site z of the other row is the neighbour of z + shift
      for (Index other = all.from(row, begin - shift); other < all.first[row + 1]; ++other) {
        const i32 low = all.begin[other] + shift > begin ? all.begin[other] + shift : begin;
        const i32 high = all.end[other] + shift < own.end[r] ? all.end[other] + shift : own.end[r];
        if (low >= own.end[r]) break;
        const Index site = all.site[other] + (low - shift - all.begin[other]);
        emit(own.site[r] + (low - begin), site, site + (high - low), number);
      }
    }
    if constexpr (!fill) counts[r] = static_cast<i32>(number);
  }
  /// Writes or counts the links of successive rows to those of the sites from `site` to `last` that are not own.
  SEICHE_FN void emit(Index row, Index site, Index last, Index& number) const {
    Index low = 0, high = pieces;  // the first piece that ends after `site`
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (end[middle] > site) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (; site < last; ++low) {
      const Index stop = low < pieces && start[low] < last ? start[low] : last;
      for (; site < stop; ++site, ++row, ++number) {
        if constexpr (fill) {
          rows[number] = row;
          sites[number] = site;
        }
      }
      if (low >= pieces || site >= last) return;
      const Index after = end[low] < last ? end[low] : last;
      row += after - site;
      site = after;
    }
  }
};

/// Slots of the populations that arrive along one direction at the sites of a rank: item i, a site, is stored at its
/// place item[i] in the list. `upwind` is the row of its upwind site, -1 behind a wall or on another rank, whose slots
/// are set afterwards. Bytes per item: upwind row, two places, slot.
struct PlacedSlots {
  const i32* upwind;
  const Index* item;
  Index toward, back;  ///< first slots of the direction at the upwind site, and of that returned by a wall
  u32* out;
  static constexpr int bytes = 4 + 8 + 8 + 4;
  SEICHE_FN void operator()(Index i) const {
    out[item[i]] = static_cast<u32>(upwind[i] >= 0 ? item[upwind[i]] + toward : item[i] + back);
  }
};

}  // namespace seiche
