// SPDX-License-Identifier: MIT
//
// Compares what the reader makes of a perf.data with what perf itself does (`perf report -D`):
// the number of records of every type, and time, CPU, place and contents of every event.
// Header-only.
#ifndef TESTS_ANALYSIS_PERF_PERF_COMPARE_H
#define TESTS_ANALYSIS_PERF_PERF_COMPARE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_events.h"
#include "base/array.h"

struct line_array ARRAY_OF(char *);

struct perf_dump {
    uint64_t counts[PERF_RECORD_TYPES];
    struct line_array events; // sorted
};

static inline int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void keep_line(struct line_array *lines, const char *line)
{
    if (array_push(lines, strdup(line)) < 0)
        abort();
}

static inline void free_lines(struct line_array *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i]);
    array_free(lines);
}

static inline void collapse_spaces(char *text)
{
    char *to = text;
    for (char *from = text; *from; from++)
        if (*from != ' ' || (to > text && to[-1] != ' '))
            *to++ = *from;
    while (to > text && (to[-1] == ' ' || to[-1] == '\n'))
        to--;
    *to = '\0';
}

// perf's name of a record is a prefix of ours, or ours without HEADER_.
static inline uint32_t type_of_name(const char *name)
{
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    for (uint32_t type = 0; type < PERF_RECORD_TYPES; type++) {
        const char *known = perf_record_name(type);
        if (known && strncmp(known, "HEADER_", 7) == 0)
            known += 7;
        if (known && strlen(known) == length && strncmp(known, name, length) == 0)
            return type;
    }
    return 0;
}

static inline bool is_compared_event(uint32_t type)
{
    static const uint32_t kept[] = {PERF_MMAP,         PERF_MMAP2,  PERF_COMM,
                                    PERF_FORK,         PERF_EXIT,   PERF_AUX,
                                    PERF_ITRACE_START, PERF_SWITCH, PERF_SWITCH_CPU_WIDE,
                                    PERF_LOST,         PERF_KSYMBOL};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (kept[i] == type)
            return true;
    return false;
}

static inline void make_line(struct line_array *lines, uint64_t time, int64_t cpu, uint64_t offset,
                             bool with_offset, char *text)
{
    char line[8192], where[64] = "";
    if (with_offset)
        snprintf(where, sizeof where, "%#" PRIx64 " ", offset);
    collapse_spaces(text);
    snprintf(line, sizeof line, "%" PRIu64 " %d %s%s", time,
             time == 0 || cpu == UINT32_MAX ? -1 : (int)cpu, where, text);
    keep_line(lines, line);
}

// Cuts what we do not compare: device and inode, protection, names of flags.
static inline void cut_perf_text(uint32_t type, char *text)
{
    char *at = NULL;
    if (type == PERF_MMAP || type == PERF_MMAP2) {
        at = strstr(text, " @ ");
        if (at)
            at += 3 + strspn(at + 3, "0123456789abcdefx");
    } else if (type == PERF_AUX) {
        at = strstr(text, " [");
    } else if (type == PERF_KSYMBOL || type == PERF_LOST) {
        at = text + strcspn(text, " :");
    }
    if (at)
        *at = '\0';
}

// pipe: read through standard input, as perf wants it. with_offset: compare places too. Returns
// false when perf cannot be run.
static inline bool perf_dump_read(const char *path, bool pipe, bool with_offset,
                                  struct perf_dump *out)
{
    char command[4400];
    memset(out, 0, sizeof *out);
    snprintf(command, sizeof command,
             pipe ? "cat '%s' | perf --no-pager report -f -D -i - 2>/dev/null"
                  : "perf --no-pager report -f -D -i '%s' 2>/dev/null </dev/null",
             path);
    FILE *perf = popen(command, "r");
    if (!perf)
        return false;
    char *line = NULL;
    size_t line_bytes = 0;
    while (getline(&line, &line_bytes, perf) > 0) {
        int64_t cpu;
        uint64_t time, offset;
        char *name = strstr(line, ": PERF_RECORD_");
        if (!name)
            continue;
        // The CPU is there when the events' sample_type has it.
        if (sscanf(line, "%" SCNd64 " %" SCNu64 " %" SCNx64 " [", &cpu, &time, &offset) != 3) {
            cpu = UINT32_MAX;
            if (sscanf(line, "%" SCNu64 " %" SCNx64 " [", &time, &offset) != 2)
                continue;
        }
        name += strlen(": PERF_RECORD_");
        uint32_t type = type_of_name(name);
        out->counts[type]++;
        if (time == UINT64_MAX)
            time = 0;
        if (!is_compared_event(type))
            continue;
        cut_perf_text(type, name);
        make_line(&out->events, time, cpu & UINT32_MAX, offset, with_offset, name);
    }
    free(line);
    pclose(perf);
    if (out->events.count)
        qsort(out->events.items, out->events.count, sizeof *out->events.items, by_text);
    return out->events.count > 0;
}

