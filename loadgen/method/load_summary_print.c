// SPDX-License-Identifier: MIT
//
// A load's figures for people.
#include <math.h>

#include "base/text.h"
#include "base/units.h"
#include "loadgen/method/load_bounds.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/logical_requests.h"

typedef unsigned long long count_type; // what printf's %llu takes

static void print_fills(const struct fill_counts *fills, FILE *out)
{
    if (!fills->begun)
        return;
    fprintf(out, "  fills      %llu set%s after a miss: %llu stored", (count_type)fills->begun,
            text_plural((double)fills->begun), (count_type)fills->stored.count);
    if (fills->stored.count)
        fprintf(out, " in %s each, %s at most",
                TEXT_NS((double)fills->stored.sum_ns / (double)fills->stored.count),
                TEXT_NS((double)fills->stored.max_ns));
    fprintf(out, ", %llu refused, %llu failed, %llu lost, %llu unfinished; %llu left out\n",
            (count_type)fills->refused, (count_type)fills->failed, (count_type)fills->lost,
            (count_type)fill_counts_unfinished(fills), (count_type)fills->left_out);
}

static void print_multigets(const struct multiget_counts *multigets, FILE *out)
{
    if (multigets->answered)
        fprintf(out, "  multigets  %llu answered, of %llu keys; %llu of the keys %s not there\n",
                (count_type)multigets->answered, (count_type)multigets->keys,
                (count_type)multigets->missing, text_were((double)multigets->missing));
}

static void print_batches(const struct batch_counts *batches, const struct load_facts *facts,
                          FILE *out)
{
    const struct timed_count *waited = &batches->waited;
    if (!(facts->batch_us > 0) || !batches->calls)
        return;
    fprintf(out,
            "  batches    of what is due within %s: %.1f requests a send call, %llu at most; "
            "each waited %s\n             for others on average, %s at most (in all "
            "latencies, and allowed for in the arrivals)\n",
            TEXT_US(facts->batch_us), (double)waited->count / (double)batches->calls,
            (count_type)batches->largest, TEXT_NS((double)waited->sum_ns / (double)waited->count),
            TEXT_NS((double)waited->max_ns));
}

static void print_nodes(const struct engine_result *result, FILE *out)
{
    const struct redirection_counts *counts = &result->counts.redirections;
    if (!result->nodes)
        return;
    fprintf(out,
            "  nodes      %u; %llu request%s moved, %llu asked elsewhere once, %llu tried later, "
            "%llu given up, %llu out of reach; the map read again %llu time%s\n",
            result->nodes, (count_type)counts->moved, text_plural((double)counts->moved),
            (count_type)counts->asked, (count_type)counts->retried, (count_type)counts->given_up,
            (count_type)counts->unreachable, (count_type)counts->map_reads,
            text_plural((double)counts->map_reads));
    if (counts->failovers.count)
        fprintf(out,
                "  failovers  %llu, the first %s after the start; %s at most without a "
                "master\n",
                (count_type)counts->failovers.count,
                TEXT_NS(1e9 * engine_result_first_failover_s(result)),
                TEXT_NS((double)counts->failovers.max_ns));
}

static void print_handshakes(const struct timed_count *counts, const char *what, FILE *out)
{
    if (counts->count)
        fprintf(out, "; %llu %s, %s each, %s at most", (count_type)counts->count, what,
                TEXT_NS((double)counts->sum_ns / (double)counts->count),
                TEXT_NS((double)counts->max_ns));
}

static void print_us(FILE *out, double us)
{
    fprintf(out, " %10s", TEXT_US(us));
}

static void print_row(FILE *out, const char *name, const struct load_percentiles *percentiles)
{
    fprintf(out, "  %-26s", name);
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        print_us(out, percentiles->us[i]);
    fputc('\n', out);
}

static void print_intervals(FILE *out, const struct load_percentiles *percentiles)
{
    for (int high = 0; high < 2; high++) {
        fprintf(out, "  %-26s", high ? "  95 % interval, to" : "  95 % interval, from");
        for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
            const struct quantile_interval *interval = &percentiles->interval[i];
            print_us(out, !interval->known ? NAN : high ? interval->high : interval->low);
        }
        fputc('\n', out);
    }
}

