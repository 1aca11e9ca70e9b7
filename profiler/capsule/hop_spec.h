// SPDX-License-Identifier: MIT
//
// Where a hop of Time Capsule is, as people write it: "eth0", "eth0:ingress",
// "veth7:egress@client".
#ifndef PROFILER_CAPSULE_HOP_SPEC_H
#define PROFILER_CAPSULE_HOP_SPEC_H

#include <stddef.h>

#include "base/error.h"

enum {
    HOP_INTERFACE_BYTES = 16, // IFNAMSIZ
    HOP_NAMESPACE_BYTES = 128,
    HOP_NAME_BYTES = 192,
};

enum hop_direction { HOP_INGRESS, HOP_EGRESS };

struct hop_spec {
    char interface[HOP_INTERFACE_BYTES];
    enum hop_direction direction;
    char namespace[HOP_NAMESPACE_BYTES]; // path of its file; "": where the command runs
    char name[HOP_NAME_BYTES];           // as it is reported: interface, direction, namespace
};

const char *hop_direction_name(enum hop_direction direction);

// Reads IFACE[:ingress|:egress][@NETNS]: one hop, or both directions of the interface where none is
// given. NETNS: a name of ip-netns(8), the number of a process that is in it, or a path. Does not
// look whether any of it is there. Errors: ERROR_INPUT.
int hop_spec_parse(const char *text, struct hop_spec out[2], size_t *count, struct error *err);

#endif
