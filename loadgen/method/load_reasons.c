// SPDX-License-Identifier: MIT
#include "loadgen/method/load_reasons.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "loadgen/method/logical_requests.h"
#include "loadgen/method/standstill.h"

// A stall this short at the very end affects latency, not rate: it must not fail a short load.
static const double rate_allowance_s = 0.05;
static const double share_tolerance = 0.01; // of requests that waited for a connection, or failed
static const double most_misses = 0.5;      // of reads: beyond it a cache is as good as empty
static const double busy_spin_fraction = 0.02; // a client that idles less has no CPU to spare
static const double core_share_least = 0.7;    // one that has less shares its core with others

enum { TEXT_ENDED = 2 * TEXT_NUMBER_BYTES + 40 };

static double seconds_into(const struct engine_result *result, uint64_t tsc)
{
    return tsc ? (double)(int64_t)(tsc - result->start_tsc) / result->tsc_hz : 0;
}

// Whether nobody listened for a while, or all connections broke together and were opened again,
// once. A server that closes them now and then, as nginx does when it has no more than
// `worker_connections`, is there all along, and so is one whose replies have them closed, or that
// closes each after so many requests, or whose clients do: new ones may be dropped on their way to
// it.
static bool is_restarted(const struct engine_result *result)
{
    enum { TOGETHER_S = 1 };
    const struct connection_counts *counts = &result->counts;
    const uint64_t at_once = result->connections_at_once;
    double over_s = seconds_into(result, counts->last_reconnect_tsc) -
                    seconds_into(result, counts->first_end_tsc);
    uint64_t closed_here = 0;
    for (unsigned kind = 0; kind < REPLY_KINDS; kind++)
        closed_here += reply_is_broken(kind) ? counts->replies[kind] : 0;
    const bool routine = counts->broken == 0 &&
                         (counts->ended >= 2 * at_once || counts->ended == counts->sessions.ended);
    // Of one that goes all connections end; who drops a few new ones serves the others.
    const bool away = counts->reconnects_failed > counts->portless && !routine &&
                      counts->ended - counts->sessions.ended >= at_once;
    return away || (counts->reconnects && counts->broken >= at_once &&
                    counts->broken < 2 * at_once && !closed_here && over_s < TOGETHER_S);
}

// "4 of 16 connections"; where some ended more than once "40 times one of 16 connections".
static const char *ended_text(const struct engine_result *result, char text[TEXT_ENDED])
{
    const bool often = result->counts.ended > result->connections_at_once;
    snprintf(text, TEXT_ENDED, "%s %s %s connections", TEXT_COUNT(result->counts.ended),
             often ? "times one of" : "of", TEXT_COUNT(result->connections_at_once));
    return text;
}

// Connections that the server closes when they have nothing left to answer (HTTP's
// keepalive_requests) are no fault, as long as they can be opened again.
static void judge_connections(const struct engine_result *result, struct load_summary *summary)
{
    const struct connection_counts *counts = &result->counts;
    if (!counts->broken && !counts->reconnects_failed && !counts->given_up)
        return;
    const bool all = is_restarted(result), back = counts->ended <= counts->reconnects;
    const bool one_node = result->nodes > 1 && counts->broken && !counts->broken_elsewhere;
    const double first_end_s = seconds_into(result, counts->first_end_tsc);
    char node[100], given_up[80] = "", ended[TEXT_ENDED], opened[100] = "none opened again (";
    if (counts->given_up)
        snprintf(given_up, sizeof given_up, ", %s given up", TEXT_COUNT(counts->given_up));
    if (counts->reconnects)
        snprintf(opened, sizeof opened, "%s opened again (the last at %s, ",
                 TEXT_COUNT(counts->reconnects),
                 TEXT_INSTANT(1e9 * seconds_into(result, counts->last_reconnect_tsc)));
    snprintf(node, sizeof node, "%s %s",
             back ? "connections broke at one node," : "a node was lost,", counts->broken_at);
    load_summary_add_reason(
        summary,
        all              ? DOUBT_RESTARTED
        : counts->broken ? DOUBT_DISCONNECTED
                         : DOUBT_UNOPENED,
        "%s: %s ended from %s on, %s%s attempt%s failed%s%s)%s, %s request%s lost on them%s%s",
        all && back      ? "server restarted midway"
        : all            ? "server went away midway"
        : one_node       ? node
        : counts->broken ? "connections broke"
                         : "connections could not be opened again at once",
        ended_text(result, ended),
        first_end_s < 0 ? "before the begin" : TEXT_INSTANT(1e9 * first_end_s), opened,
        TEXT_COUNT(counts->reconnects_failed), text_plural((double)counts->reconnects_failed),
        counts->first_failure.kind ? ": " : "", counts->first_failure.text, given_up,
        TEXT_COUNT(summary->lost), text_plural((double)summary->lost),
        counts->broken ? "; the first: " : "", counts->broken ? counts->first_break.text : "");
    if (counts->portless)
        load_summary_add_reason(summary, DOUBT_PORTLESS,
                                "no local port was left for %s attempts to open a connection again",
                                TEXT_COUNT(counts->portless));
    if (counts->first_refusal.kind)
        load_summary_add_reason(summary, DOUBT_UNOPENED,
                                "a connection could not be opened again: %s",
                                counts->first_refusal.text);
}

