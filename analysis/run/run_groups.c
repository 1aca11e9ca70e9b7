// SPDX-License-Identifier: MIT
#include "analysis/run/run_groups.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { KERNEL_NAME_BYTES = 16 }; // of a group's name, in a cause
#define ITS_GROUP "its control group"

// How causes name the group (path_core.c, detours.c), and where the account has it.
static const struct {
    const char *before, *list;
} names[] = {{"(CPU quota of ", "quotas"},
             {"(memory limit of ", "memory_limits"},
             {"(memory.high of ", "memory_limits"}};

static const char *text_of(const json_t *group, const char *key)
{
    const char *text = json_string_value(json_object_get(group, key));
    return text ? text : "";
}

static double number_of(const json_t *group, const char *key)
{
    return json_number_value(json_object_get(group, key));
}

// "memory.max 48 MiB, reached 412 times"; "CPU quota 5.00 ms of each 50.0 ms, used up 93 times"
static void limit_words(const json_t *group, char *out, size_t bytes)
{
    char allowed[32] = "", period[32], times[32];
    double mib = number_of(group, "bytes") / (1 << 20), quota_ms = number_of(group, "quota_ms");
    text_count((uint64_t)number_of(group, "times"), times);
    if (mib > 0) // else there is no limit any more
        snprintf(allowed, sizeof allowed, " %.4g MiB", mib);
    if (text_of(group, "limit")[0])
        snprintf(out, bytes, "%s%s, reached %s times", text_of(group, "limit"), allowed, times);
    else if (quota_ms > 0)
        snprintf(out, bytes, "CPU quota %s of each %s, used up %s times",
                 units_format_ns(quota_ms * 1e6, allowed, sizeof allowed),
                 units_format_ns(number_of(group, "period_ms") * 1e6, period, sizeof period),
                 times);
    else
        snprintf(out, bytes, "CPU quota used up %s times", times);
}

// Whether the path's last part has the name, of which the kernel gave 16 bytes.
static bool has_name(const char *path, const char *name, size_t length)
{
    const char *last = strrchr(path, '/');
    last = last ? last + 1 : path;
    return strncmp(last, name, length) == 0 &&
           (last[length] == '\0' || length == KERNEL_NAME_BYTES);
}

static const json_t *find_group(const json_t *all, const char *name)
{
    const json_t *group;
    size_t i;
    json_array_foreach(
        (json_t *)(uintptr_t)all, i,
        group) if (has_name(text_of(group, "group"), name, strcspn(name, ")"))) return group;
    return NULL;
}

char *run_group_words(const struct run_analysis *run, const struct cause *cause,
                      char out[GROUP_WORDS_BYTES])
{
    char limit[128], clean[256];
    snprintf(out, GROUP_WORDS_BYTES, "%s", ITS_GROUP);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(cause->name, names[i].before);
        const json_t *all = json_object_get(run->evidence.capture, names[i].list);
        const json_t *group = at ? find_group(all, at + strlen(names[i].before)) : NULL;
        if (!group)
            continue;
        limit_words(group, limit, sizeof limit);
        snprintf(out, GROUP_WORDS_BYTES, ITS_GROUP " %s (%s)",
                 text_clean(text_of(group, "group"), false, clean, sizeof clean), limit);
    }
    return out;
}

static void append_list(char *out, const json_t *all, const char *before)
{
    enum { MOST_NAMED = 4 };
    const json_t *group;
    char limit[128], clean[256], lasted[32];
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)all, i, group)
    {
        double ns = number_of(group, "throttled_ms") * 1e6;
        if (i == MOST_NAMED)
            break;
        limit_words(group, limit, sizeof limit);
        text_append(out, VERDICT_BYTES, "%s%s", i ? ", " : before,
                    text_clean(text_of(group, "group"), false, clean, sizeof clean));
        if (ns > 0)
            text_append(out, VERDICT_BYTES, " for %s", units_format_ns(ns, lasted, sizeof lasted));
        text_append(out, VERDICT_BYTES, " (%s)", limit);
    }
    if (json_array_size(all) > MOST_NAMED)
        text_append(out, VERDICT_BYTES, " and %s more",
                    TEXT_COUNT(json_array_size(all) - MOST_NAMED));
    if (json_array_size(all))
        text_append(out, VERDICT_BYTES, ".");
}

void verdict_append_groups(char *out, const struct run_analysis *run)
{
    append_list(out, json_object_get(run->evidence.capture, "quotas"),
                " Its machine held control groups back, their CPU quota used up: ");
    append_list(out, json_object_get(run->evidence.capture, "memory_limits"),
                " Its machine had control groups at their limit of memory: ");
}
