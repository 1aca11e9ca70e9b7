// SPDX-License-Identifier: MIT
#include "loadgen/method/load_saturation.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

const char *const saturation_names[] = {"none", "server", "client"};

static const double backlog_tolerance = 0.01;  // of the requests, at the end, and ...
static const double stall_allowance_s = 0.05;  // ... what comes in during so short a stall
static const double waiting_tolerance = 0.01;  // of the requests, for a connection with room
static const double busy_spin_fraction = 0.02; // a client that idles less has no CPU to spare

// What had been due, and where it was, at an instant.
static void count_at(const struct engine_result *run, uint64_t tsc, uint64_t *in_flight,
                     uint64_t *waiting)
{
    *in_flight = *waiting = 0;
    for (size_t i = 0; i < run->sample_count && run->samples[i].intended_tsc <= tsc; i++) {
        const struct sample *sample = &run->samples[i];
        if (!sample->sent_tsc || sample->sent_tsc > tsc)
            ++*waiting;
        else if (!sample->reply_tsc || sample->reply_tsc > tsc)
            ++*in_flight;
    }
}

static void blame_client(const struct load_summary *summary, struct load_saturation *found)
{
    const double idle = summary->spin_fraction;
    found->who = SATURATION_CLIENT;
    if (idle < busy_spin_fraction)
        snprintf(found->why, sizeof found->why,
                 "the client is saturated: only %s of its time was left; more --threads, on "
                 "cores of their own, can offer more",
                 TEXT_SHARE(idle, 1));
    else
        snprintf(found->why, sizeof found->why,
                 "the client is saturated: at the end %s request%s %s due and not sent although "
                 "connections had room, and only %s %s in flight",
                 TEXT_COUNT(found->waiting[1]), text_plural((double)found->waiting[1]),
                 text_were((double)found->waiting[1]), TEXT_COUNT(found->in_flight[1]),
                 text_were((double)found->in_flight[1]));
}

static void blame_server(const struct engine_result *run, const struct load_summary *summary,
                         bool closed, bool growing, struct load_saturation *found)
{
    char what[200];
    found->who = SATURATION_SERVER;
    if (closed)
        snprintf(what, sizeof what,
                 "%s of %s requests found every connection full (%s of them, at most %s in flight)",
                 TEXT_COUNT(run->delayed_by_depth), TEXT_COUNT(summary->scheduled),
                 TEXT_COUNT(run->connections_at_once), TEXT_COUNT(run->counts.in_flight_max));
    else if (growing)
        snprintf(what, sizeof what, "requests in flight grew from %s at half time to %s",
                 TEXT_COUNT(found->in_flight[0]), TEXT_COUNT(found->in_flight[1]));
    else
        snprintf(what, sizeof what, "%s of %s requests had no reply in time",
                 TEXT_COUNT(summary->timed_out), TEXT_COUNT(summary->scheduled));
    snprintf(found->why, sizeof found->why,
             "the server is saturated: %s, while the client idled %d %% of the time", what,
             text_whole_percent(summary->spin_fraction, 1));
}

void load_saturation_judge(const struct engine_result *run, const struct load_summary *summary,
                           struct load_saturation *found)
{
    const double scheduled = (double)summary->scheduled;
    *found = (struct load_saturation){0};
    if (summary->scheduled == 0 || run->end == ENGINE_BROKEN)
        return;
    uint64_t length = (uint64_t)(summary->duration_s * run->tsc_hz);
    for (unsigned i = 0; i < 2; i++)
        count_at(run, run->start_tsc + length / (2 - i), &found->in_flight[i], &found->waiting[i]);
    double before = (double)(found->in_flight[0] + found->waiting[0]);
    double after = (double)(found->in_flight[1] + found->waiting[1]);
    bool growing =
        after > before &&
        after > backlog_tolerance * scheduled + stall_allowance_s * scheduled / summary->duration_s;
    double delayed = (double)run->delayed_by_depth;
    bool closed = delayed > waiting_tolerance * scheduled || engine_result_hit_cap(run);
    bool late = summary->timed_out > 0 && run->end != ENGINE_INTERRUPTED;
    if (summary->spin_fraction < busy_spin_fraction ||
        (growing && !closed && found->waiting[1] > found->in_flight[1]))
        blame_client(summary, found);
    else if (growing || closed || late)
        blame_server(run, summary, closed, growing, found);
}

json_t *load_saturation_json(const struct load_saturation *found)
{
    return json_pack("{s:s,s:s,s:[I,I],s:[I,I]}", "who", saturation_names[found->who], "why",
                     found->why, "in_flight", (json_int_t)found->in_flight[0],
                     (json_int_t)found->in_flight[1], "waiting", (json_int_t)found->waiting[0],
                     (json_int_t)found->waiting[1]);
}

static void read_counts(const json_t *json, const char *key, uint64_t counts[2])
{
    for (size_t i = 0; i < 2; i++) {
        json_int_t value = json_integer_value(json_array_get(json_object_get(json, key), i));
        counts[i] = value > 0 ? (uint64_t)value : 0;
    }
}

void load_saturation_read(const json_t *json, struct load_saturation *found)
{
    const char *who = json_string_value(json_object_get(json, "who"));
    const char *why = json_string_value(json_object_get(json, "why"));
    *found = (struct load_saturation){0};
    for (int i = SATURATION_NONE; who && i <= SATURATION_CLIENT; i++)
        if (strcmp(who, saturation_names[i]) == 0)
            found->who = (enum saturation)i;
    snprintf(found->why, sizeof found->why, "%s", why ? why : "");
    read_counts(json, "in_flight", found->in_flight);
    read_counts(json, "waiting", found->waiting);
}