static inline void describe_event(const struct perf_event *event, char *text, size_t bytes)
{
    struct perf_mmap mmap;
    struct perf_comm comm;
    struct perf_task task;
    struct perf_switch switched;
    struct perf_aux aux;
    struct perf_itrace_start start;
    const char *name = perf_record_name(event->type);
    switch (event->type) {
    case PERF_MMAP:
    case PERF_MMAP2:
        perf_event_mmap(event, &mmap);
        snprintf(text, bytes, "%s %d/%d: [%#" PRIx64 "(%#" PRIx64 ") @ %#" PRIx64, name,
                 (int)mmap.pid, (int)mmap.tid, mmap.address, mmap.bytes, mmap.file_offset);
        break;
    case PERF_COMM:
        perf_event_comm(event, &comm);
        snprintf(text, bytes, "COMM%s: %s:%d/%d", comm.exec ? " exec" : "", comm.name,
                 (int)comm.pid, (int)comm.tid);
        break;
    case PERF_FORK:
    case PERF_EXIT:
        perf_event_task(event, &task);
        snprintf(text, bytes, "%s(%d:%d):(%d:%d)", name, (int)task.pid, (int)task.tid,
                 (int)task.parent_pid, (int)task.parent_tid);
        break;
    case PERF_SWITCH_CPU_WIDE:
        perf_event_switch(event, &switched);
        snprintf(text, bytes, "%s %s%s %s pid/tid: %5d/%-5d", name, switched.out ? "OUT" : "IN",
                 switched.preempted ? " preempt" : "", switched.out ? "next" : "prev",
                 (int)switched.other_pid, (int)switched.other_tid);
        break;
    case PERF_SWITCH:
        perf_event_switch(event, &switched);
        snprintf(text, bytes, "%s %s%s", name, switched.out ? "OUT" : "IN",
                 switched.preempted ? " preempt" : "");
        break;
    case PERF_AUX:
        perf_event_aux(event, &aux);
        snprintf(text, bytes, "AUX offset: %#" PRIx64 " size: %#" PRIx64 " flags: %#" PRIx64,
                 aux.offset, aux.bytes, aux.flags);
        break;
    case PERF_ITRACE_START:
        perf_event_itrace_start(event, &start);
        snprintf(text, bytes, "ITRACE_START pid: %d tid: %d", (int)start.pid, (int)start.tid);
        break;
    default:
        snprintf(text, bytes, "%s", name);
        break;
    }
}

// Prints the differences and returns how many there are. offset_by: ours minus perf's.
static inline size_t perf_compare(const struct perf_data *data, const struct perf_dump *dump,
                                  bool with_offset, uint64_t offset_by)
{
    size_t differences = 0;
    for (uint32_t type = 1; type < PERF_RECORD_TYPES; type++) {
        if (type == PERF_COMPRESSED || type == PERF_COMPRESSED2 || // perf counts what they hold
            data->counts[type] == dump->counts[type])
            continue;
        differences++;
        print_message("%s: %" PRIu64 ", by perf %" PRIu64 "\n", perf_record_name(type),
                      data->counts[type], dump->counts[type]);
    }
    struct line_array ours = {0};
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perf_event *event = &data->events.items[i];
        char text[8000];
        if (!is_compared_event(event->type))
            continue;
        describe_event(event, text, sizeof text);
        make_line(&ours, event->time, event->cpu, event->offset - offset_by, with_offset, text);
    }
    if (ours.count)
        qsort(ours.items, ours.count, sizeof *ours.items, by_text);
    if (ours.count != dump->events.count) {
        differences++;
        print_message("%zu events, by perf %zu\n", ours.count, dump->events.count);
    }
    for (size_t i = 0; i < ours.count && i < dump->events.count && differences < 10; i++) {
        if (strcmp(ours.items[i], dump->events.items[i]) == 0)
            continue;
        differences++;
        print_message("ours: %s\nperf: %s\n", ours.items[i], dump->events.items[i]);
    }
    free_lines(&ours);
    return differences;
}

static inline void perf_dump_free(struct perf_dump *dump)
{
    free_lines(&dump->events);
}

#endif