static void judge_nodes(const struct engine_result *result, struct load_summary *summary)
{
    const struct redirection_counts *counts = &result->counts.redirections;
    const struct timed_count *failovers = &counts->failovers;
    const uint64_t unreachable = counts->unreachable;
    const bool once = failovers->count == 1;
    char times[40] = "";
    if (!once)
        snprintf(times, sizeof times, " %s times", TEXT_COUNT(failovers->count));
    if (failovers->count)
        load_summary_add_reason(
            summary, DOUBT_FAILED_OVER,
            "another master took over%s: %s%s after the begin, and %s%s passed until it answered; "
            "%s connection%s to it %s opened",
            times, once ? "" : "first ", TEXT_INSTANT(1e9 * engine_result_first_failover_s(result)),
            once ? "" : "at most ", TEXT_NS((double)failovers->max_ns),
            TEXT_COUNT(counts->connections), text_plural((double)counts->connections),
            text_were((double)counts->connections));
    if (unreachable)
        load_summary_add_reason(summary, DOUBT_DISCONNECTED,
                                "%s requests waited in vain for a connection to the node that has "
                                "their key (%s nodes are known)",
                                TEXT_COUNT(unreachable), TEXT_COUNT(result->nodes));
}

// Where datagrams were lost, as far as a client can know it: a capture of the server's machine
// knows the rest. Those for which it had waited to its end are among them.
static void datagrams_lost_words(const struct connection_counts *counts, uint64_t timed_out,
                                 char *out, size_t bytes)
{
    const uint64_t unanswered = counts->lost[LOSS_UNANSWERED] + timed_out,
                   known = counts->datagrams_late + counts->datagrams_overrun;
    if (counts->datagrams_late)
        text_append(out, bytes, "; %s replies came too late", TEXT_COUNT(counts->datagrams_late));
    if (counts->datagrams_overrun)
        text_append(out, bytes, "; this client's sockets had no room for %s datagrams",
                    TEXT_COUNT(counts->datagrams_overrun));
    if (unanswered > known)
        text_append(out, bytes, "; %s on their way or by the server, which is not known here",
                    TEXT_COUNT(unanswered - known));
}

// What a server of HTTP/2 held requests back with until the end.
static void streams_held_words(const struct engine_result *result, char *out, size_t bytes)
{
    const struct connection_counts *counts = &result->counts;
    if (counts->windows_shut)
        text_append(out, bytes,
                    "; on %s of %s connections the server's HTTP/2 window had no room for a body",
                    TEXT_COUNT(counts->windows_shut), TEXT_COUNT(result->connections_at_once));
    if (counts->streams_spent)
        text_append(out, bytes,
                    "; on %s of %s connections the server allowed no further stream of HTTP/2",
                    TEXT_COUNT(counts->streams_spent), TEXT_COUNT(result->connections_at_once));
    if (counts->ends_awaited)
        text_append(
            out, bytes,
            "; on %s of %s connections the server had said that it closes, and left a reply "
            "unfinished",
            TEXT_COUNT(counts->ends_awaited), TEXT_COUNT(result->connections_at_once));
}

