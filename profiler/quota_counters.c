// SPDX-License-Identifier: MIT
#include "profiler/quota_counters.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEPTH = 8, MOST_GROUPS = 2048, PATH_BYTES = 512 };

// The hierarchy with the cpu controller: version 1 as a rule mounts it here, version 2 below.
static const char *const roots[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"};

void quota_counter_parse(const char *text, struct quota_counter *out)
{
    static const char times[] = "nr_throttled ", nanoseconds[] = "throttled_time ",
                      microseconds[] = "throttled_usec ";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, times, sizeof times - 1) == 0)
            out->times = strtoull(line + sizeof times - 1, NULL, 10);
        if (strncmp(line, nanoseconds, sizeof nanoseconds - 1) == 0)
            out->throttled_ns = strtoull(line + sizeof nanoseconds - 1, NULL, 10);
        if (strncmp(line, microseconds, sizeof microseconds - 1) == 0)
            out->throttled_ns = 1000 * strtoull(line + sizeof microseconds - 1, NULL, 10);
    }
}

static void read_group(const char *folder, const char *name, struct quota_counters *out)
{
    char path[PATH_BYTES + 16], text[1024];
    struct quota_counter counter = {0};
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    quota_counter_parse(text, &counter);
    snprintf(counter.group, sizeof counter.group, "%s", name);
    if (counter.times || counter.throttled_ns)
        (void)array_push(out, counter);
}

static void read_below(const char *root, const char *folder, unsigned depth, unsigned *groups,
                       struct quota_counters *out)
{
    DIR *all = depth < MOST_DEPTH ? opendir(folder) : NULL;
    struct dirent *entry;
    while (all && (entry = readdir(all)) && *groups < MOST_GROUPS) {
        char inner[PATH_BYTES];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            snprintf(inner, sizeof inner, "%s/%s", folder, entry->d_name) >= (int)sizeof inner)
            continue;
        ++*groups;
        read_group(inner, inner + strlen(root) + 1, out);
        read_below(root, inner, depth + 1, groups, out);
    }
    if (all)
        closedir(all);
}

void quota_counters_read(struct quota_counters *out)
{
    unsigned groups = 0;
    *out = (struct quota_counters){0};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/cpu.stat", roots[i]);
        if (access(path, F_OK) == 0)
            read_below(roots[i], roots[i], 0, &groups, out);
    }
}

void quota_counters_free(struct quota_counters *counters)
{
    array_free(counters);
}

static const struct quota_counter *find_group(const struct quota_counters *all, const char *group)
{
    static const struct quota_counter none;
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i].group, group) == 0)
            return &all->items[i];
    return &none;
}

json_t *quota_counters_moved(const struct quota_counters *before)
{
    struct quota_counters now;
    json_t *moved = json_array();
    quota_counters_read(&now);
    for (size_t i = 0; moved && i < now.count; i++) {
        const struct quota_counter *one = &now.items[i], *then = find_group(before, one->group);
        if (one->throttled_ns > then->throttled_ns || one->times > then->times)
            json_array_append_new(
                moved, json_pack("{s:s, s:I, s:f}", "group", one->group, "times",
                                 (json_int_t)(one->times - then->times), "throttled_ms",
                                 (double)(one->throttled_ns - then->throttled_ns) / 1e6));
    }
    quota_counters_free(&now);
    return moved;
}
