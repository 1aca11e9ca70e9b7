// SPDX-License-Identifier: MIT
#include "experiments/hosts/host_kind.h"

#define HOST_KIND_ADDRESS(name) &host_##name,
const struct host_kind *const host_kinds[] = {HOST_KINDS(HOST_KIND_ADDRESS) NULL};
