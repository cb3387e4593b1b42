// SPDX-License-Identifier: BSD-3-Clause
/// Moment storage with something immersed in the fluid: its kernels, and the force that they take.
#pragma once
#include "../flow/moment_iolet.hpp"
#include "../flow/moment_observe.hpp"
#include "../flow/moment_sweep.hpp"
#include "coupled.hpp"
