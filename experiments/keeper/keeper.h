// SPDX-License-Identifier: MIT
//
// A keeper is a small process on a host that lives as long as a run. It holds the host's network
// namespace, which has no name and so vanishes with its last process; it changes what must be
// changed there (kernel parameters, directories), noting the old value first; and it undoes
// everything, last change first, when the run asks it to, or when the run's end of their socket
// closes, also because the run was killed with SIGKILL.
//
// It ignores every signal it can, so that what ends the run does not end the undoing.
#ifndef EXPERIMENTS_KEEPER_KEEPER_H
#define EXPERIMENTS_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process.h"
#include "experiments/keeper/keeper_request.h"

struct keeper {
    pid_t pid;   // 0: none here
    int channel; // socket to it, -1: none
    bool isolated;
    bool dry;             // a dry run: every request does nothing and succeeds
    bool serves_far;      // of a machine behind ssh, for a run that is elsewhere
    struct process link;  // to a keeper on another machine; pid 0: there is none, or it is gone
    const char *link_log; // behind a link: its log (the caller's, outlives the keeper)
    const char *host;     // the same: "host far"
    bool hurried;         // the same: a person waits for the end, and less long for its answer
};

// Starts a keeper; isolated: in a new network namespace with its own view of /sys. Without the
// privileges for that, ERROR_FAILED says so and nothing is left.
int keeper_start(struct keeper *keeper, bool isolated, struct error *err);

// Makes a keeper of the process at the other end of `link`, which serves requests on its stdin and
// stdout (experiments/remote/far_end.h). Waits until it reports that it is ready: timeout_ms
// at most, or until the user interrupts. Owns the link from now on, also on failure. What no keeper
// answers is ERROR_INPUT, here and later.
int keeper_start_far(struct keeper *keeper, struct process link, const char *link_log,
                     const char *host, int timeout_ms, struct error *err);

// What another machine says of itself (experiments/remote/far_end.h), as JSON text; nic:
// the card whose address is asked for, or "".
int keeper_facts(struct keeper *keeper, const char *nic, char facts[KEEPER_TEXT_BYTES],
                 struct error *err);

// How far that machine's CLOCK_MONOTONIC is ahead of this one's, in ns, and the bound of the error:
// half of the shortest of several round trips.
int keeper_clock_offset(struct keeper *keeper, int64_t *offset_ns, uint64_t *bound_ns,
                        struct error *err);

// Writes text to a file of /proc/sys or /sys as that host sees it. The old content (its first
// line) is noted for the end and, when `old` is not NULL, copied there.
int keeper_set(struct keeper *keeper, const char *path, const char *text,
               char old[KEEPER_TEXT_BYTES], struct error *err);

// The path number `index` (from 0) of those that match a shell pattern on that host. Returns 1, or
// 0 when fewer match.
int keeper_find(struct keeper *keeper, const char *pattern, unsigned index,
                char path[KEEPER_TEXT_BYTES], struct error *err);

// Changes a setting of that kind and notes its old value, which `old`, when not NULL, gets. Where
// the host refuses, *number is an errno and the function returns 0 all the same; 0: it is changed.
int keeper_tune(struct keeper *keeper, enum keeper_knob knob, const char *name, const char *text,
                char old[KEEPER_TEXT_BYTES], int *number, struct error *err);

// Makes a directory (mode 0700) that is removed with everything in it at the end.
int keeper_make_directory(struct keeper *keeper, const char *path, struct error *err);

// The same; when the run dies, or its link does, the logs in it are not lost: they are set aside
// (keeper_change_set_aside).
int keeper_make_results(struct keeper *keeper, const char *path, struct error *err);

// A directory as the first, with memory for the shim's records in it (shim/message_collector.h): so
// many bytes, 0 for the default.
int keeper_make_shim_directory(struct keeper *keeper, const char *path, uint64_t memory_bytes,
                               struct error *err);

// The same for one that is there already.
int keeper_adopt_directory(struct keeper *keeper, const char *path, struct error *err);

// All processes with that mark (experiments/keeper/process_tree.h), and those in its own network
// namespace, are killed when the keeper ends, before anything is undone.
int keeper_own(struct keeper *keeper, const char *mark, struct error *err);

// Tries to connect to an IPv4 address and port from that host, within 300 ms. Returns 1 when
// somebody listens there, 0 when nobody does, negative on other errors.
int keeper_probe(struct keeper *keeper, const char *address, uint16_t port, struct error *err);

// Sends a request as it is and waits for the answer (experiments/remote/far_end.h). Only a
// failure of the keeper itself is an error.
int keeper_ask(struct keeper *keeper, const struct keeper_request *request,
               struct keeper_answer *answer, struct error *err);

// Ends the keeper as a run's death does, and waits for it: the commands of this program that are of
// its processes may write what they have first.
void keeper_abandon(struct keeper *keeper);

// Undoes everything and ends the keeper, within 10 s. What could not be undone is the error. A
// hurried one that does not answer at once undoes it by itself, which the error says.
// Harmless on a keeper that is not there.
int keeper_end(struct keeper *keeper, struct error *err);

#endif
