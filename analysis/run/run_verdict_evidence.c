// SPDX-License-Identifier: MIT
#include "analysis/run/run_verdict_evidence.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_limits.h"
#include "base/text.h"
#include "base/units.h"

// What the answered requests that could not be joined lack, and a possible reason.
static void verdict_append_not_joined(char *out, const struct run_analysis *run)
{
    char count[32], of[32];
    const char *before = " (";
    for (int state = 0; state < LIFETIME_STATES; state++) {
        if (state == LIFETIME_WHOLE || state == LIFETIME_UNANSWERED ||
            !run->lifetimes.states[state])
            continue;
        text_append(out, VERDICT_BYTES, "%s%s: %s", before,
                    text_count(run->lifetimes.states[state], count),
                    lifetime_state_name((enum lifetime_state)state));
        before = ", ";
    }
    if (before[0] == ',')
        text_append(out, VERDICT_BYTES, ")");
    if (run_has_server_events(run) && run->lifetimes.join.connections_without_socket)
        text_append(out, VERDICT_BYTES, "; the capture %s %s of %s connections",
                    run->evidence.missing.losses[0] ? "has no record of" : "never saw",
                    text_count(run->lifetimes.join.connections_without_socket, count),
                    text_count(run->lifetimes.join.connections, of));
    if (run->evidence.has_calls && run->lifetimes.join.connections_without_calls)
        text_append(out, VERDICT_BYTES, "; %s never saw %s of %s connections",
                    run->evidence.calls_by_kernel ? "the record of socket calls" : "the shim",
                    text_count(run->lifetimes.join.connections_without_calls, count),
                    text_count(run->lifetimes.join.connections, of));
}

// Which stamps nothing took of requests that were joined, and what is not divided therefore.
static void verdict_append_undivided(char *out, const struct run_analysis *run)
{
    char count[32];
    const struct join_counts *join = &run->lifetimes.join;
    const char *why = run_trace_gives_stamps(&run->evidence.trace)
                          ? "the processor's trace does not show whose a delivery was"
                      : run_has_server_events(run)
                          ? "the server's network stack is its own"
                          : "no kernel events were recorded on the server's host";
    if (join->without_arrivals)
        text_append(out, VERDICT_BYTES,
                    "; of %s nothing takes M(n) and M(h) (%s): all between client and M(a) is one "
                    "stage, in which network, stack and waiting cannot be told apart",
                    text_count(join->without_arrivals, count), why);
    if (join->without_handoffs)
        text_append(out, VERDICT_BYTES,
                    "; of %s nothing takes M(h) (%s): the server's thread is "
                    "taken to fetch them itself from M(n) on",
                    text_count(join->without_handoffs, count), why);
    if (join->without_departures)
        text_append(out, VERDICT_BYTES,
                    "; of %s nothing takes server TX, so that the way back begins with the reply",
                    text_count(join->without_departures, count));
}

// What a sparing capture did without.
static void verdict_append_spared(char *out, const struct run_analysis *run)
{
    char count[32];
    const struct join_counts *join = &run->lifetimes.join;
    if (join->spared)
        text_append(out, VERDICT_BYTES,
                    "; of %s no hand-off or departure was recorded, nor softirqs, because there "
                    "were so many: they end with the send call, and a softirq counts as what it "
                    "interrupted",
                    text_count(join->spared, count));
}

// Which cores were not recorded while messages were on them, and for how long it is unknown what
// others did. `first`: nothing else was said to be missing.
static void verdict_append_unseen(char *out, const struct unseen_time *unseen, bool first)
{
    enum { NAMED_CORES = 3 };
    char time[32], count[32];
    const char *but = first ? "; no record was dropped, but " : "; ";
    for (size_t i = 0; i < unseen->cores.count && i < NAMED_CORES; i++) {
        const struct unseen_core *core = &unseen->cores.items[i];
        if (core->unrecorded_ns == 0)
            break;
        text_append(out, VERDICT_BYTES, "%sfor %s core %u, which %s, was not recorded",
                    i ? ", " : but, units_format_ns((double)core->unrecorded_ns, time, sizeof time),
                    (unsigned)core->core, core->received ? "received" : "served");
    }
    if (unseen->unrecorded_ns)
        text_append(out, VERDICT_BYTES, " (%s request%s)", text_count(unseen->unrecorded, count),
                    unseen->unrecorded == 1 ? "" : "s");
    if (unseen->lost_ns)
        text_append(out, VERDICT_BYTES, "%sfor %s nobody knows what their cores did",
                    unseen->unrecorded_ns ? ", and " : but,
                    units_format_ns((double)unseen->lost_ns, time, sizeof time));
}

