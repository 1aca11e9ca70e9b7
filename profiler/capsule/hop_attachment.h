// SPDX-License-Identifier: MIT
//
// A BPF program at an interface: by tcx (Linux 6.6), a link that is gone with the process that made
// it; on an older kernel as a filter of the interface's clsact, which stays, so that a guard takes
// it away however this process ends.
#ifndef PROFILER_CAPSULE_HOP_ATTACHMENT_H
#define PROFILER_CAPSULE_HOP_ATTACHMENT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/guard.h"
#include "profiler/capsule/hop_spec.h"

struct hop_attachment {
    int link;   // of tcx; -1: none
    int socket; // rtnetlink in the interface's namespace, of clsact; -1: none
    bool made;  // the interface's clsact was made by this capture
    unsigned interface;
    struct guard guard;
};

#define HOP_ATTACHMENT_NONE ((struct hop_attachment){.link = -1, .socket = -1})

// In the interface's namespace. made: an earlier attachment of the capture made this interface's
// clsact. Errors: -errno; -EOPNOTSUPP: this kernel has neither.
int hop_attachment_make(struct hop_attachment *attachment, int program, unsigned interface,
                        enum hop_direction direction, bool made);

// Whether the interface went away meanwhile.
bool hop_attachment_is_gone(const struct hop_attachment *attachment);

bool hop_attachment_is_there(const struct hop_attachment *attachment);

// Takes the program away. Harmless on one that is not there.
void hop_attachment_end(struct hop_attachment *attachment);

#endif
