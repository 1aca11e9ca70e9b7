// SPDX-License-Identifier: MIT
//
// One thing that a keeper changes on its host, with what was there before: enough to undo it, also
// by somebody else after the keeper's own end (experiments/keeper/keeper_journal.h).
#ifndef EXPERIMENTS_KEEPER_KEEPER_CHANGE_H
#define EXPERIMENTS_KEEPER_KEEPER_CHANGE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "experiments/keeper/keeper_request.h"
#include "experiments/keeper/nic_tuning.h"

struct keeper_change {
    bool is_directory; // made, or taken over: removed in the end
    enum keeper_knob knob;
    int fd;             // of KEEPER_LATENCY
    struct nic_rss rss; // of KEEPER_RSS
    char path[KEEPER_TEXT_BYTES];
    char old[KEEPER_TEXT_BYTES]; // text for people, too
};

// All return 0 or an errno.

// Notes what the setting at `path` is now; `text`: what it is to become.
int keeper_change_read(struct keeper_change *change, const char *text);
int keeper_change_do(const struct keeper_change *change, const char *text);

// Puts the old value back, or removes the directory with everything in it, waiting up to 3 s for
// dying processes that still write into it. What is gone already is 0 (a directory) or an errno.
int keeper_change_undo(const struct keeper_change *change);

// Frees what it holds.
void keeper_change_forget(struct keeper_change *change);

// As a journal's line, {"knob", "path", "old"[, "table"]} or {"directory"}. What was read from one
// is not believed: ERROR_INPUT when it cannot be, among it a directory that is not of our naming.
json_t *keeper_change_to_json(const struct keeper_change *change);
int keeper_change_from_json(const json_t *json, struct keeper_change *change, struct error *err);

#endif
