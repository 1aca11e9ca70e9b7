// SPDX-License-Identifier: MIT
//
// What a system call is about in which a thread sleeps: the file or the other end of the socket
// that is its first argument, or the only one that it polls, as the capture recorded it when the
// thread left its core.
#ifndef ANALYSIS_TIMELINE_CALL_FILES_H
#define ANALYSIS_TIMELINE_CALL_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "profiler/bpf/event_log.h"

enum { CALL_FILE_BYTES = 40 };

// What an EVENT_FILE is called: "access.log", "data (file system frozen)", "a pipe",
// "127.0.0.1:6379", "port 6379".
void call_file_name(const struct event *event, char out[CALL_FILE_BYTES]);

// Takes files of the same call of a program together as "several files" where there are more than
// four of them, ends of sockets that are waited for as "several others": causes are told apart by
// their names, and a thousand pages of a web server are one cause. What other programs of the host
// read and write does not count. All else is there and sorted by then; names: of the host. -1: no
// memory.
int call_files_settle(struct host_timeline *host, struct name_table *names);

// Appends " to access.log", " from 10.0.0.1:80" or " of data.db" to what a thread is said to sleep
// in after that stint, in the call `pause`; nothing where it is not known.
void call_file_append(const struct host_timeline *host, const struct thread_stint *stint,
                      uint32_t pause, char *out, size_t out_bytes);

// Of a wait for a single socket after that stint, as a resolver's: the other end. NULL: not one.
const char *call_polled_peer(const struct host_timeline *host, const struct thread_stint *stint);

#endif
