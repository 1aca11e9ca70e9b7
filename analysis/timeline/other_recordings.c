// SPDX-License-Identifier: MIT
#include "analysis/timeline/other_recordings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const recorders[] = {"taillight", "perf"};
enum { RECORDERS = sizeof recorders / sizeof *recorders };

// Which recorder a task is called after, as "taillight:load-1" is; -1: none.
static int recorder_of(const char *name)
{
    size_t length = strcspn(name, ":-");
    for (int i = 0; i < RECORDERS; i++)
        if (strlen(recorders[i]) == length && strncmp(name, recorders[i], length) == 0)
            return i;
    return -1;
}

static bool is_own(const json_t *own, uint32_t process)
{
    for (size_t i = 0; i < json_array_size(own); i++)
        if (json_integer_value(json_array_get(own, i)) == (json_int_t)process)
            return true;
    return false;
}

// What one of this run's processes started later descends from it, too; by one generation at most,
// as its load and its recorders do.
static bool is_others(const struct host_timeline *host, const json_t *own, uint32_t thread)
{
    const struct thread_owner *owner = host_timeline_owner(host, thread);
    return owner && !is_own(own, owner->process) && !is_own(own, owner->parent);
}

static int name_task(struct name_table *table, struct span *task, int recorder)
{
    char name[32];
    uint32_t number;
    int length = snprintf(name, sizeof name, "another %s", recorders[recorder]);
    if (name_table_intern(table, name, (size_t)length, &number) < 0)
        return -1;
    task->name = number & SPAN_NAMES;
    return 0;
}

int other_recordings_name(struct host_timeline *host, const json_t *own)
{
    struct name_table table;
    if (json_array_size(own) == 0)
        return 0;
    int result = name_table_init(&table, &host->names);
    for (size_t c = 0; c < host->cores.count && result == 0; c++) {
        struct span_array *spans = &host->cores.items[c].spans;
        for (size_t i = 0; i < spans->count && result == 0; i++) {
            struct span *task = &spans->items[i];
            int recorder =
                task->kind == SPAN_TASK ? recorder_of(host->names.items[task->name]) : -1;
            if (recorder >= 0 && is_others(host, own, task->id))
                result = name_task(&table, task, recorder);
        }
    }
    name_table_fini(&table);
    return result;
}
