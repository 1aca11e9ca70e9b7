// SPDX-License-Identifier: MIT
//
// What the shim's comparisons of its byte counts with the kernel's say (shim/preload_check.c): from
// when on the calls of a connection cannot be believed, because bytes of it moved unseen or others
// were taken for its own.
#ifndef SHIM_MESSAGE_CHECKS_H
#define SHIM_MESSAGE_CHECKS_H

#include "shim/message_identity.h"

struct message_checks {
    uint64_t made;       // comparisons
    uint64_t agreed;     // of these
    uint64_t doubtful;   // connections (of one process) that are not believed to their end
    uint64_t directions; // of these connections: bytes in and bytes out are two
};

// Sets until_tsc of all identities (in the order of identity_compare). -1: no memory.
int message_checks_judge(struct ring_reader *const *rings, size_t count,
                         struct identity_array *identities, struct message_checks *out);

#endif
