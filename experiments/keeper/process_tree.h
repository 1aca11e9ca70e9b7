// SPDX-License-Identifier: MIT
//
// All processes that a host's servers, neighbours and commands became, however they forked, left
// their session, cleared their environment or were adopted by init. They are known by a mark
// (base/process.h), which children inherit, and, on a host that is a network namespace, by that.
// Needs no privilege beyond that to kill them, and no control group.
#ifndef EXPERIMENTS_KEEPER_PROCESS_TREE_H
#define EXPERIMENTS_KEEPER_PROCESS_TREE_H

#include <stdint.h>

enum { TREE_MARK_BYTES = 80 };

// The mark of a run's host, as a variable: "TAILLIGHT_HOST=<process>-<when it began>/<number>"; up
// to the slash it is the run's.
void process_tree_make_mark(char mark[TREE_MARK_BYTES], uint64_t run, unsigned number);

// Kills all processes with that mark ("": none), or in that network namespace, as
// /proc/self/ns/net names it ("": in any), but the caller, and looks again until there is none.
// Returns how many are still there after wait_ms.
unsigned process_tree_kill(const char *mark, const char *network, int wait_ms);

// Waits until those of these processes that run this program have ended: a load and a capture,
// which were told to by the kernel when their run died (`writes_at_end` of base/process.h), and
// write what they have.
void process_tree_await_program(const char *mark, const char *network, int wait_ms);

// Makes orphans below this process its children.
void process_tree_adopt_orphans(void);

// Kills and reaps all children that this process has now, but `spared` (0: none). Returns how many
// there were.
unsigned process_tree_kill_orphans(int spared, int wait_ms);

#endif
