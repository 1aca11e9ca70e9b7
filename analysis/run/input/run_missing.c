// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_missing.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analysis/run/input/run_path.h"
#include "base/text.h"

// What capture.json has of each thing that is recorded, and where it lies. Of a capture in segments
// the log itself may be missing, when it was killed: its segments are asked for one by one
// (run_segments.c).
static const struct recorded {
    const char *key, *log, *table;
} recorded[] = {
    {"events", "server/events.tlog", "server/sockets.tlog"},
    {"shim", "server/calls.tlog", "server/connections.tlog"},
    {"functions", "server/functions.tlog", NULL},
};

// The logs of connections that ended, which capture.json names by their segments.
static void find_sockets(const char *run_dir, const json_t *segments, struct run_missing *missing)
{
    const json_t *numbers = json_object_get(segments, "sockets");
    char name[64], first[64] = "", others[48] = "";
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        snprintf(name, sizeof name, "server/sockets-%06lld.tlog",
                 (long long)json_integer_value(json_array_get(numbers, i)));
        if (!run_has(run_dir, name) && count++ == 0)
            memcpy(first, name, sizeof first);
    }
    if (count > 1)
        snprintf(others, sizeof others, " and %s more of its kind", TEXT_COUNT(count - 1));
    if (count)
        snprintf(missing->losses, sizeof missing->losses, "%s%s %s missing (copy %s from where %s)",
                 first, others, count > 1 ? "are" : "is", count > 1 ? "them" : "it",
                 count > 1 ? "they were" : "it was");
}

// Of two runs' files in one folder each is whole by itself. Returns whether the document says
// another number than the log has; `more`, if it says that too, are in the same log.
static bool is_of_another(const json_t *said, json_int_t more, const struct log_header *log)
{
    return log && json_is_integer(said) &&
           json_integer_value(said) + more != (json_int_t)log->records;
}

// What was lost stands in capture.json, and is of these logs only if it was written with them.
static void compare_capture(const struct run_documents *documents, struct run_missing *missing)
{
    const json_t *events = json_object_get(documents->capture, "events"),
                 *shim = json_object_get(documents->capture, "shim");
    const struct {
        const char *log;
        const json_t *said;
        const struct log_header *header;
        json_int_t more;
    } pairs[] = {
        {"events.tlog", json_object_get(events, "records"), documents->events, 0},
        {"sockets.tlog", json_object_get(events, "sockets"), documents->sockets, 0},
        {"calls.tlog", json_object_get(shim, "calls"), documents->calls, 0},
        {"connections.tlog", json_object_get(shim, "connections"), documents->connections,
         json_integer_value(json_object_get(shim, "outgoing"))},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (is_of_another(pairs[i].said, pairs[i].more, pairs[i].header))
            snprintf(missing->losses, sizeof missing->losses,
                     "server/capture.json is of another capture than server/%s, which has %s "
                     "records, not %s (copy both from where they were)",
                     pairs[i].log, TEXT_COUNT(pairs[i].header->records),
                     TEXT_COUNT(json_integer_value(pairs[i].said) + pairs[i].more));
}

static void append_capture(const char *run_dir, const json_t *capture, struct run_missing *missing,
                           char *out, size_t out_bytes)
{
    const bool segments = json_object_get(capture, "segments") != NULL;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        const struct recorded *one = &recorded[i];
        const char *const names[] = {segments ? NULL : one->log, one->table};
        if (!json_is_object(json_object_get(capture, one->key)))
            continue;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (names[k] && !run_has(run_dir, names[k]))
                text_append(out, out_bytes,
                            "%s%s is missing, though server/capture.json says that it was "
                            "recorded: copy it from where it was.",
                            out[0] ? " " : "", names[k]);
    }
    find_sockets(run_dir, json_object_get(capture, "segments"), missing);
    if (!json_is_object(json_object_get(capture, "dropped")) &&
        (run_has(run_dir, recorded[0].log) || run_has(run_dir, recorded[1].log)))
        snprintf(missing->losses, sizeof missing->losses, "server/capture.json %s",
                 capture ? "does not say it" : "is missing (copy it from where it was)");
}

// A folder that somebody put together of a load and a capture has neither of these documents.
static void append_run(const char *run_dir, const struct run_documents *documents,
                       struct run_missing *missing, char *out, size_t out_bytes)
{
    const char *verdict = json_string_value(json_object_get(documents->load, "verdict"));
    if (!run_has(run_dir, "experiment.yaml"))
        return;
    if (!json_is_string(json_object_get(documents->experiment, "name")))
        text_append(out, out_bytes,
                    "%sexperiment.json %s, so what was to be looked at of this run is not known: "
                    "copy it from where it was.",
                    out[0] ? " " : "", documents->experiment ? "says nothing" : "is missing");
    const json_t *capsule = json_object_get(documents->experiment, "capsule");
    if (json_array_size(json_object_get(capsule, "hops")) &&
        !run_has(run_dir, "server/capsule.json") && !run_has(run_dir, "client/capsule.json"))
        text_append(out, out_bytes,
                    "%sserver/capsule.json is missing, though experiment.json names hops: copy it, "
                    "and hops.tlog beside it, from where they were.",
                    out[0] ? " " : "");
    if (documents->load_name &&
        !(verdict && (strcmp(verdict, "ok") == 0 || strcmp(verdict, "n/a") == 0)))
        snprintf(missing->load, sizeof missing->load,
                 "%.80s %s, so whether the load was late by itself is not known, nor how far the "
                 "latencies can be trusted: copy it from where it was",
                 documents->load_name, documents->load ? "has no verdict" : "is missing");
    else if (is_of_another(json_object_get(documents->load, "scheduled"),
                           documents->samples ? -(json_int_t)documents->samples->dropped : 0,
                           documents->samples))
        snprintf(missing->load, sizeof missing->load,
                 "%.80s is of another load than samples.tlog beside it, which has %s requests, not "
                 "%s: copy both from where they were",
                 documents->load_name, TEXT_COUNT(documents->samples->records),
                 TEXT_COUNT(json_integer_value(json_object_get(documents->load, "scheduled"))));
}

void run_missing_words(const char *run_dir, const struct run_documents *documents,
                       struct run_missing *missing, char *out, size_t out_bytes)
{
    append_capture(run_dir, documents->capture, missing, out, out_bytes);
    compare_capture(documents, missing);
    append_run(run_dir, documents, missing, out, out_bytes);
}
