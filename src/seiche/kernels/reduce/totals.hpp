// SPDX-License-Identifier: BSD-3-Clause
/// Sums over the sites of a rank, in an order that depends only on the number of sites. They give mass, greatest speed,
/// the first non-finite site, the velocity and its change. Each rule adds the rows of a block of sites; `Fold` then
/// adds the blocks. Only a few words are copied to the host.
#pragma once
#include "../launch.hpp"

namespace seiche {

/// Threads of a block of sites; each adds every `reduce_lanes`-th site.
inline constexpr int reduce_lanes = 128;
inline constexpr int reduce_block = 2048;
/// Minus the index of a row: the greatest such word is of the first row.
inline constexpr Index not_finite = Index(1) << 62;

SEICHE_FN bool finite(double x) {
  return x - x == 0.0;
}

/// The density excess as integer multiples of 2^-24 and 2^-60. Such sums are independent of order and number of ranks.
/// The greatest |u|^2 is represented by its bits, which are ordered like its values.
template <class Real>
struct Totals {
  using Word = Index;
  static constexpr int words = 4;  ///< coarse and fine part of the sum of rho - 1, bits of |u|^2, `not_finite` - row
  static constexpr int bytes = 4 * sizeof(Real);
  const Real* observed;  ///< columns of Observe, `stride` long
  Index stride, count;
  Index* out;   ///< [block][words]
  Index first;  ///< number of row 0

  template <int word>
  static SEICHE_FN Index combine(Index a, Index b) {
    return word >= 2 ? (a > b ? a : b) : a + b;
  }
  SEICHE_FN void row(Index k, Index (&value)[words]) const {
    const double excess = observed[k];
    const double x = observed[stride + k], y = observed[2 * stride + k], z = observed[3 * stride + k];
    const double square = x * x + y * y + z * z;
    const bool sound = finite(excess) && finite(square);
    // Densities beyond these bounds are invalid. The greatest speed reveals them.
    const double clamped = !sound ? 0.0 : excess > 1024.0 ? 1024.0 : excess < -1024.0 ? -1024.0 : excess;
    const double scaled = clamped * 0x1p24;
    const Index coarse = static_cast<Index>(scaled + (scaled < 0 ? -0.5 : 0.5));
    const double remainder = (clamped - static_cast<double>(coarse) * 0x1p-24) * 0x1p60;
    value[0] = coarse;
    value[1] = static_cast<Index>(remainder + (remainder < 0 ? -0.5 : 0.5));
    value[2] = sound ? bit_cast<Index>(square) : 0;
    value[3] = sound ? 0 : not_finite - (first + k);
  }
};

/// Sums of `number` words in double precision.
template <int number>
struct DoubleSums {
  using Word = double;
  static constexpr int words = number;
  template <int word>
  static SEICHE_FN double combine(double a, double b) {
    return a + b;
  }
};

/// Sums of |u - u'|^2 and |u|^2, where u' is stored by the previous call; u then replaces u'.
template <class Real>
struct VelocityChange : DoubleSums<2> {
  static constexpr int bytes = 9 * sizeof(Real);
  const Real* observed;  ///< columns of Observe, `stride` long
  Index stride, count;
  double* out;   ///< [block][words]
  Real* before;  ///< components, `before_stride` apart
  Index before_stride;

  SEICHE_FN void row(Index k, double (&value)[words]) const {
    value[0] = value[1] = 0.0;
    static_for<0, 3>([&]<int axis>() SEICHE_INLINED {
      const double current = observed[(axis + 1) * stride + k];
      const double change = current - static_cast<double>(before[axis * before_stride + k]);
      value[0] += change * change;
      value[1] += current * current;
      before[axis * before_stride + k] = observed[(axis + 1) * stride + k];
    });
  }
};

/// Sums of the components of u.
template <class Real>
struct VelocitySum : DoubleSums<3> {
  static constexpr int bytes = 3 * sizeof(Real);
  const Real* observed;  ///< columns of Observe, `stride` long
  Index stride, count;
  double* out;  ///< [block][words]
  SEICHE_FN void row(Index k, double (&value)[words]) const {
    static_for<0, 3>([&]<int axis>() SEICHE_INLINED { value[axis] = observed[(axis + 1) * stride + k]; });
  }
};

/// Reduces the words of `blocks` blocks to those of one.
template <class Rule>
struct Fold {
  using Word = typename Rule::Word;
  static constexpr int words = Rule::words;
  static constexpr int bytes = 8 * words;
  const Word* partial;  ///< [block][words]
  Index count;          ///< blocks
  Word* out;            ///< [words]

  template <int word>
  static SEICHE_FN Word combine(Word a, Word b) {
    return Rule::template combine<word>(a, b);
  }
  SEICHE_FN void row(Index k, Word (&value)[words]) const {
    static_for<0, words>([&]<int w>() SEICHE_INLINED { value[w] = partial[k * words + w]; });
  }
};

/// Item b: the rows of block b of a rule, or, with `whole`, all its rows as one block.
template <class Rule, bool whole>
struct Reduce {
  using Word = typename Rule::Word;
  struct Scratch {
    Word word[Rule::words][reduce_lanes];
  };
  static constexpr int bytes = Rule::bytes;
  Rule rule;

  SEICHE_FN void operator()(const Team& team, Index b, Scratch& scratch) const {
    const Index begin = whole ? 0 : b * reduce_block;
    const Index end = whole || begin + reduce_block > rule.count ? rule.count : begin + reduce_block;
    team.for_each(reduce_lanes, [&](int lane) SEICHE_INLINED {
      static_for<0, Rule::words>([&]<int w>() SEICHE_INLINED { scratch.word[w][lane] = Word(0); });
    });
    for (Index first = begin; first < end; first += reduce_lanes) {
      const int rows = end - first < reduce_lanes ? static_cast<int>(end - first) : reduce_lanes;
      team.for_each(rows, [&](int lane) SEICHE_INLINED {
        Word value[Rule::words];
        rule.row(first + lane, value);
        static_for<0, Rule::words>([&]<int w>() SEICHE_INLINED {
          scratch.word[w][lane] = Rule::template combine<w>(scratch.word[w][lane], value[w]);
        });
      });
    }
    for (int half = reduce_lanes / 2; half > 0; half /= 2) {
      team.barrier();
      team.for_each(half, [&](int lane) SEICHE_INLINED {
        static_for<0, Rule::words>([&]<int w>() SEICHE_INLINED {
          scratch.word[w][lane] = Rule::template combine<w>(scratch.word[w][lane], scratch.word[w][lane + half]);
        });
      });
    }
    team.barrier();
    team.for_each(1, [&](int) SEICHE_INLINED {
      static_for<0, Rule::words>([&]<int w>() SEICHE_INLINED { rule.out[b * Rule::words + w] = scratch.word[w][0]; });
    });
  }
};

}  // namespace seiche