// What the processor's trace is worth, where there is one.
static void verdict_append_trace(char *out, const struct run_trace *trace)
{
    char words[RUN_TRACE_WORDS], count[32], time[32];
    const char *lack = run_trace_lack(trace, words), *before = " (";
    const struct {
        uint64_t count;
        const char *one, *many;
    } losses[] = {{trace->errors, "decode error", "decode errors"},
                  {trace->overflows, "overflow", "overflows"},
                  {trace->truncated, "cut for want of buffer", "cuts for want of buffer"},
                  {trace->gaps, "piece with gaps", "pieces with gaps"},
                  {trace->perf_errors, "error noted by perf", "errors noted by perf"},
                  {trace->perf_lost, "record lost by perf", "records lost by perf"},
                  {trace->malformed, "malformed record", "malformed records"}};
    if (lack[0]) {
        text_append(out, VERDICT_BYTES, "; functions are N/A: %s", lack);
        return;
    }
    if (!trace->present || trace->slow_ns <= 0)
        return;
    text_append(out, VERDICT_BYTES,
                "; functions are known for %.3g %% of the slow messages' %s on the server's cores",
                floor(1000 * trace->slow_traced_ns / trace->slow_ns) / 10,
                units_format_ns(trace->slow_ns, time, sizeof time));
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (losses[i].count == 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count(losses[i].count, count),
                    losses[i].count == 1 ? losses[i].one : losses[i].many);
        before = ", ";
    }
    if (before[0] == ',')
        text_append(out, VERDICT_BYTES, ")");
    double apart_ns = run_trace_apart_ns(trace);
    if (apart_ns > 0)
        text_append(
            out, VERDICT_BYTES,
            "; the trace's times are some %s %s the events', so that nothing shorter is explained",
            units_format_ns(apart_ns, time, sizeof time),
            trace->stamps.handoff.p50_ns < 0 ? "before" : "behind");
}

// Over UDP it is known where requests were lost.
static void verdict_append_datagrams(char *out, const struct datagram_losses *lost)
{
    const char *before = " (";
    char count[32];
    for (unsigned i = 0; i < DATAGRAM_LOSSES; i++) {
        if (lost->at[i] == 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count(lost->at[i], count),
                    datagram_loss_words((enum datagram_loss)i));
        before = "; ";
    }
    if (before[0] == ';')
        text_append(out, VERDICT_BYTES, ")");
}

const char *run_told_apart(const struct run_analysis *run, char *words, size_t bytes)
{
    const json_t *events = json_object_get(run->evidence.capture, "events"),
                 *framing = json_object_get(events, "framing");
    const char *protocol = json_string_value(json_object_get(framing, "protocol"));
    uint64_t framed = run->evidence.turns_framed, turns = run->lifetimes.scheduled - framed;
    char count[32], other[32];
    if (framed == 0)
        snprintf(words, bytes, "by turns%s%s", protocol ? ", none by its framing as " : "",
                 protocol ? protocol : "");
    else if (turns == 0)
        snprintf(words, bytes, "by %s framing", protocol ? protocol : "their");
    else
        snprintf(words, bytes, "by %s framing (%s) and by turns (%s)",
                 protocol ? protocol : "their", text_count(framed, count),
                 text_count(turns, other));
    if (run->evidence.turns_piecewise)
        text_append(words, bytes,
                    " (in %s of which the client wrote again before the answer; if it pipelines, "
                    "its requests count as one, which --framing mends)",
                    text_count(run->evidence.turns_piecewise, count));
    if (run->evidence.turns_waiting)
        text_append(words, bytes, " (without %s that asked to be kept waiting, as BLPOP does)",
                    text_count(run->evidence.turns_waiting, count));
    return words;
}