static void judge_end(const struct engine_result *result, struct load_summary *summary)
{
    if (result->end == ENGINE_INTERRUPTED)
        load_summary_add_reason(summary, DOUBT_INTERRUPTED, "interrupted after %s",
                                TEXT_NS(1e9 * summary->duration_s));
    judge_connections(result, summary);
    judge_nodes(result, summary);
    if (result->counts.datagrams_refused)
        load_summary_add_reason(summary, summary->answered ? DOUBT_RESTARTED : DOUBT_ABSENT,
                                "server %s: nobody listened, and datagrams were refused %s times",
                                summary->answered ? "restarted midway" : "not there",
                                TEXT_COUNT(result->counts.datagrams_refused));
    uint64_t unanswered = summary->unsent + summary->timed_out + summary->lost;
    if (unanswered == 0)
        return;
    char where[300] = "";
    unsigned infinite = 0;
    while (infinite < SUMMARY_QUANTILES && !isinf(summary->latency.us[infinite]))
        infinite++;
    if (result->counts.lost[LOSS_UNANSWERED])
        datagrams_lost_words(&result->counts, summary->timed_out, where, sizeof where);
    streams_held_words(result, where, sizeof where);
    load_summary_add_reason(summary, DOUBT_UNANSWERED,
                            "%s of %s requests %s not answered (%s never sent, %s timed out, %s "
                            "lost%s): %s%s `never`",
                            TEXT_COUNT(unanswered), TEXT_COUNT(summary->scheduled),
                            text_were((double)unanswered), TEXT_COUNT(summary->unsent),
                            TEXT_COUNT(summary->timed_out), TEXT_COUNT(summary->lost), where,
                            infinite < SUMMARY_QUANTILES ? summary_quantile_names[infinite] : "max",
                            infinite < SUMMARY_QUANTILES - 1 ? " and above are" : " is");
}

// Where nearly all were answered soon after they were due the server kept up: a few at the very end
// that took longer, as one that was lost and sent again, are no lower rate.
static bool rate_is_reached(const struct load_summary *summary)
{
    enum { P99 = 2 }; // of summary_quantiles: all but summary_rate_tolerance
    if (summary->latency.us[P99] <= rate_allowance_s * 1e6)
        return true;
    double answered = (double)summary->logical_answered;
    double over_s = fmax(summary->duration_s, answered / summary->achieved_rate - rate_allowance_s);
    return answered >= summary->offered_rate * over_s * (1 - summary_rate_tolerance);
}

static const char cluster_helps[] = " (a cluster: --cluster asks each node for its keys)";

// One node of a cluster was asked for all keys.
static bool is_of_cluster(const struct engine_result *result)
{
    static const char moved[] = "\"-MOVED ";
    return !result->nodes && strncmp(result->counts.first_fault.text, moved, sizeof moved - 1) == 0;
}

// Replies of a kind that answers another operation say more than the values beside them: a reply
// that is missing or came twice has all behind it on its connection answer another request.
static void judge_errors(const struct connection_counts *counts, struct load_summary *summary,
                         double few, const char *first)
{
    const bool mixed = (double)counts->mismatched > few;
    const uint64_t wrong = mixed ? 0 : counts->wrong_values, all = summary->error_replies,
                   errors = all > wrong ? all - wrong : 0;
    if ((double)wrong > few)
        load_summary_add_reason(
            summary, DOUBT_WRONG_VALUES,
            "%s of %s replies %s not the value that was asked for%s; is the dataset another "
            "workload's? --prepare stores this one's",
            TEXT_COUNT(wrong), TEXT_COUNT(summary->answered), text_were((double)wrong), first);
    if ((double)errors <= few)
        return;
    if (mixed)
        load_summary_add_reason(
            summary, DOUBT_ERRORS,
            "%s of %s replies were errors, %s of them of a kind that cannot answer the request: "
            "does the server leave one out, or answer twice?%s",
            TEXT_COUNT(errors), TEXT_COUNT(summary->answered), TEXT_COUNT(counts->mismatched),
            first);
    else
        load_summary_add_reason(summary, DOUBT_ERRORS, "%s of %s replies %s%s%s",
                                TEXT_COUNT(errors), TEXT_COUNT(summary->answered),
                                text_were((double)errors), errors == 1 ? " an error" : " errors",
                                first);
}