// In plain words first, then what helps, then each reason with its figures.
static void print_verdict(const struct load_summary *summary, FILE *out)
{
    enum load_doubt first = LOAD_DOUBTS;
    for (unsigned i = 0; i < summary->reason_count; i++)
        first = summary->doubts[i] < first ? summary->doubts[i] : first;
    const struct load_doubt_words known = load_doubt_words(first);
    fprintf(out, "verdict: %s%s%s\n", summary->ok ? "ok" : "n/a", known.words ? ": " : "",
            known.words ? known.words : "");
    if (known.helps)
        fprintf(out, "  -> %s\n", known.helps);
    for (unsigned i = 0; i < summary->reason_count; i++)
        fprintf(out, "  - %s\n", summary->reasons[i]);
}

static void print_asked(const struct load_summary *summary, const struct engine_result *result,
                        const struct load_facts *facts, FILE *out)
{
    const uint32_t fanout = fanout_of(result);
    fprintf(out, "%s: %s at ", facts->server, facts->protocol->name);
    if (result->closed_loop)
        fprintf(out, "as many requests/s as are answered (closed loop");
    else if (fanout > 1)
        fprintf(out, "%s logical request%s/s of %u requests each (%s arrivals",
                TEXT_RATE(facts->rate), text_plural(facts->rate), fanout, facts->arrivals);
    else
        fprintf(out, "%s request%s/s (%s arrivals", TEXT_RATE(facts->rate),
                text_plural(facts->rate), facts->arrivals);
    fprintf(out, ", seed %llu) for %s on %u connection%s\n", (count_type)facts->seed,
            TEXT_NS(1e9 * summary->duration_s), result->connections_at_once,
            text_plural(result->connections_at_once));
}

// What a closed loop's rate and latency mean.
static void print_closed_loop(const struct engine_result *result, const struct load_facts *facts,
                              FILE *out)
{
    const char *plural = text_plural(result->connections_at_once);
    const char *bring = result->connections_at_once == 1 ? "brings" : "bring";
    if (result->closed_loop && facts->think)
        fprintf(out,
                "  closed loop of users who think (%s), as asked for: the rate is what %u "
                "connection%s with %u in\n  flight on each %s about, fewer while the server is "
                "slow, and the latency that of\n  requests which wait for replies\n",
                facts->think, result->connections_at_once, plural, result->depth, bring);
    else if (result->closed_loop)
        fprintf(out,
                "  closed loop, as asked for: the rate is the most that %u connection%s with %u in "
                "flight on each\n  %s about, and the latency that of requests which wait for "
                "replies\n",
                result->connections_at_once, plural, result->depth, bring);
}

static void print_latencies(const struct load_summary *summary, bool logical, FILE *out)
{
    fprintf(out, "\n  %-26s", "");
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        fprintf(out, " %10s", summary_quantile_names[i]);
    fputc('\n', out);
    print_row(out, logical ? "logical (from intended)" : "latency (from intended)",
              &summary->latency);
    print_intervals(out, &summary->latency);
    print_row(out, logical ? "logical (from first send)" : "uncorrected (from send)",
              &summary->uncorrected);
    if (logical)
        print_row(out, "each request by itself", &summary->each);
    if (summary->network.count)
        print_row(out, "network (RX - TX stamp)", &summary->network);
}

static void print_requests(const struct load_summary *summary, const struct engine_result *result,
                           FILE *out)
{
    char offered[TEXT_NUMBER_BYTES], achieved[TEXT_NUMBER_BYTES];
    const uint64_t unexpected = result->counts.unexpected;
    const uint32_t fanout = fanout_of(result);
    fprintf(out, "\n  rate       offered %s/s, achieved %s/s",
            text_rate(summary->offered_rate, offered), text_rate(summary->achieved_rate, achieved));
    if (fanout > 1)
        fprintf(out,
                " (logical requests, of %u requests each: %llu, of which %llu had all their "
                "replies)",
                fanout, (count_type)summary->logical_scheduled,
                (count_type)summary->logical_answered);
    fprintf(out,
            "\n  requests   %llu scheduled, %llu sent, %llu answered (%llu miss%s, %llu error%s), "
            "%llu unsent, %llu timed out, %llu lost",
            (count_type)summary->scheduled, (count_type)summary->sent,
            (count_type)summary->answered, (count_type)summary->misses,
            summary->misses == 1 ? "" : "es", (count_type)summary->error_replies,
            text_plural((double)summary->error_replies), (count_type)summary->unsent,
            (count_type)summary->timed_out, (count_type)summary->lost);
    if (unexpected)
        fprintf(out, "; %llu repl%s to no request", (count_type)unexpected,
                unexpected == 1 ? "y" : "ies");
    fputc('\n', out);
}

