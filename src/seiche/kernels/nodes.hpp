// SPDX-License-Identifier: BSD-3-Clause
/// Loops of a team over the nodes of elements: a thread for each column of nodes on the GPU, vectors along the first
/// axis on the CPU.
#pragma once
#include "launch.hpp"

namespace seiche {

/// Node numbering of a line, square or cube of n^dim nodes: node (i, j, k) has number i + n j + n^2 k.
template <int dimension, int nodes_a_direction>
struct Box {
  static constexpr int dim = dimension, n = nodes_a_direction;
  static constexpr int face = dim == 3 ? n * n : n, nodes = face * n, faces = 2 * dim;
  /// Distance of two neighbours along an axis.
  static constexpr int stride(int axis) { return axis == 0 ? 1 : axis == dim - 1 ? face : n; }
};

#if defined(__CUDACC__)

/// Prefetches `bytes` of memory, by all threads of a team.
SEICHE_FN void prefetch_ahead(const Team& team, const void* source, int bytes) {
  const char* first = static_cast<const char*>(source);
  for (int k = team.thread * 128; k < bytes; k += team.threads * 128) {
    prefetch_line_ahead(first + k);
  }
}

/// f(line(element, i, j), early(element, i, j, k), element, i, j, k) for all nodes of `elements` elements; k counts
/// along the last axis, j is 0 in two dimensions. A thread processes every `layers`-th node of a column. It calls
/// `line` and `early` for them, then `middle`, which may contain a barrier, then f for those of the first `active`
/// elements.
template <class Box, int elements, int layers, bool unrolled, class Line, class Early, class Middle, class F>
SEICHE_FN void for_nodes(const Team& team, int active, Line&& line, Early&& early, Middle&& middle, F&& f) {
  constexpr int n = Box::n, steps = (n + layers - 1) / layers;
  const int column = team.thread % Box::face, layer = layers == 1 ? 0 : team.thread / Box::face % layers;
  const int element = elements == 1 ? 0 : team.thread / (Box::face * layers), i = column % n, j = column / n;
  const bool is_active = elements == 1 || element < active;
  const auto rows = line(element, i, j);
  using Loaded = decltype(early(element, i, j, 0));
  Loaded loaded[unrolled ? steps : 1];
  if constexpr (unrolled) {
#pragma unroll
    for (int q = 0; q < steps; ++q) {
      const int k = q * layers + layer;
      if (is_active && (n % layers == 0 || k < n)) loaded[q] = early(element, i, j, k);
    }
  }
  middle();
  if (!is_active) return;
#pragma unroll(unrolled ? steps : 1)
  for (int q = 0; q < steps; ++q) {
    const int k = q * layers + layer;
    if (n % layers == 0 || k < n) {
      if constexpr (!unrolled) loaded[0] = early(element, i, j, k);
      f(rows, loaded[unrolled ? q : 0], element, i, j, k);
    }
  }
}

#else

SEICHE_FN void prefetch_ahead(const Team&, const void*, int) {}

template <class Box, int elements, int layers, bool unrolled, class Line, class Early, class Middle, class F>
SEICHE_FN void for_nodes(const Team&, int active, Line&& line, Early&& early, Middle&& middle, F&& f) {
  middle();
  for (int element = 0; element < active; ++element) {
    for (int k = 0; k < Box::n; ++k) {
      for (int j = 0; j < Box::face / Box::n; ++j) {
#pragma omp simd
        for (int i = 0; i < Box::n; ++i) f(line(element, i, j), early(element, i, j, k), element, i, j, k);
      }
    }
  }
}

#endif

/// f(first, number) for the elements of an item below `count`: all together on a GPU, one by one on the CPU.
template <int elements, int elements_per_pass, class F>
SEICHE_FN void for_elements(Index item, Index count, F&& f) {
  const Index first = item * elements, remaining = count - first;
  const int number = remaining < elements ? static_cast<int>(remaining) : elements;
  for (int e = 0; e < number; e += elements_per_pass) f(first + e, elements_per_pass == 1 ? 1 : number);
}

/// f.operator()<axis, side>() for every face of an element.
template <int dim, class F>
SEICHE_FN void for_faces(F&& f) {
  static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
    f.template operator()<axis, 0>();
    f.template operator()<axis, 1>();
  });
}

/// Copies `count` numbers, a compile-time constant, in units as wide as their alignment allows.
template <int count, class Real>
SEICHE_FN void copy_aligned(const Team& team, const Real* source, Real* target) {
  constexpr int vector_words = 16 / static_cast<int>(sizeof(Real));
  if constexpr (count % vector_words == 0 && !vector_lanes) {
    struct alignas(16) Part {
      Real of[vector_words];
    };
    team.for_each(count / vector_words, [&](int q) SEICHE_INLINED {
      reinterpret_cast<Part*>(target)[q] = reinterpret_cast<const Part*>(source)[q];
    });
  } else {
    team.for_each(count, [&](int q) SEICHE_INLINED { target[q] = source[q]; });
  }
}

}  // namespace seiche
