// SPDX-License-Identifier: MIT
//
// The collector's figures for people and for scripts: whether the shim was loaded at all, what it
// could not see, and the JSON of it all.
#ifndef SHIM_MESSAGE_STATS_H
#define SHIM_MESSAGE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/message_collector.h"

struct message_notes {
    const char *dir;
    const uint16_t *ports; // RING_PORTS of them
    int ring_errno;        // why the last ring that failed did; 0: none failed
};

// Fills stats->warning.
void message_warning_write(struct message_stats *stats, const struct message_notes *notes);

// Whether the process, if it still lives and may be looked at, holds an io_uring: what goes
// through one passes by libc, and so by the shim.
bool process_has_io_uring(uint32_t process);

#endif
