// SPDX-License-Identifier: MIT
//
// The collector: the consumer of the shim's rings (shim/ring.h). It makes the directory a server
// is pointed at (TAILLIGHT_SHIM_DIR) and all memory in it, empties the rings while the capture
// runs, and at the end writes calls.tlog and connections.tlog (shim/message_log.h,
// base/connection.h).
//
// The server may start before or after it, may fork, and may die at any instant. Nothing in the
// directory is trusted: what is not plausible is counted as rejected, never followed.
//
// Not thread-safe: one thread polls (the caller pins it; every 20 ms is plenty for the
// default memory), or the caller locks.
#ifndef SHIM_MESSAGE_COLLECTOR_H
#define SHIM_MESSAGE_COLLECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shim/message_stats.h"

struct message_collector;

// Makes `dir` (whose parent exists, on a tmpfs) with the memory for a collector that is yet to
// come: a server that starts before it needs no system call to attach later. memory_bytes: as
// below. *held: the caller's, -1 on failure; until it is closed, or somebody collects there, the
// directory is not taken for one that was left behind.
int message_collector_prepare(const char *dir, uint64_t memory_bytes, int *held, struct error *err);

// Makes `dir` and arms it: servers may attach. One that was prepared, or left behind by a collector
// that died, is taken over. memory_bytes: what the shim's records take in memory at most, in all
// servers together, 0 for the default; calls beyond it are counted as lost. ports: none for every
// accepted connection. On success *out is the caller's to free.
int message_collector_create(const char *dir, uint64_t memory_bytes, const uint16_t *ports,
                             size_t port_count, struct message_collector **out, struct error *err);

// Also watches what the servers connect to. Before message_collector_enable.
void message_collector_watch_peers(struct message_collector *collector);

// Also has the shim say with which command begins what the servers receive on connections that they
// accepted (base/command_words.h). Before message_collector_enable.
void message_collector_watch_commands(struct message_collector *collector);

// From now on calls are recorded; before, bytes were only counted. A call that is under way, such
// as a blocked receive, is counted too but not recorded.
void message_collector_enable(struct message_collector *collector);

// Looks for new processes, empties full chunks, and takes what the dead left.
int message_collector_poll(struct message_collector *collector, struct error *err);

// How many calls it keeps in memory.
uint64_t message_collector_kept(const struct message_collector *collector);

// Writes the calls so far to out_dir/<calls_log>, whose header has what was lost of them, and all
// connections so far to out_dir/connections.tlog, and forgets these calls. out_dir NULL: forgets
// them unwritten.
int message_collector_cut(struct message_collector *collector, const char *out_dir,
                          const char *calls_log, struct error *err);

// What a capture that is killed from now on leaves on record: the figures of all cuts, and of what
// was lost, as of the last poll. *stats: free with message_stats_free, on failure too.
int message_collector_so_far(struct message_collector *collector, struct message_stats *stats,
                             struct error *err);

// How many processes have loaded the shim, and how many have attached, as of the last poll.
size_t message_collector_attached(const struct message_collector *collector);

// What others know of threads of other PID namespaces than the machine's first (by its inode): the
// number here of one that has this number inside, 0 where it is not known.
typedef uint32_t message_thread_fn(void *context, uint64_t namespace, uint32_t inside);

// From now on what /proc does not show any more is asked for there.
void message_collector_ask(struct message_collector *collector, message_thread_fn *thread_here,
                           void *context);

// The pid of the n-th process that attached, below message_collector_attached(), as it is known
// here; 0: it is dead, or in a PID namespace that cannot be seen from here.
uint32_t message_collector_process(const struct message_collector *collector, size_t n);

// The pid here of a process whose shim has seen it accept a watched connection, each once; 0: there
// is no other by now. A shim that is loaded where nobody calls it is not among them.
uint32_t message_collector_next_serving(struct message_collector *collector);

// Ends the recording, reads what is left, writes the two logs into out_dir (NULL: writes nothing;
// the calls are those since the last cut), removes the directory, and fills *stats (free with
// message_stats_free, on failure too). Call once.
int message_collector_finish(struct message_collector *collector, const char *out_dir,
                             struct message_stats *stats, struct error *err);

// Also ends an unfinished collection and removes its directory. Harmless on NULL.
void message_collector_free(struct message_collector *collector);

#endif
