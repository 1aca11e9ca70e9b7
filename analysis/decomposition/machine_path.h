// SPDX-License-Identifier: MIT
//
// What a packet on its way into a virtual machine, or out of it, waited for: that the thread which
// takes packets from the tap, QEMU's or the kernel's vhost, and then that which is the machine's
// core, get a core of their own.
#ifndef ANALYSIS_DECOMPOSITION_MACHINE_PATH_H
#define ANALYSIS_DECOMPOSITION_MACHINE_PATH_H

#include <stdint.h>

#include "analysis/decomposition/decomposer.h"

// Assigns the part [begin_ns, end_ns) of a stay that has a tap: to what held its threads back, the
// rest to the link itself.
void machine_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                        const struct hop_stay *stay, int64_t begin_ns, int64_t end_ns);

#endif