// What went wrong with the stamps that the client's kernel or NIC takes.
static void verdict_append_client_stamps(char *out, const json_t *load)
{
    static const struct {
        const char *key, *words, *words_of_one;
    } rows[] = {{"tx_stamps_missing", "of sends are missing", "of a send is missing"},
                {"rx_stamps_missing", "of replies are missing", "of a reply is missing"},
                {"tx_stamps_late", "came too late", "came too late"},
                {"tx_stamps_double", "came twice", "came twice"},
                {"tx_stamps_unknown", "are of no known send", "is of no known send"}};
    const char *before = "; of the client's stamps ";
    char count[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_int_t stamps = json_integer_value(json_object_get(load, rows[i].key));
        if (stamps <= 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count((uint64_t)stamps, count),
                    stamps == 1 ? rows[i].words_of_one : rows[i].words);
        before = ", ";
    }
}

// How many requests' lives are whole, and what became of the others.
static void verdict_append_requests(char *out, const struct run_analysis *run)
{
    char joined[32], scheduled[32], count[32], words[RUN_TRACE_WORDS];
    if (run->evidence.without_client)
        text_append(out, VERDICT_BYTES,
                    "The clients are not ours: latency is the server's own, from a request's "
                    "arrival to the last byte of its answer; requests are told apart %s. ",
                    run_told_apart(run, words, sizeof words));
    text_append(out, VERDICT_BYTES, "%s of %s requests joined",
                text_count(run->lifetimes.states[LIFETIME_WHOLE], joined),
                text_count(run->lifetimes.scheduled, scheduled));
    if (run->evidence.turns_unanswered)
        text_append(out, VERDICT_BYTES, ", %s more not answered by the end of the capture",
                    text_count(run->evidence.turns_unanswered, count));
    if (run->evidence.turns_unasked)
        text_append(out, VERDICT_BYTES, ", %s send%s that answer%s no request",
                    text_count(run->evidence.turns_unasked, count),
                    text_plural((double)run->evidence.turns_unasked),
                    run->evidence.turns_unasked == 1 ? "s" : "");
    uint64_t unanswered = run->lifetimes.scheduled - run->lifetimes.answered;
    if (unanswered)
        text_append(out, VERDICT_BYTES, ", %s never answered", text_count(unanswered, count));
    verdict_append_datagrams(out, &run->lifetimes.join.datagrams_lost);
    if (run->lifetimes.states[LIFETIME_WHOLE] < run->lifetimes.answered)
        verdict_append_not_joined(out, run);
    verdict_append_undivided(out, run);
    verdict_append_spared(out, run);
}

