// SPDX-License-Identifier: BSD-3-Clause
/// Kernels for a varying set of cells. The number of cells on a rank and their roles change while arguments and ranges
/// of kernels stay constant. Only items of cells with selected roles are processed (docs/decisions/0019).
#pragma once
#include "launch.hpp"

namespace seiche {

/// Role of a cell on this rank: none; owned and on no other rank; owned and shared with other ranks; ghost.
struct Role {
  static constexpr i32 none = 0, unshared = 1, shared = 2, ghost = 3;
};

/// Selection of items by the role of their cell.
struct Chosen {
  const i32* role;  ///< roles of the cells, beginning with the cell of item `first`
  Index first;
  i32 items_per_cell;  ///< items per cell
  u32 roles;           ///< bit mask of roles
  SEICHE_FN bool operator()(Index i) const {
    return (roles >> role[static_cast<i32>(i - first) / items_per_cell] & 1u) != 0;
  }
  /// True if one of `number` items from `i` is selected.
  SEICHE_FN bool any(Index i, int number) const {
    const i32 from = static_cast<i32>(i - first), last = (from + number - 1) / items_per_cell;
    bool is_found = false;
    for (i32 cell = from / items_per_cell; cell <= last; ++cell) is_found = is_found || (roles >> role[cell] & 1u) != 0;
    return is_found;
  }
};

/// A list of `count` cells of a type. Few teams then suffice if only few of many cells are active.
struct Listed {
  const i32* cells;
  const i32* count;
  Index first;         ///< first item of the first cell of the type
  i32 items_per_cell;  ///< items per cell
};

/// Items: entries of the list, up to its capacity. The inner item is the cell.
template <class Kernel>
struct ResidentList {
  using Scratch = typename Kernel::Scratch;
  Kernel inner;
  Listed listed;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(const Team& team, Index i, Scratch& scratch) const {
    if (i < *listed.count) inner(team, listed.cells[i], scratch);
  }
};

/// Items: those of the cells in the list, up to its capacity, for cells in selected roles.
template <class Kernel>
struct ResidentItems {
  Kernel inner;
  Listed listed;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(Index i) const {
    const i32 entry = static_cast<i32>(i) / listed.items_per_cell;
    if (entry >= *listed.count) return;
    const Index item =
        listed.first + static_cast<Index>(listed.cells[entry]) * listed.items_per_cell + i % listed.items_per_cell;
    if (chosen(item)) inner(item);
  }
};

template <class Kernel>
struct Resident {
  Kernel inner;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(Index i) const {
    if (chosen(i)) inner(i);
  }
};

/// `group` items of another functor, processed in sequence by the threads of one team. If most items need little work,
/// launching fewer teams is faster. A functor may report by `idle()` that no item of the group has work.
template <class Kernel, int group>
struct ResidentGroups {
  using Scratch = NoScratch;
  Kernel inner;
  Chosen chosen;
  Index end;  ///< end of the items
  static constexpr int bytes = group * Kernel::bytes;
  SEICHE_FN void operator()(const Team& team, Index number, Scratch&) const {
    if constexpr (requires { inner.idle(); }) {
      if (inner.idle()) return;
    }
    const Index begin = chosen.first + number * group;
    team.for_each(static_cast<int>(end - begin < group ? end - begin : group), [&](int k) SEICHE_INLINED {
      if (chosen(begin + k)) inner(begin + k);
    });
  }
};

template <Teamed Kernel>
struct Resident<Kernel> {
  using Scratch = typename Kernel::Scratch;
  Kernel inner;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(const Team& team, Index i, Scratch& scratch) const {
    if (chosen(i)) inner(team, i, scratch);
  }
};

}  // namespace seiche
