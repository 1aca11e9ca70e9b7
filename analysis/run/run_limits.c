// SPDX-License-Identifier: MIT
#include "analysis/run/run_limits.h"

#include "base/text.h"
#include "base/units.h"

// A figure of one part of capture.json; before and after: the words around it.
static const struct {
    const char *part, *figure, *before, *after;
} limits[] = {
    {"shim", "doubtful_connections", "the shim's byte counts of ",
     " connections are not the kernel's, and their calls were left out"},
    {"shim", "incomplete_connections", "socket calls are missing of ", " connections"},
    {"shim", "unseen_connections", "the shim did not watch ",
     " connections (no room for them, or stdio read them)"},
    {"shim", "closed_unseen", "", " descriptors were closed in a way that the shim does not see"},
    {"shim", "dropped_memory", "there was no memory for ", " socket calls at the end"},
    {"events", "sockets_dropped", "the capture of kernel events had no room for ", " connections"},
};

// A recording of perf's that ended before it was to: perf failed, or the recording had reached its
// bounds.
static void append_end(const char *name, const json_t *recording, char out[RUN_LIMITS_WORDS])
{
    const char *why =
        json_string_value(json_object_get(json_object_get(recording, "ended"), "why"));
    const json_t *on_ns = json_object_get(recording, "on_ns");
    if (!why)
        return;
    text_append(out, RUN_LIMITS_WORDS, "%s%s ended early", out[0] ? ", " : "", name);
    if (on_ns)
        text_append(out, RUN_LIMITS_WORDS, ", after %s", TEXT_NS(json_number_value(on_ns)));
    text_append(out, RUN_LIMITS_WORDS, " (%.600s)", why);
}

// The NIC's stamps of what arrives: why there are none, or which could not be told in the host's
// time.
static void append_nic(const json_t *nic, char out[RUN_LIMITS_WORDS])
{
    char count[32];
    const char *why = json_string_value(json_object_get(nic, "reason"));
    json_int_t unread = json_integer_value(json_object_get(nic, "unread"));
    if (why)
        text_append(out, RUN_LIMITS_WORDS, "%sM(n) is the kernel's, not the NIC's (%.300s)",
                    out[0] ? ", " : "", why);
    if (unread > 0)
        text_append(out, RUN_LIMITS_WORDS, "%sthe NIC's clock could not be read %s times",
                    out[0] ? ", " : "", text_count((uint64_t)unread, count));
}

const char *run_limits_words(const json_t *capture, char out[RUN_LIMITS_WORDS])
{
    char count[32];
    const json_t *events = json_object_get(capture, "events");
    out[0] = '\0';
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const json_t *part = json_object_get(capture, limits[i].part);
        json_int_t number = json_integer_value(json_object_get(part, limits[i].figure));
        if (number > 0)
            text_append(out, RUN_LIMITS_WORDS, "%s%s%s%s", out[0] ? ", " : "", limits[i].before,
                        text_count((uint64_t)number, count), limits[i].after);
    }
    if (json_is_true(json_object_get(events, "memory_full")))
        text_append(out, RUN_LIMITS_WORDS, "%sthe memory for kernel events was full before the end",
                    out[0] ? ", " : "");
    append_nic(json_object_get(events, "nic"), out);
    append_end("the processor's trace", json_object_get(capture, "intel_pt"), out);
    append_end("the samples", json_object_get(capture, "samples"), out);
    return out;
}
