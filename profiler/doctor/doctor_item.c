// SPDX-License-Identifier: MIT
#include "profiler/doctor/doctor_item.h"

#include <stdarg.h>
#include <stdio.h>

const char *doctor_group_name(enum doctor_group group)
{
    static const char *const names[DOCTOR_GROUPS] = {"machine", "capture", "events backend",
                                                     "network", "programs"};
    return names[group];
}

const char *doctor_state_name(enum doctor_state state)
{
    return state == DOCTOR_YES ? "yes" : state == DOCTOR_LIMITED ? "limited" : "no";
}

struct doctor_item *doctor_add(struct doctor_items *items, enum doctor_group group,
                               const char *name, const char *gives)
{
    struct doctor_item item = {.group = group, .state = DOCTOR_NO};
    snprintf(item.name, sizeof item.name, "%s", name);
    snprintf(item.gives, sizeof item.gives, "%s", gives);
    return array_push(items, item) < 0 ? NULL : &items->items[items->count - 1];
}

void doctor_found(struct doctor_item *item, enum doctor_state state, const char *format, ...)
{
    if (!item)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(item->found, sizeof item->found, format, args);
    va_end(args);
    item->state = state;
}

void doctor_missing(struct doctor_item *item, enum doctor_state state, const char *how,
                    const char *format, ...)
{
    if (!item)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(item->missing, sizeof item->missing, format, args);
    va_end(args);
    snprintf(item->how, sizeof item->how, "%s", how);
    item->state = state;
}
