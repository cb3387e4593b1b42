// SPDX-License-Identifier: BSD-3-Clause
/// Rows of a medium with absorption by relaxation processes.
#pragma once
#include "relaxation.hpp"
#include "row_lines.hpp"
