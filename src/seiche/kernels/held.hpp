// SPDX-License-Identifier: BSD-3-Clause
/// Cells whose number and whose roles on a rank change while arguments and ranges of kernels stay: a kernel of which
/// only the items count that belong to cells in certain roles (docs/decisions/0019).
#pragma once
#include "launch.hpp"

namespace seiche {

/// What a cell is here: nothing; a cell that no other rank holds; one that others hold too; a copy of another rank's.
struct Role {
  static constexpr i32 none = 0, alone = 1, shared = 2, ghost = 3;
};

/// Whose items count.
struct Chosen {
  const i32* role;  ///< of the cells, from the one of item `first` on
  Index first;
  i32 each;   ///< items of a cell
  u32 roles;  ///< bit by bit
  SEICHE_FN bool operator()(Index i) const { return (roles >> role[static_cast<i32>(i - first) / each] & 1u) != 0; }
  /// Whether one of `many` items from `i` on counts.
  SEICHE_FN bool any(Index i, int many) const {
    const i32 from = static_cast<i32>(i - first), last = (from + many - 1) / each;
    bool found = false;
    for (i32 cell = from / each; cell <= last; ++cell) found = found || (roles >> role[cell] & 1u) != 0;
    return found;
  }
};

/// Cells of a type by a list, so that few of many need few teams: `count` of them are in it.
struct Listed {
  const i32* cells;
  const i32* count;
  Index first;  ///< item of the type's first cell
  i32 each;     ///< items of a cell
};

/// Items: places in the list, as many as there is room for. The inner item is the cell.
template <class Kernel>
struct HeldList {
  using Scratch = typename Kernel::Scratch;
  Kernel inner;
  Listed listed;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(const Team& team, Index i, Scratch& scratch) const {
    if (i < *listed.count) inner(team, listed.cells[i], scratch);
  }
};

/// Items: those of the cells in the list, as many as there is room for, of cells in the chosen roles.
template <class Kernel>
struct HeldItems {
  Kernel inner;
  Listed listed;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(Index i) const {
    const i32 place = static_cast<i32>(i) / listed.each;
    if (place >= *listed.count) return;
    const Index item = listed.first + static_cast<Index>(listed.cells[place]) * listed.each + i % listed.each;
    if (chosen(item)) inner(item);
  }
};

template <class Kernel>
struct Held {
  Kernel inner;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(Index i) const {
    if (chosen(i)) inner(i);
  }
};

/// `group` items of another functor, one after the other by the threads of a team: where most calls have little to do,
/// few teams are launched sooner than many. A functor may say by `idle()` that none of them has.
template <class Kernel, int group>
struct HeldGroups {
  struct Scratch {
    u8 unused;
  };
  Kernel inner;
  Chosen chosen;
  Index end;  ///< of the items
  static constexpr int bytes = group * Kernel::bytes;
  SEICHE_FN void operator()(const Team& team, Index number, Scratch&) const {
    if constexpr (requires { inner.idle(); }) {
      if (inner.idle()) return;
    }
    const Index begin = chosen.first + number * group;
    team.each(static_cast<int>(end - begin < group ? end - begin : group), [&](int k) SEICHE_INLINED {
      if (chosen(begin + k)) inner(begin + k);
    });
  }
};

template <Teamed Kernel>
struct Held<Kernel> {
  using Scratch = typename Kernel::Scratch;
  Kernel inner;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(const Team& team, Index i, Scratch& scratch) const {
    if (chosen(i)) inner(team, i, scratch);
  }
};

}  // namespace seiche