// Whether the replies are those that the requests asked for.
static void judge_replies(const struct engine_result *result, struct load_summary *summary)
{
    const struct connection_counts *counts = &result->counts;
    const double few = share_tolerance * (double)summary->answered;
    const uint64_t reads = summary->misses + counts->replies[REPLY_VALUE];
    const struct multiget_counts *multigets = &counts->multigets;
    char first[REPLY_SAID_BYTES + 80] = "";
    if (counts->first_fault.kind)
        snprintf(first, sizeof first, "; the first: %.*s%s", REPLY_SAID_BYTES + 2,
                 counts->first_fault.text, is_of_cluster(result) ? cluster_helps : "");
    // Who reads through asked for misses.
    if (!counts->fills.begun && (double)summary->misses > most_misses * (double)reads)
        load_summary_add_reason(summary, DOUBT_MISSES,
                                "%s of %s reads found nothing, and that is what was measured; "
                                "store the dataset first (--prepare), or ask a web server for what "
                                "it has",
                                TEXT_COUNT(summary->misses), TEXT_COUNT(reads));
    else if ((double)multigets->missing > most_misses * (double)multigets->keys)
        load_summary_add_reason(summary, DOUBT_MISSES,
                                "%s of the %s keys of multigets %s not there, and that is "
                                "what was measured; store the dataset first (--prepare)",
                                TEXT_COUNT(multigets->missing), TEXT_COUNT(multigets->keys),
                                text_were((double)multigets->missing));
    const uint64_t unfilled = counts->fills.refused + counts->fills.failed;
    if ((double)unfilled > share_tolerance * (double)counts->fills.begun)
        load_summary_add_reason(summary, DOUBT_ERRORS,
                                "%s of %s sets after a miss %s not done, so that the cache "
                                "stayed empty%s",
                                TEXT_COUNT(unfilled), TEXT_COUNT(counts->fills.begun),
                                text_were((double)unfilled), first);
    judge_errors(counts, summary, few, first);
    // Where replies come in any order its request is lost alone, else its connection broke.
    const uint64_t malformed = counts->broken ? 0 : counts->lost[LOSS_MALFORMED];
    if ((double)malformed > few)
        load_summary_add_reason(
            summary, DOUBT_ERRORS,
            "%s repl%s, beside %s other%s, %s none that the protocol allows: their requests are "
            "lost%s",
            TEXT_COUNT(malformed), malformed == 1 ? "y" : "ies",
            summary->answered ? TEXT_COUNT(summary->answered) : "no",
            text_plural((double)summary->answered), text_were((double)malformed), first);
    // Nobody can tell which of two replies is the surplus one: those before may have answered
    // others.
    if ((double)counts->unexpected > few)
        load_summary_add_reason(
            summary, DOUBT_SURPLUS,
            "%s replies came to no request, beside %s that did: which of them answers which "
            "request is not certain%s",
            TEXT_COUNT(counts->unexpected), TEXT_COUNT(summary->answered), first);
}

// In bounded memory: requests that this client itself made late. doubt: of the load, where nothing
// else is known.
static void judge_memory(const struct engine_result *result, enum load_doubt doubt,
                         struct load_summary *summary)
{
    const struct sample_totals *totals = result->totals;
    const double few = share_tolerance * (double)summary->scheduled;
    if (totals && (double)totals->late_full > few)
        load_summary_add_reason(
            summary, doubt == DOUBT_OVERLOADED ? DOUBT_MEMORY : doubt,
            "%s of %s requests had to wait for room in this client's memory (--memory), which "
            "was full of requests that had been open for long",
            TEXT_COUNT(totals->late_full), TEXT_COUNT(summary->scheduled));
    if (totals && (double)totals->late_drawn > few)
        load_summary_add_reason(
            summary, DOUBT_STARVED,
            "%s of %s requests %s drawn late: the thread that draws them, and takes their "
            "samples, did not keep up; it needs a part of a core beside the load threads'",
            TEXT_COUNT(totals->late_drawn), TEXT_COUNT(summary->scheduled),
            text_were((double)totals->late_drawn));
}

