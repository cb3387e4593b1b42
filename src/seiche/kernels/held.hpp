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

template <class Kernel>
struct Held {
  Kernel inner;
  Chosen chosen;
  static constexpr int bytes = Kernel::bytes;
  SEICHE_FN void operator()(Index i) const {
    if (chosen(i)) inner(i);
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
