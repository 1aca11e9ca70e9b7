// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_counted.h"

#include <stdbool.h>

// {"ListenOverflows": 12}, less what it was before; what did not move is left out.
static void subtract_numbers(json_t *now, const json_t *before)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(now, next, name, value)
    {
        const json_int_t moved =
            json_integer_value(value) - json_integer_value(json_object_get(before, name));
        if (moved > 0)
            json_object_set_new(now, name, json_integer(moved));
        else
            json_object_del(now, name);
    }
}

static const json_t *same_group(const json_t *groups, const json_t *group)
{
    size_t i;
    const json_t *one;
    json_array_foreach((json_t *)(uintptr_t)groups, i, one)
    {
        const json_t *limit = json_object_get(one, "limit");
        if (json_equal(json_object_get(one, "group"), json_object_get(group, "group")) &&
            (!limit || json_equal(limit, json_object_get(group, "limit"))))
            return one;
    }
    return NULL;
}

// [{"group": "/web.slice", "times": 3, "throttled_ms": 12.5}], in the same way.
static void subtract_groups(json_t *now, const json_t *before)
{
    for (size_t i = json_array_size(now); i-- > 0;) {
        json_t *group = json_array_get(now, i);
        const json_t *then = same_group(before, group);
        const json_t *throttled = json_object_get(group, "throttled_ms");
        const json_int_t times = json_integer_value(json_object_get(group, "times")) -
                                 json_integer_value(json_object_get(then, "times"));
        const double ms =
            json_number_value(throttled) - json_number_value(json_object_get(then, "throttled_ms"));
        json_object_set_new(group, "times", json_integer(times > 0 ? times : 0));
        if (throttled)
            json_object_set_new(group, "throttled_ms", json_real(ms > 0 ? ms : 0));
        if (times <= 0 && ms <= 0)
            json_array_remove(now, i);
    }
}

// Puts a copy of a member of `from` into `to`, less what it was before. The limits of groups and
// the rules of a firewall are no counts and stay.
static void put_moved(json_t *to, const char *member, const json_t *from, const json_t *before)
{
    json_t *now = json_deep_copy(json_object_get(from, member));
    const json_t *then = json_object_get(before, member);
    if (json_is_array(now))
        subtract_groups(now, then);
    else if (json_is_object(now))
        subtract_numbers(now, then);
    if (now)
        json_object_set_new(to, member, now);
}

static bool find_ends(const json_t *counted, int64_t from_ns, int64_t until_ns,
                      const json_t **before, const json_t **after)
{
    size_t i;
    const json_t *one;
    *before = *after = NULL;
    json_array_foreach((json_t *)(uintptr_t)counted, i, one)
    {
        const int64_t at_ns = json_integer_value(json_object_get(one, "until_ns"));
        if (from_ns && (at_ns <= from_ns || i == 0))
            *before = one;
        if (until_ns && at_ns >= until_ns && !*after)
            *after = one;
    }
    return *before || *after;
}

void run_counted_within(json_t *capture, int64_t from_ns, int64_t until_ns)
{
    const json_t *before, *after;
    const json_t *counted = json_object_get(json_object_get(capture, "segments"), "counted");
    json_t *firewall = json_object_get(capture, "firewall"),
           *events = json_object_get(capture, "events");
    if (!find_ends(counted, from_ns, until_ns, &before, &after))
        return;
    put_moved(capture, "network", after ? after : capture, before);
    put_moved(capture, "quotas", after ? after : capture, before);
    put_moved(capture, "memory_limits", after ? after : capture, before);
    if (events)
        put_moved(events, "segments_dropped", after ? after : events, before);
    const json_t *untracked = json_object_get(after ? after : firewall, "untracked");
    if (json_is_integer(untracked))
        json_object_set_new(firewall, "untracked",
                            json_integer(json_integer_value(untracked) -
                                         json_integer_value(json_object_get(before, "untracked"))));
}
