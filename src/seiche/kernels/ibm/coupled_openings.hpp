// SPDX-License-Identifier: BSD-3-Clause
/// Stress of sites at openings of vessels with cells, for the collision with many rates.
#pragma once
#include "../flow/opening_stress.hpp"
#include "coupled.hpp"
