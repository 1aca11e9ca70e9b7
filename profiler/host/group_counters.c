// SPDX-License-Identifier: MIT
#include "profiler/host/group_counters.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEPTH = 8, MOST_GROUPS = 2048, PATH_BYTES = 512, TEXT_BYTES = 1024 };

// What version 1 has for no limit is the largest number of whole pages.
#define NO_LIMIT_BYTES (INT64_MAX - 65536)

// The hierarchies with the cpu and memory controllers: version 1 as a rule mounts them here,
// version 2 below; `mark`: a file of each group in it.
static const struct {
    const char *root, *mark;
} hierarchies[] = {{"/sys/fs/cgroup/cpu", "cpu.stat"},
                   {"/sys/fs/cgroup/memory", "memory.failcnt"},
                   {"/sys/fs/cgroup", "cgroup.procs"}};

static const char *const limit_names[] = {
    [GROUP_MEMORY_MAX] = "memory.max", [GROUP_MEMORY_HIGH] = "memory.high"};

bool group_counter_number(const char *text, const char *word, uint64_t *out)
{
    const size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, length) == 0 && line[length] == ' ') {
            *out = strtoull(line + length, NULL, 10);
            return true;
        }
    }
    return false;
}

// The text of a file of a group; "" where there is none.
static const char *read_text(const char *folder, const char *name, char text[TEXT_BYTES])
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (!file)
        return text;
    text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
    fclose(file);
    return text;
}

// A number by itself; "max", -1 and what stands for it are no limit.
static uint64_t limit_of(const char *text, const char **rest)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (rest)
        *rest = end + strcspn(end, " ");
    return end == text || number > NO_LIMIT_BYTES ? UINT64_MAX : number;
}

static void read_quota(const char *folder, struct group_counter *out)
{
    char text[TEXT_BYTES];
    const char *period;
    uint64_t microseconds = 0;
    out->limit = GROUP_QUOTA;
    read_text(folder, "cpu.stat", text);
    (void)group_counter_number(text, "nr_throttled", &out->times);
    if (group_counter_number(text, "throttled_usec", &microseconds))
        out->throttled_ns = 1000 * microseconds;
    else
        (void)group_counter_number(text, "throttled_time", &out->throttled_ns);
    if (out->times == 0 && out->throttled_ns == 0)
        return;
    out->allowed = limit_of(read_text(folder, "cpu.max", text), &period);
    if (!text[0]) {
        out->allowed = limit_of(read_text(folder, "cpu.cfs_quota_us", text), NULL);
        period = read_text(folder, "cpu.cfs_period_us", text);
    }
    out->period_ns = 1000 * strtoull(period, NULL, 10);
    out->allowed = out->allowed == UINT64_MAX ? UINT64_MAX : 1000 * out->allowed;
}

static void read_memory(const char *folder, enum group_limit limit, struct group_counter *out)
{
    char text[TEXT_BYTES];
    const char *word = limit == GROUP_MEMORY_MAX ? "max" : "high";
    out->limit = limit;
    out->times = out->throttled_ns = 0;
    // Of the group itself, where the kernel tells them from those of groups below (since 5.2).
    if (!read_text(folder, "memory.events.local", text)[0])
        read_text(folder, "memory.events", text);
    if (!group_counter_number(text, word, &out->times) && limit == GROUP_MEMORY_MAX)
        out->times = strtoull(read_text(folder, "memory.failcnt", text), NULL, 10);
    if (out->times == 0)
        return;
    if (!read_text(folder, limit_names[limit], text)[0])
        read_text(folder, "memory.limit_in_bytes", text);
    out->allowed = limit_of(text, NULL);
}

static void read_group(const char *folder, const char *name, struct group_counters *out)
{
    struct group_counter counter = {0};
    snprintf(counter.group, sizeof counter.group, "%s", name);
    for (int limit = GROUP_QUOTA; limit <= GROUP_MEMORY_HIGH; limit++) {
        if (limit == GROUP_QUOTA)
            read_quota(folder, &counter);
        else
            read_memory(folder, (enum group_limit)limit, &counter);
        if (counter.times || counter.throttled_ns)
            (void)array_push(out, counter);
    }
}

static void read_below(const char *root, const char *folder, unsigned depth, unsigned *groups,
                       struct group_counters *out)
{
    DIR *all = depth < MOST_DEPTH ? opendir(folder) : NULL;
    struct dirent *entry;
    while (all && (entry = readdir(all)) && *groups < MOST_GROUPS) {
        char inner[PATH_BYTES];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            snprintf(inner, sizeof inner, "%s/%s", folder, entry->d_name) >= (int)sizeof inner)
            continue;
        ++*groups;
        read_group(inner, inner + strlen(root), out);
        read_below(root, inner, depth + 1, groups, out);
    }
    if (all)
        closedir(all);
}

void group_counters_read(struct group_counters *out)
{
    *out = (struct group_counters){0};
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        char path[PATH_BYTES];
        unsigned groups = 0;
        snprintf(path, sizeof path, "%s/%s", hierarchies[i].root, hierarchies[i].mark);
        if (access(path, F_OK) == 0)
            read_below(hierarchies[i].root, hierarchies[i].root, 0, &groups, out);
    }
}

void group_counters_free(struct group_counters *counters)
{
    array_free(counters);
}

static int compare_counters(const void *left, const void *right)
{
    const struct group_counter *a = left, *b = right;
    return order_of(b->throttled_ns, a->throttled_ns) ?: order_of(b->times, a->times);
}

// Leaves of each what moved since.
static void subtract(struct group_counters *now, const struct group_counters *before)
{
    for (size_t i = 0; i < now->count; i++) {
        struct group_counter *one = &now->items[i];
        for (size_t j = 0; j < before->count; j++) {
            const struct group_counter *then = &before->items[j];
            if (then->limit != one->limit || strcmp(then->group, one->group) != 0)
                continue;
            one->times -= then->times < one->times ? then->times : one->times;
            one->throttled_ns -=
                then->throttled_ns < one->throttled_ns ? then->throttled_ns : one->throttled_ns;
        }
    }
}

static json_t *allowed_json(uint64_t allowed, double unit)
{
    return allowed == UINT64_MAX ? json_null() : json_real((double)allowed / unit);
}

static json_t *counter_json(const struct group_counter *one)
{
    const double ms = 1e6;
    if (one->limit == GROUP_QUOTA)
        return json_pack("{s:s, s:I, s:f, s:o, s:f}", "group", one->group, "times",
                         (json_int_t)one->times, "throttled_ms", (double)one->throttled_ns / ms,
                         "quota_ms", allowed_json(one->allowed, ms), "period_ms",
                         (double)one->period_ns / ms);
    return json_pack("{s:s, s:I, s:s, s:o}", "group", one->group, "times", (json_int_t)one->times,
                     "limit", limit_names[one->limit], "bytes", allowed_json(one->allowed, 1));
}

json_t *group_counters_moved(const struct group_counters *before)
{
    struct group_counters now;
    json_t *quotas = json_array(), *limits = json_array();
    group_counters_read(&now);
    subtract(&now, before);
    array_sort(&now, compare_counters);
    for (size_t i = 0; i < now.count; i++)
        if (now.items[i].times || now.items[i].throttled_ns)
            json_array_append_new(now.items[i].limit == GROUP_QUOTA ? quotas : limits,
                                  counter_json(&now.items[i]));
    group_counters_free(&now);
    return json_pack("{s:o, s:o}", "quotas", quotas, "memory_limits", limits);
}
