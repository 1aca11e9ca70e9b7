// SPDX-License-Identifier: MIT
//
// Child processes, each in a place of its own (network namespace, cores), that never outlive the
// program: the kernel kills them when their parent dies (PR_SET_PDEATHSIG), also after kill -9. A
// child that starts processes of its own is asked to end (SIGTERM) instead, so that it can end
// those; then the rest of its process group is killed.
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/rights.h"

// A variable of that name marks a process and whatever comes of it, however that forks or leaves
// its session: beside the environment, which programs clear or write over, the kernel keeps the
// mark's number as the soft limit of file locks (RLIMIT_LOCKS), which children inherit and nothing
// has obeyed since Linux 2.4.25 (setrlimit(2)).
#define PROCESS_MARK "TAILLIGHT_HOST="
uint64_t process_mark_number(const char *variable);

struct process_place {
    const char *netns;      // path of a network namespace (/proc/PID/ns/net), NULL: this one
    bool mount_sysfs;       // give the child a /sys that shows that namespace's devices
    const cpu_set_t *cores; // NULL: any core
    const char *cgroup;     // folder of the control group it is to be in; NULL: ours
    const char *const *environment; // "NAME=value" to add, NULL-terminated, or NULL
    const char *log_path; // where stderr (and stdout, unless piped) goes, appended; NULL: inherited
    int log_fd;           // the same as an open descriptor; 0: none
    bool pipe_input;      // give the child a stdin pipe: process.input
    bool pipe_output;     // take the child's stdout: process.output
    bool discard_output;  // send the child's stdout to /dev/null
    int nice;             // its priority, -20 to 19
    const char *directory;   // working directory; NULL: ours
    bool has_children;       // it starts processes of its own: they end with it
    bool writes_at_end;      // when we die it is told to end (SIGTERM), not killed
    const char *last_words;  // of one on another machine that writes_at_end: a file here for the
                             // JSON document that it prints last, once nobody reads its stdout
    const struct person *as; // who it is, without any capability (base/rights.h); NULL: as we are
    bool dry;                // dry run: starts nothing and reports success
};

struct process {
    pid_t pid;  // 0: none
    int input;  // write end of its stdin, -1 if none
    int output; // read end of its stdout, -1 if none
    bool has_children;
    bool asked; // to end
};

// Starts argv (NULL-terminated, argv[0] looked up in PATH). Failures to enter the place or to exec
// are returned here, not left to a dead child.
int process_start(struct process *process, const char *const *argv,
                  const struct process_place *place, struct error *err);

// Waits up to timeout_ms (-1: for ever). Returns 1 when it has ended (wait status in *status),
// 0 on timeout, negative on error.
int process_wait(struct process *process, int timeout_ms, int *status, struct error *err);

// Asks it to end (SIGTERM), once, however often this is called: at a second signal a program that
// writes what it has may end at once. Harmless on pid 0.
void process_ask_to_end(struct process *process);

// Asks it to end, waits grace_ms, then kills (SIGKILL) and reaps it. Harmless on pid 0.
// Returns the wait status, or -1 when there was nothing to reap.
int process_stop(struct process *process, int grace_ms);

// The same of several at once, which have the grace together. Empty entries are harmless.
void process_stop_all(struct process *const *processes, size_t count, int grace_ms);

// Whether it is stopped by a signal, or by a debugger: it does nothing until somebody continues it.
bool process_is_stopped(const struct process *process);

// Whether it sleeps, or is stopped, and has not run since this was asked before; ran_ns is how long
// it had run by then, and has now. What works, waits for a disk or for a core does not rest.
bool process_rests(const struct process *process, uint64_t *ran_ns);

// Whether it has read, written, or touched memory for the first time since this was asked before;
// moved is how much of that it had done by then, and has now. What computes with what it has does
// not. True where that cannot be known (proc_pid_io(5) of another user's process).
bool process_moves(const struct process *process, uint64_t *moved);

// Whether any process of that pid has ended: it is gone, or nobody has waited for it yet (a zombie,
// as containers whose first process waits for nobody collect them).
bool process_has_ended(pid_t pid);

// Whether SIGINT, SIGTERM or SIGHUP has come and waits because the program blocks it, as one does
// that takes its signals from a descriptor: what it does meanwhile should come to an end.
bool process_is_interrupted(void);

// Closes the pipes this side holds.
void process_close_pipes(struct process *process);

// Reads one line (without the newline) from the child's stdout within timeout_ms. Returns 1 with a
// line, 0 on timeout or end of file, negative on error or a line longer than the buffer.
int process_read_line(struct process *process, char *line, size_t line_bytes, int timeout_ms,
                      struct error *err);

// Runs a short command to its end and collects its stdout (at most out_bytes - 1 bytes,
// NUL-terminated; out may be NULL). A non-zero exit is ERROR_FAILED with the command and its last
// stderr line.
int process_run(const char *const *argv, const struct process_place *place, int timeout_ms,
                char *out, size_t out_bytes, struct error *err);

// Joins argv with spaces, quoting where a shell would need it, for logs. Returns out.
char *process_describe(const char *const *argv, char *out, size_t out_bytes);

#endif
