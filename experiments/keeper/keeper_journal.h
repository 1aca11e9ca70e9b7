// SPDX-License-Identifier: MIT
//
// The journal of a keeper: what it is about to change, on disk before it is changed, for the case
// that the keeper does not live to undo it (killed, out of memory, a power cut). A journal is a
// file of JSON lines, the first saying whose it is, the others changes
// (experiments/keeper/keeper_change.h), each written through to the disk. It is locked while its
// keeper lives and removed when all is undone.
//
//   {"boot_id": "...", "network": "net:[4026531840]", "process": 4711, "run": "..."}
//
// It lies in $TAILLIGHT_STATE_DIR, else in /var/lib/taillight, or in ~/.local/state/taillight when
// the user is not root, and is begun with the first change.
#ifndef EXPERIMENTS_KEEPER_KEEPER_JOURNAL_H
#define EXPERIMENTS_KEEPER_KEEPER_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/error.h"
#include "experiments/keeper/keeper_change.h"

struct keeper_journal {
    int fd;                      // -1: not begun
    bool off;                    // nothing is noted
    char run[KEEPER_TEXT_BYTES]; // whose; empty: not known
    char path[400];
};

// Notes a change that is about to be made. Returns 0 or an errno: then it must not be made.
int keeper_journal_note(struct keeper_journal *journal, const struct keeper_change *change);

// Notes what a change became. Without that line it is undone whatever the setting is by then.
void keeper_journal_note_set(struct keeper_journal *journal, const struct keeper_change *change);

// The run of the keeper with that process number, from its journal. False: not known.
bool keeper_journal_run(int process, char run[KEEPER_TEXT_BYTES]);

// How many journals there are on this host whose keepers did not live to undo them.
unsigned keeper_journals_stale(void);

// Ends the journal with its keeper. undone: all changes are undone, and the journal is removed;
// else it stays.
void keeper_journal_end(struct keeper_journal *journal, bool undone);

// What happened to the journals on this host.
struct keeper_restored {
    unsigned journals;  // that were replayed and are gone
    unsigned live;      // of keepers that live: left alone
    unsigned elsewhere; // of other network namespaces: left alone
    unsigned settings, directories;
    unsigned rebooted; // settings of an earlier boot, which ended with it
    unsigned failed;   // could not be undone; their journals stay
};

// Replays all of them. What could not be undone is the error, the rest is undone nevertheless.
int keeper_journals_restore(struct keeper_restored *restored, struct error *err);

// The changes in a journal's text, in their order; does no I/O. ERROR_INPUT names the line. Of the
// last line, which a crash may have cut, only what is whole is taken. *changes is the caller's:
// keeper_change_forget each, array_free.
struct keeper_changes ARRAY_OF(struct keeper_change);
int keeper_journal_parse(const char *text, size_t bytes, char boot_id[40], char network[40],
                         struct keeper_changes *changes, struct error *err);

#endif
