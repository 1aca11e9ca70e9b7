// SPDX-License-Identifier: MIT
//
// Where a hop of Time Capsule is, as people write it: "eth0", "eth0:ingress",
// "veth7:egress@client", "eth0@4711=web".
#ifndef PROFILER_CAPSULE_HOP_SPEC_H
#define PROFILER_CAPSULE_HOP_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "profiler/bpf/hop_log.h"

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
    unsigned machine;                    // where it is: a number of the caller's
    char name[HOP_NAME_BYTES];           // as it is reported: interface, direction, namespace
    enum hop_role role;                  // HOP_LOOKS, until hop_specs_carry()
};

const char *hop_direction_name(enum hop_direction direction);
const char *hop_role_name(enum hop_role role); // "looks", "begins", ...

// Reads IFACE[:ingress|:egress][@NETNS[=NAME]]: one hop, or both directions of the interface where
// none is given. NETNS: a name of ip-netns(8), the number of a process that is in it, or a path;
// NAME: what it is called in reports. Does not look whether any of it is there. Errors:
// ERROR_INPUT.
int hop_spec_parse(const char *text, struct hop_spec out[2], size_t *count, struct error *err);

// Whether they are at the same interface of the same machine.
bool hop_specs_share(const struct hop_spec *a, const struct hop_spec *b);

// Gives hops their part in a way that begins at the first and ends at the last of them. Where both
// directions of an end are there, it is the end of what sends and receives: what goes out begins
// there, and what comes in ends. ERROR_INPUT: there is no way between one interface and itself.
int hop_specs_carry(struct hop_spec *specs, size_t count, struct error *err);

#endif