// That the client is at its end, what it can do, and what helps. What the kernel's stamps say of
// the server holds nevertheless: they wait for nobody.
static void client_at_its_end(const struct engine_result *result,
                              const struct load_summary *summary, char *out, size_t bytes)
{
    const double us = summary->cpu_us_per_request, *network = summary->network.us;
    const bool stamped = summary->network.count && isfinite(network[0]);
    char can[80] = "", server[80] = "";
    if (us > 0)
        snprintf(can, sizeof can, ", at %s of CPU a request no more than about %s/s", TEXT_US(us),
                 TEXT_RATE(1e6 / us * result->thread_count));
    if (stamped)
        snprintf(server, sizeof server, "; by the kernel's stamps the server's p50 is %s",
                 TEXT_US(network[0]));
    snprintf(out, bytes,
             "this client ran out of CPU%s (p99 of how late requests left: %s): more --threads on "
             "cores of their own, agents%s%s",
             can, TEXT_US(summary->lateness_p99_us),
             result->kernel_stamps && !result->stamps_every ? ", or --stamps sw:1/16" : "", server);
}

// Whether so large a share of the requests may be late because something lasted so long: those that
// were due meanwhile, and about as many until they have caught up.
static bool explains(double lasted_s, const struct load_summary *summary, double share)
{
    return 2 * lasted_s >= share * summary->duration_s;
}

// How much was in flight on connections none of which had room. Where nothing else bounds it, it is
// the server that takes no more: it reads no further, allows so many streams, or closes
// connections.
static void full_words(const struct engine_result *result, char *out, size_t bytes)
{
    const struct connection_counts *counts = &result->counts;
    const uint64_t closed = counts->ended - counts->broken - counts->sessions.ended;
    if (!result->depth_is_cap || engine_result_hit_cap(result))
        snprintf(out, bytes, "%s in flight on each%s", TEXT_COUNT(result->depth),
                 result->depth_is_cap ? ", the in-flight cap" : "");
    else if (closed)
        snprintf(
            out, bytes, "at most %s in flight on all of them, which the server closed %s time%s",
            TEXT_COUNT(counts->in_flight_max), TEXT_COUNT(closed), text_plural((double)closed));
    else
        snprintf(out, bytes, "at most %s in flight on all of them, since the server took no more",
                 TEXT_COUNT(counts->in_flight_max));
}

