// SPDX-License-Identifier: BSD-3-Clause
/// Forces of the cells that are present on this rank.
#pragma once
#include "../resident.hpp"
#include "contact.hpp"
#include "force.hpp"
