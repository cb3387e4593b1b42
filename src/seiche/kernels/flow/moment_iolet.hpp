// SPDX-License-Identifier: BSD-3-Clause
/// Iolets in moment storage: their links have their own values.
#pragma once
#include "iolet.hpp"
#include "layout_moments.hpp"
#include "plane_pressure.hpp"
