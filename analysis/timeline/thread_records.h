// SPDX-License-Identifier: MIT
//
// What happened to threads, kept by thread in the lists of struct host_timeline: each function
// takes one kind of event (profiler/bpf/events.tbl.h). All return -1 when memory runs out.
#ifndef ANALYSIS_TIMELINE_THREAD_RECORDS_H
#define ANALYSIS_TIMELINE_THREAD_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/timeline_builder.h"
#include "profiler/bpf/event_log.h"

// Before all others: names the processes of threads, or disks; each is recorded on whatever core
// was the first.
int thread_records_names(struct timeline_builder *builder, const struct event *events, size_t count,
                         enum event_kind kind, struct thread_moment_array *out);

// It is woken.
int thread_records_waking(struct timeline_builder *builder, const struct event *event,
                          int64_t time_ns);

// It goes to sleep. The waits in futex are kept by themselves, too. Not those of a runtime, which
// has its own way to say who may run.
int thread_records_blocked(struct timeline_builder *builder, const struct event *event,
                           int64_t time_ns);

// One of the events that need but a list.
int thread_records_moment(struct thread_moment_array *moments, const struct event *event,
                          int64_t time_ns);

// A page fault begins: one that copies goes to a list of its own.
int thread_records_fault(struct timeline_builder *builder, const struct event *event,
                         int64_t time_ns);

// It has its page. What was swapped in has a second end, a moment after the first. When it began is
// found later, as the thread may have slept and moved, and others had faults on its core meanwhile.
int thread_records_fault_end(struct timeline_builder *builder, const struct event *event,
                             int64_t time_ns);

int thread_records_detour(struct timeline_builder *builder, const struct event *event,
                          int64_t time_ns);
int thread_records_disk(struct timeline_builder *builder, const struct event *event,
                        int64_t time_ns);
int thread_records_member(struct timeline_builder *builder, const struct event *event,
                          int64_t time_ns);
int thread_records_named(struct timeline_builder *builder, struct thread_moment_array *moments,
                         const struct event *event, int64_t time_ns);
int thread_records_file(struct timeline_builder *builder, const struct event *event,
                        int64_t time_ns);
int thread_records_asked(struct timeline_builder *builder, const struct event *event,
                         int64_t time_ns);
int thread_records_file_lock(struct timeline_builder *builder, const struct event *event,
                             int64_t time_ns);

// After all others: orders the lists as struct host_timeline says.
void thread_records_index(struct host_timeline *out);

// After that: gives each page fault the time until it had its page, of the ends that were recorded.
void thread_records_settle_faults(struct timeline_builder *builder);

#endif
