// SPDX-License-Identifier: BSD-3-Clause
/// Moment storage with immersed membranes: kernels and their force policy.
#pragma once
#include "../flow/moment_iolet.hpp"
#include "../flow/moment_observe.hpp"
#include "../flow/moment_sweep.hpp"
#include "coupled.hpp"
