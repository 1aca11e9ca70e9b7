// SPDX-License-Identifier: MIT
//
// The one place where a run waits. While it waits for a process, it also notices when others die,
// when the user interrupts, and when time is up. It wakes for nothing else, since it shares a core
// with the load.
#ifndef EXPERIMENTS_COMMON_SUPERVISOR_H
#define EXPERIMENTS_COMMON_SUPERVISOR_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/process.h"

struct text_buffer ARRAY_OF(char);

// A process that must not end by itself.
struct watched {
    struct process *process;
    const char *what;     // "the server `cache`"
    const char *log_path; // its last line says why it ended
};

enum { MOST_WATCHED = 160 }; // 64 neighbours, 64 links, and the run's own

// How long all processes together have to end by themselves when a person waits for that.
enum { INTERRUPT_GRACE_MS = 400 };

// A process that is awaited and stopped (SIGSTOP, a debugger) is given so long to go on.
enum { STOPPED_GRACE_S = 10 };

struct supervisor {
    int signals; // signalfd
    int taken;   // eventfd that does not block: counts the interrupts that were taken
    sigset_t mask_before;
    bool interrupted;   // SIGINT or SIGTERM came
    uint64_t oom_kills; // of this machine, when it was opened
    struct watched watched[MOST_WATCHED];
    size_t watched_count;
    // Of the process that is awaited: when it was found stopped; 0: it is not.
    pid_t stopped;
    uint64_t stopped_since_ns;
    uint64_t stopped_grace_ns; // STOPPED_GRACE_S
};

// Blocks SIGINT, SIGTERM, SIGHUP and one more signal, and returns a signalfd, which does not block,
// that they are read from instead. *before (may be NULL): the mask until then. On failure the mask
// is as it was.
int supervisor_open_signals(int more, sigset_t *before, struct error *err);

// Takes over SIGINT, SIGTERM, SIGHUP and SIGCHLD. Close gives them back.
int supervisor_open(struct supervisor *supervisor, struct error *err);
void supervisor_close(struct supervisor *supervisor);

// From now on the end of this process ends every wait with an error. The strings must outlive it.
void supervisor_watch(struct supervisor *supervisor, struct process *process, const char *what,
                      const char *log_path);
void supervisor_unwatch(struct supervisor *supervisor, const struct process *process);

// Waits until deadline_ns (CLOCK_MONOTONIC). What `awaited` (may be NULL) prints to its pipe is
// appended to *output (may be NULL), at most 16 MiB.
// Returns 1 when awaited has ended (wait status in *status), or, with until_line, when output has a
// newline; 0 at the deadline; negative when the user interrupted, a watched process ended, or
// awaited was stopped and did not go on for STOPPED_GRACE_S.
int supervisor_wait(struct supervisor *supervisor, struct process *awaited,
                    struct text_buffer *output, bool until_line, uint64_t deadline_ns, int *status,
                    struct error *err);

// Waits until a process has ended, for so many seconds at most. ERROR_FAILED also when it does not
// end in time, or ends with anything but success; `what` and its log are named.
int supervisor_finish(struct supervisor *supervisor, struct process *process, const char *what,
                      const char *log_path, unsigned seconds, struct error *err);

// ERROR_FAILED when the user has interrupted, else 0. For work between waits.
int supervisor_check(struct supervisor *supervisor, struct error *err);

// CLOCK_MONOTONIC now.
uint64_t supervisor_now_ns(void);

// Fills *err: "<what> was killed by signal 9 (Killed); the last line of <log>: <that line>", or,
// when that line is the complaint of a taillight command, "<what>: <complaint>". Returns
// -ERROR_FAILED.
int supervisor_end_error(struct error *err, const char *what, int status, const char *log_path);

// The same of a process of this run's: where it was killed, it is said too whether the kernel has
// killed for want of memory since the supervisor was opened.
int supervisor_death_error(const struct supervisor *supervisor, struct error *err, const char *what,
                           int status, const char *log_path);

#endif
