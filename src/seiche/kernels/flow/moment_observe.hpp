// SPDX-License-Identifier: BSD-3-Clause
/// Observation of moment storage.
#pragma once
#include "layout_moments.hpp"
#include "observe.hpp"
