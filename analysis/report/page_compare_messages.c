// SPDX-License-Identifier: MIT
#include "analysis/report/page_compare_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_LIMIT = 3000 };

struct columns {
    json_t *id, *at, *latency, *first, *cause, *us;
};

static json_t *micros(double ns)
{
    return json_real(round(ns) / 1000);
}

// Which of the changes each component of the profile is; the caller frees. NULL: no memory.
static size_t *changes_of(const struct slice_shift *slice, const struct slice_profile *profile)
{
    size_t *change_of = malloc((profile->components.count + 1) * sizeof *change_of);
    for (size_t c = 0; change_of && c < profile->components.count; c++) {
        const struct profile_component *component = &profile->components.items[c];
        size_t at = 0;
        while (at < slice->causes.count &&
               (slice->causes.items[at].role != component->role ||
                strcmp(slice->causes.items[at].name, component->name) != 0))
            at++;
        change_of[c] = at;
    }
    return change_of;
}

static void add_message(struct columns *columns, const struct slice_shift *slice,
                        const struct slice_profile *profile, size_t number, const size_t *change_of)
{
    const struct profile_message *message = &profile->each.items[number];
    size_t end = number + 1 < profile->each.count ? message[1].first : profile->values.count;
    json_array_append_new(columns->id, json_integer((json_int_t)message->request));
    json_array_append_new(columns->at, json_real(round(message->at_ns / 1000) / 1e6));
    json_array_append_new(columns->latency, micros(message->latency_ns));
    json_array_append_new(columns->first, json_integer((json_int_t)json_array_size(columns->us)));
    for (size_t i = message->first; i < end; i++) {
        const struct profile_value *value = &profile->values.items[i];
        size_t change = change_of[value->component];
        if (change == slice->causes.count)
            continue;
        double more = (double)value->ns - slice->causes.items[change].normal_ns;
        if (more < profile->granularity_ns)
            continue;
        json_array_append_new(columns->cause, json_integer((json_int_t)change));
        json_array_append_new(columns->us, micros(more));
    }
}

json_t *page_compare_messages(const struct slice_shift *slice, const struct slice_profile *profile)
{
    struct columns c = {json_array(), json_array(), json_array(),
                        json_array(), json_array(), json_array()};
    size_t *change_of = changes_of(slice, profile);
    size_t count = slice->available && change_of ? profile->each.count : 0;
    size_t shown = count < SHOWN_LIMIT ? count : SHOWN_LIMIT;
    for (size_t i = 0; i < shown; i++)
        add_message(&c, slice, profile, i * count / shown, change_of);
    json_array_append_new(c.first, json_integer((json_int_t)json_array_size(c.us)));
    free(change_of);
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "messages", (json_int_t)count, "id",
                     c.id, "at_s", c.at, "latency_us", c.latency, "first", c.first, "cause",
                     c.cause, "us", c.us);
}