// What the capture says it dropped, what is missing though it says nothing of it, or that nothing
// is; and what time of the server's cores was not seen.
static void verdict_append_dropped(char *out, const struct run_analysis *run)
{
    char count[32], other[32], words[RUN_TRACE_WORDS], limits[RUN_LIMITS_WORDS];
    const struct join_counts *join = &run->lifetimes.join;
    const struct run_trace *trace = &run->evidence.trace;
    uint64_t dropped =
        run->evidence.dropped_events + run->evidence.dropped_calls + run->evidence.dropped_samples;
    uint64_t unseen =
        join->segments_unseen + join->handoffs_unseen + join->transmits_unseen + join->calls_unseen;
    uint64_t recovered = join->segments_recovered + join->handoffs_recovered;
    bool any_unseen = run->lifetimes.unseen.unrecorded_ns || run->lifetimes.unseen.lost_ns;
    bool unknown = run->evidence.missing.losses[0] != '\0';
    run_limits_words(run->evidence.capture, limits);
    if (dropped)
        text_append(out, VERDICT_BYTES, "; %s record%s dropped", text_count(dropped, count),
                    dropped == 1 ? " was" : "s were");
    else if (unseen && !run_trace_gives_stamps(trace))
        text_append(
            out, VERDICT_BYTES,
            "; no drop was reported, yet %s record%s of requests %s missing (%s stamp%s had "
            "otherwise)",
            text_count(unseen, count), text_plural((double)unseen), unseen == 1 ? "is" : "are",
            text_count(recovered, other), recovered == 1 ? " was" : "s were");
    else if (!unknown && !any_unseen && !limits[0] && !run_trace_lack(trace, words)[0])
        text_append(out, VERDICT_BYTES, "; %s was dropped",
                    run_trace_lost_any(trace) ? "no record" : "nothing");
    if (unknown)
        text_append(out, VERDICT_BYTES, "; what %sthe capture lost is not known: %s",
                    dropped || unseen ? "else " : "", run->evidence.missing.losses);
    if (limits[0])
        text_append(out, VERDICT_BYTES, "; %s", limits);
    uint64_t of_client = run->evidence.dropped_client_events;
    if (of_client)
        text_append(out, VERDICT_BYTES, "; %s record%s of the load's cores %s dropped",
                    text_count(of_client, count), text_plural((double)of_client),
                    text_were((double)of_client));
    verdict_append_unseen(out, &run->lifetimes.unseen,
                          !dropped && !unknown && !limits[0] &&
                              (!unseen || run_trace_gives_stamps(trace)));
}

// Stamps that are not what they could be: of another clock, of another source, out of order.
static void verdict_append_stamps(char *out, const struct run_analysis *run)
{
    char count[32], other[32], worst[32];
    const struct join_counts *join = &run->lifetimes.join;
    const struct run_trace *trace = &run->evidence.trace;
    verdict_append_client_stamps(out, run->evidence.load);
    uint64_t not_by_nic = join->without_nic_stamp + join->wrong_nic_stamps;
    if (not_by_nic)
        text_append(out, VERDICT_BYTES, "; %s M(n) stamp%s the kernel's, not the NIC's",
                    text_count(not_by_nic, count), not_by_nic == 1 ? " is" : "s are");
    if (run_trace_gives_stamps(trace))
        text_append(
            out, VERDICT_BYTES,
            "; M(n) and M(h) are from the processor's trace, which does not show them for %s of %s "
            "receive calls",
            text_count(trace->handoffs_unknown, count),
            text_count(trace->handoffs + trace->handoffs_unknown, other));
    if (join->disorder.violations)
        text_append(out, VERDICT_BYTES, "; %s stamp%s out of order, by up to %s",
                    text_count(join->disorder.violations, count),
                    text_plural((double)join->disorder.violations),
                    units_format_ns(join->disorder.worst_ns, worst, sizeof worst));
}

void verdict_append_evidence(char *out, const struct run_analysis *run)
{
    char count[32], other[32], bound[32], lack[RUN_HOPS_WORDS];
    verdict_append_requests(out, run);
    verdict_append_dropped(out, run);
    verdict_append_stamps(out, run);
    if (run->evidence.doubts.sockets)
        text_append(
            out, VERDICT_BYTES,
            "; on %s connections the kernel's events contradict the record of socket calls, "
            "of which %s were left out",
            text_count(run->evidence.doubts.sockets, count),
            text_count(run->evidence.doubts.calls, other));
    verdict_append_trace(out, &run->evidence.trace);
    if (run_hops_lack(&run->lifetimes.hops, lack)[0])
        text_append(out, VERDICT_BYTES, "; %s", lack);
    text_append(out, VERDICT_BYTES, ".");
    if (run->evidence.ends[0])
        text_append(out, VERDICT_BYTES, " %s", run->evidence.ends);
    if (run->lifetimes.join.hosts.both_ways)
        text_append(
            out, VERDICT_BYTES,
            " Client and server are different machines and their clocks are related within %s "
            "only: the network's time is given for both ways together.",
            units_format_ns(run->lifetimes.join.hosts.bound_p99_ns, bound, sizeof bound));
}