static void judge_load(const struct engine_result *result, struct load_summary *summary)
{
    char whose[300] = "the server did not keep up", stood[120];
    const double stood_s = (double)result->standstill.lasted_tsc / result->tsc_hz;
    enum load_doubt doubt = DOUBT_OVERLOADED;
    const bool reached = rate_is_reached(summary);
    const double missing = reached ? 0 : 1 - summary->achieved_rate / summary->offered_rate;
    const double delayed = (double)result->delayed_by_depth / (double)summary->scheduled;
    if (summary->sent && !summary->answered) { // after the load there was time for all replies
        doubt = DOUBT_SILENT;
        snprintf(whose, sizeof whose, "the server answered none of %s that were sent",
                 TEXT_COUNT(summary->sent));
    } else if (summary->core_share < core_share_least) {
        doubt = DOUBT_STARVED;
        snprintf(whose, sizeof whose, "this client had its core for only %d %% of the time",
                 text_whole_percent(summary->core_share, 1));
    } else if (explains(stood_s, summary, fmax(missing, delayed)) &&
               standstill_words(result, stood, sizeof stood)) {
        doubt = DOUBT_STARVED;
        snprintf(whose, sizeof whose, "this client %s", stood);
    } else if (summary->spin_fraction < busy_spin_fraction) {
        doubt = DOUBT_SPENT;
        client_at_its_end(result, summary, whose, sizeof whose);
    } else if (summary->silences.count &&
               explains(summary->silences.lasted_s, summary, fmax(missing, delayed))) {
        doubt = DOUBT_SILENT;
        silences_words(&summary->silences, whose, sizeof whose);
    }
    // Who stood still for a while, this client or the server, a rate that was reached does not
    // tell.
    const bool known = !reached || doubt != DOUBT_OVERLOADED;
    if (result->end != ENGINE_INTERRUPTED && result->end != ENGINE_BROKEN && !reached)
        load_summary_add_reason(summary, doubt,
                                "rate not reached: %s of %s %srequests/s were answered; %s",
                                TEXT_RATE(summary->achieved_rate), TEXT_RATE(summary->offered_rate),
                                fanout_of(result) > 1 ? "logical " : "", whose);
    if (engine_result_hit_cap(result) || delayed > share_tolerance) {
        char full[160];
        full_words(result, full, sizeof full);
        load_summary_add_reason(
            summary, doubt == DOUBT_OVERLOADED ? DOUBT_CLOSED : doubt,
            "%s of %s requests had to wait for a connection with room (%s connections, %s): the "
            "load was closed-loop%s%s",
            TEXT_COUNT(result->delayed_by_depth), TEXT_COUNT(summary->scheduled),
            TEXT_COUNT(result->connections_at_once), full, known ? "; " : "", known ? whose : "");
    }
    judge_memory(result, doubt, summary);
    judge_replies(result, summary);
}

// A closed loop sends whenever it can: then it never could.
static void judge_nothing_sent(const struct engine_result *result, struct load_summary *summary)
{
    const struct connection_counts *counts = &result->counts;
    const char *why = "no connection had room for one, or no user had thought to the end";
    char held[300] = "";
    enum load_doubt doubt = DOUBT_TOO_SHORT;
    streams_held_words(result, held, sizeof held);
    if (counts->ended || counts->given_up) {
        doubt = DOUBT_DISCONNECTED;
        why = "no connection stayed open for one";
    } else if (counts->unexpected) {
        doubt = DOUBT_SURPLUS;
        why = "this client had its hands full with replies to nothing";
    } else if (summary->core_share < core_share_least ||
               (double)result->late_tsc >= summary->duration_s * result->tsc_hz) {
        doubt = DOUBT_STARVED;
        why = "this client had no core for so long";
    }
    summary->hindered = doubt != DOUBT_TOO_SHORT;
    load_summary_add_reason(summary, doubt, "no request was sent within %s: %s%s",
                            TEXT_NS(1e9 * summary->duration_s), why, held);
}

static void find_reasons(const struct engine_result *result, struct load_summary *summary)
{
    if (summary->scheduled == 0 && result->closed_loop)
        judge_nothing_sent(result, summary);
    else if (summary->scheduled == 0)
        load_summary_add_reason(summary, DOUBT_TOO_SHORT,
                                "nothing was scheduled: the rate is too low for so short a run");
    if (result->requests_spent)
        load_summary_add_reason(summary, DOUBT_MEMORY,
                                "memory for samples was spent after %s requests, before the time",
                                TEXT_COUNT(summary->scheduled));
    judge_end(result, summary);
    judge_load(result, summary);
}

int load_summarise(const struct engine_result *result, uint64_t duration_ns,
                   struct load_summary *summary, struct error *err)
{
    struct load_latencies latencies;
    int status = load_summarise_keeping(result, duration_ns, summary, &latencies, err);
    if (status == 0)
        free(latencies.us);
    return status;
}

int load_summarise_keeping(const struct engine_result *result, uint64_t duration_ns,
                           struct load_summary *summary, struct load_latencies *kept,
                           struct error *err)
{
    int status = load_summary_take(result, duration_ns, summary, kept, err);
    if (status == 0)
        status = silences_find(result, summary->uncorrected.us[0], &summary->silences, err);
    if (status < 0)
        return status;
    find_reasons(result, summary);
    return 0;
}