static void print_connections(const struct connection_counts *counts, FILE *out)
{
    if (counts->ended)
        fprintf(
            out,
            "  ends       %llu connection%s ended, %llu opened again, %llu attempt%s failed, %llu "
            "given up; %llu request%s moved, %llu repeated\n",
            (count_type)counts->ended, text_plural((double)counts->ended),
            (count_type)counts->reconnects, (count_type)counts->reconnects_failed,
            text_plural((double)counts->reconnects_failed), (count_type)counts->given_up,
            (count_type)counts->moved, text_plural((double)counts->moved),
            (count_type)counts->repeated);
}

static void print_tls(const struct connection_counts *counts, FILE *out)
{
    if (!counts->tls_suite[0])
        return;
    fprintf(out, "  tls        %s", counts->tls_suite);
    print_handshakes(&counts->handshakes, "handshakes", out);
    print_handshakes(&counts->resumed, "resumed", out);
    fputc('\n', out);
}

// How well the client itself kept up.
static void print_client(const struct load_summary *summary, const struct engine_result *result,
                         FILE *out)
{
    fprintf(out, "  in flight  at most %llu; %llu request%s waited for a connection with room",
            (count_type)result->counts.in_flight_max, (count_type)result->delayed_by_depth,
            text_plural((double)result->delayed_by_depth));
    fprintf(out, "\n  lateness   p50 %s, p99 %s", TEXT_US(summary->lateness_p50_us),
            TEXT_US(summary->lateness_p99_us));
    if (CPU_COUNT(&result->cores) > 1) {
        char cores[200];
        fprintf(out, "\n  threads    %u, one on each of the cores %s", result->thread_count,
                units_format_cores(&result->cores, cores, sizeof cores));
    }
    fprintf(out, "\n  client     %s of CPU a request, %s of the time idle (spinning)\n",
            TEXT_US(summary->cpu_us_per_request), TEXT_SHARE(summary->spin_fraction, 1));
}

static void print_stamps(const struct load_summary *summary, const struct engine_result *result,
                         FILE *out)
{
    const struct connection_counts *counts = &result->counts;
    if (!result->kernel_stamps) {
        fprintf(out, "  stamps     by this program only%s%s\n", result->stamps_why.kind ? ": " : "",
                result->stamps_why.text);
        return;
    }
    fprintf(out,
            "  stamps     %llu by the NIC, %llu by the kernel, %llu by this program; TX missing "
            "%llu, late %llu, double %llu, unknown %llu, RX missing %llu, coalesced %llu\n",
            (count_type)summary->stamps_hardware, (count_type)summary->stamps_software,
            (count_type)summary->stamps_user, (count_type)result->stamps_missing,
            (count_type)counts->stamps_late, (count_type)counts->stamps_double,
            (count_type)counts->stamps_unknown, (count_type)counts->rx_missing,
            (count_type)counts->rx_coalesced);
    if (result->thinned_tsc)
        fprintf(
            out,
            "             from %s on TX stamps of one send call in %u only, drawn by lot: "
            "the client had no time for more (--stamps sw: all, whatever they cost)\n",
            TEXT_INSTANT(1e9 * (double)(result->thinned_tsc - result->start_tsc) / result->tsc_hz),
            result->stamps_every);
    else if (result->stamps_every)
        fprintf(out, "             TX stamps of one send call in %u, drawn by lot\n",
                result->stamps_every);
}

void load_summary_print(const struct load_summary *summary, const struct engine_result *result,
                        const struct load_facts *facts, FILE *out)
{
    const struct connection_counts *counts = &result->counts;
    print_asked(summary, result, facts, out);
    print_verdict(summary, out);
    if (facts->warning && facts->warning[0])
        fprintf(out, "  - %s\n", facts->warning);
    print_closed_loop(result, facts, out);
    print_latencies(summary, fanout_of(result) > 1, out);
    print_requests(summary, result, out);
    print_connections(counts, out);
    print_nodes(result, out);
    print_fills(&counts->fills, out);
    print_multigets(&counts->multigets, out);
    print_batches(&counts->batches, facts, out);
    print_tls(counts, out);
    print_client(summary, result, out);
    print_stamps(summary, result, out);
    load_bounds_print(result, out);
}
