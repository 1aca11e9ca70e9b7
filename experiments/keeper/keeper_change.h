// SPDX-License-Identifier: MIT
//
// One change that a keeper makes on its host, with the old value: enough to undo it, also for
// another process after the keeper has died (experiments/keeper/keeper_journal.h).
#ifndef EXPERIMENTS_KEEPER_KEEPER_CHANGE_H
#define EXPERIMENTS_KEEPER_KEEPER_CHANGE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "experiments/keeper/keeper_request.h"
#include "experiments/keeper/nic_tuning.h"

struct keeper_change {
    bool is_directory; // made, or taken over: removed in the end
    bool has_results;  // the same: of a run that dies the logs in it are set aside first
    enum keeper_knob knob;
    int fd;             // of KEEPER_LATENCY
    int lock;           // experiments/keeper/setting_lock.h, or of the shim's directory; -1: none
    struct nic_rss rss; // of KEEPER_RSS
    char path[KEEPER_TEXT_BYTES];
    char old[KEEPER_TEXT_BYTES]; // as text; of KEEPER_RSS only a description
    char set[KEEPER_TEXT_BYTES]; // of KEEPER_FILE: what it became, as read back; empty: not known
};

// All return 0 or an errno.

// Reads what the setting at `path` is now. text: the value that it will get.
int keeper_change_read(struct keeper_change *change, const char *text);
int keeper_change_do(struct keeper_change *change, const char *text);

// Puts the old value back (a file only if nobody else has changed it since: EEXIST says that it is
// left as it is), or removes the directory with everything in it, waiting up to 3 s for
// dying processes that still write into it. What is gone already is 0 (a directory) or an errno.
int keeper_change_undo(const struct keeper_change *change);

// Before a directory of results is removed: where there are logs in it, it is moved away, from
// BASE/taillight-RUN/NAME to BASE/taillight-left-RUN-NAME, where experiments/left_results.h finds
// it. Returns 0, also where there is nothing to be moved, or an errno.
int keeper_change_set_aside(const struct keeper_change *change);

// Frees what it holds.
void keeper_change_forget(struct keeper_change *change);

// As a journal's line, {"knob", "path", "old"[, "table"]} or {"directory"[, "results"]}. What is
// read from a journal is not trusted: an impossible change is ERROR_INPUT, as is a directory
// without a name of ours. What it became is a line of its own, after the change: {"path", "set"}.
json_t *keeper_change_to_json(const struct keeper_change *change);
int keeper_change_from_json(const json_t *json, struct keeper_change *change, struct error *err);

#endif
