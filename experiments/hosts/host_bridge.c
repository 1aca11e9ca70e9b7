// SPDX-License-Identifier: MIT
//
// A host that is a bridge in a network namespace of its own. With one, the hosts of kind netns are
// no longer joined pairwise: each has one cable, to the bridge, as containers of a machine have.
// Programs can run there, such as a neighbour that makes one of its links slow.
#include "experiments/hosts/host.h"
#include "experiments/hosts/host_kind.h"

const struct host_kind host_bridge = {
    .name = "bridge",
    .help =
        "this machine, a bridge in a network namespace made for the run, which joins the others",
    .keys = (const char *const[]){NULL},
    .is_joined = true,
    .is_bridge = true,
    .own_cards = "to*",
    .program = "ip",
    .fallback = &host_local,
    .check = host_needs_no_check,
    .start = host_start_netns,
    .join = host_join_netns,
    .start_process = host_start_process_here,
    .find_program = host_find_program_here,
    .end = host_needs_no_end,
};
