// SPDX-License-Identifier: MIT
//
// A load's figures for people.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "loadgen/method/load_bounds.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/logical_requests.h"
#include "loadgen/method/standstill.h"

typedef unsigned long long count_type; // what printf's %llu takes

static void print_fills(const struct fill_counts *fills, FILE *out)
{
    if (!fills->begun)
        return;
    fprintf(out, "  fills      %s set%s after a miss: %s stored", TEXT_COUNT(fills->begun),
            text_plural((double)fills->begun), TEXT_COUNT(fills->stored.count));
    if (fills->stored.count)
        fprintf(out, " in %s each, %s at most",
                TEXT_NS((double)fills->stored.sum_ns / (double)fills->stored.count),
                TEXT_NS((double)fills->stored.max_ns));
    fprintf(out, ", %s refused, %s failed, %s lost, %s unfinished; %s left out\n",
            TEXT_COUNT(fills->refused), TEXT_COUNT(fills->failed), TEXT_COUNT(fills->lost),
            TEXT_COUNT(fill_counts_unfinished(fills)), TEXT_COUNT(fills->left_out));
}

static void print_multigets(const struct multiget_counts *multigets, FILE *out)
{
    if (multigets->answered)
        fprintf(out, "  multigets  %s answered, of %s keys; %s of the keys %s not there\n",
                TEXT_COUNT(multigets->answered), TEXT_COUNT(multigets->keys),
                TEXT_COUNT(multigets->missing), text_were((double)multigets->missing));
}

static void print_batches(const struct batch_counts *batches, const struct load_facts *facts,
                          FILE *out)
{
    const struct timed_count *waited = &batches->waited;
    if (!(facts->batch_us > 0) || !batches->calls)
        return;
    fprintf(out,
            "  batches    of what is due within %s: %.1f requests a send call, %s at most; each "
            "waited %s\n             for others on average, %s at most (in all latencies, and "
            "allowed for in the arrivals)\n",
            TEXT_US(facts->batch_us), (double)waited->count / (double)batches->calls,
            TEXT_COUNT(batches->largest), TEXT_NS((double)waited->sum_ns / (double)waited->count),
            TEXT_NS((double)waited->max_ns));
}

static void print_sessions(const struct session_counts *sessions, const struct load_facts *facts,
                           FILE *out)
{
    const struct timed_count *opening = &sessions->opening;
    if (!facts->session)
        return;
    fprintf(out, "  sessions   of %s request%s each: %s ended", TEXT_COUNT(facts->session),
            text_plural((double)facts->session), TEXT_COUNT(sessions->ended));
    if (opening->count)
        fprintf(out, "; %s to open the next one on average, %s at most",
                TEXT_NS((double)opening->sum_ns / (double)opening->count),
                TEXT_NS((double)opening->max_ns));
    fputc('\n', out);
}

static void print_nodes(const struct engine_result *result, const struct load_facts *facts,
                        FILE *out)
{
    const struct redirection_counts *counts = &result->counts.redirections;
    if (result->nodes && facts->sentinel)
        fprintf(out,
                "  masters    %s; %s request%s tried later, %s given up, %s out of reach; the "
                "sentinels asked again %s time%s\n",
                TEXT_COUNT(result->nodes), TEXT_COUNT(counts->retried),
                text_plural((double)counts->retried), TEXT_COUNT(counts->given_up),
                TEXT_COUNT(counts->unreachable), TEXT_COUNT(counts->map_reads),
                text_plural((double)counts->map_reads));
    else if (result->nodes)
        fprintf(out,
                "  nodes      %s; %s request%s moved, %s asked elsewhere once, %s tried later, %s "
                "given up, %s out of reach; the map read again %s time%s\n",
                TEXT_COUNT(result->nodes), TEXT_COUNT(counts->moved),
                text_plural((double)counts->moved), TEXT_COUNT(counts->asked),
                TEXT_COUNT(counts->retried), TEXT_COUNT(counts->given_up),
                TEXT_COUNT(counts->unreachable), TEXT_COUNT(counts->map_reads),
                text_plural((double)counts->map_reads));
    if (counts->failovers.count)
        fprintf(out, "  failovers  %s, the first %s after the start; %s at most without a master\n",
                TEXT_COUNT(counts->failovers.count),
                TEXT_NS(1e9 * engine_result_first_failover_s(result)),
                TEXT_NS((double)counts->failovers.max_ns));
}

static void print_handshakes(const struct timed_count *counts, const char *what, FILE *out)
{
    if (counts->count)
        fprintf(out, "; %s %s, %s each, %s at most", TEXT_COUNT(counts->count), what,
                TEXT_NS((double)counts->sum_ns / (double)counts->count),
                TEXT_NS((double)counts->max_ns));
}

static void print_us(FILE *out, double us)
{
    fprintf(out, " %8s", TEXT_US(us));
}

static void print_row(FILE *out, const char *name, const struct load_percentiles *percentiles)
{
    fprintf(out, "  %-24s", name);
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        print_us(out, percentiles->us[i]);
    fputc('\n', out);
}

static void print_intervals(FILE *out, const struct load_percentiles *percentiles)
{
    for (int high = 0; high < 2; high++) {
        fprintf(out, "  %-24s", high ? "  95 % interval, to" : "  95 % interval, from");
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
    const struct load_doubt_words known =
        load_doubt_words(summary->reason_count ? summary->doubts[0] : LOAD_DOUBTS);
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
        fprintf(out, "%s logical request%s/s of %s requests each (%s arrivals",
                TEXT_RATE(facts->rate), text_plural(facts->rate), TEXT_COUNT(fanout),
                facts->arrivals);
    else
        fprintf(out, "%s request%s/s (%s arrivals", TEXT_RATE(facts->rate),
                text_plural(facts->rate), facts->arrivals);
    fprintf(out, ", seed %llu) for %s on %s connection%s\n", (unsigned long long)facts->seed,
            TEXT_NS(1e9 * summary->duration_s), TEXT_COUNT(result->connections_at_once),
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
                "  closed loop of users who think (%s), as asked for: the rate is what %s "
                "connection%s with %s in\n  flight on each %s about, fewer while the server is "
                "slow, and the latency that of\n  requests which wait for replies\n",
                facts->think, TEXT_COUNT(result->connections_at_once), plural,
                TEXT_COUNT(result->depth), bring);
    else if (result->closed_loop)
        fprintf(
            out,
            "  closed loop, as asked for: the rate is the most that %s connection%s with %s in "
            "flight on each\n  %s about, and the latency that of requests which wait for replies\n",
            TEXT_COUNT(result->connections_at_once), plural, TEXT_COUNT(result->depth), bring);
}

static void print_latencies(const struct load_summary *summary, bool logical, FILE *out)
{
    fprintf(out, "\n  %-24s", "");
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        fprintf(out, " %8s", summary_quantile_names[i]);
    fputc('\n', out);
    print_row(out, logical ? "logical (from intended)" : "latency (from intended)",
              &summary->latency);
    print_intervals(out, &summary->latency);
    print_row(out, logical ? "logical (from 1st send)" : "uncorrected (from send)",
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
                " (logical requests, of %s requests each: %s, of which %s had all their replies)",
                TEXT_COUNT(fanout), TEXT_COUNT(summary->logical_scheduled),
                TEXT_COUNT(summary->logical_answered));
    fprintf(out,
            "\n  requests   %s scheduled, %s sent, %s answered (%s miss%s, %s error%s), %s unsent, "
            "%s timed out, %s lost",
            TEXT_COUNT(summary->scheduled), TEXT_COUNT(summary->sent),
            TEXT_COUNT(summary->answered), TEXT_COUNT(summary->misses),
            summary->misses == 1 ? "" : "es", TEXT_COUNT(summary->error_replies),
            text_plural((double)summary->error_replies), TEXT_COUNT(summary->unsent),
            TEXT_COUNT(summary->timed_out), TEXT_COUNT(summary->lost));
    if (unexpected)
        fprintf(out, "; %s repl%s to no request", TEXT_COUNT(unexpected),
                unexpected == 1 ? "y" : "ies");
    fputc('\n', out);
}

static void print_connections(const struct connection_counts *counts, FILE *out)
{
    if (counts->ended)
        fprintf(out,
                "  ends       %s connection%s ended, %s opened again, %s attempt%s failed, %s "
                "given up; %s request%s moved, %s repeated\n",
                TEXT_COUNT(counts->ended), text_plural((double)counts->ended),
                TEXT_COUNT(counts->reconnects), TEXT_COUNT(counts->reconnects_failed),
                text_plural((double)counts->reconnects_failed), TEXT_COUNT(counts->given_up),
                TEXT_COUNT(counts->moved), text_plural((double)counts->moved),
                TEXT_COUNT(counts->repeated));
    if (counts->spelled_out)
        fprintf(out,
                "  scripts    %s request%s sent again with the script itself: the server did not "
                "know it (NOSCRIPT)\n",
                TEXT_COUNT(counts->spelled_out), text_plural((double)counts->spelled_out));
}

static void print_silences(const struct silences *found, FILE *out)
{
    char words[320];
    if (silences_words(found, words, sizeof words))
        fprintf(out, "  silence    %s\n", words);
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
                         const struct load_facts *facts, FILE *out)
{
    char stood[120];
    fprintf(out, "  in flight  at most %s; %s request%s waited for a connection with room",
            TEXT_COUNT(result->counts.in_flight_max), TEXT_COUNT(result->delayed_by_depth),
            text_plural((double)result->delayed_by_depth));
    fprintf(out, "\n  lateness   p50 %s, p99 %s", TEXT_US(summary->lateness_p50_us),
            TEXT_US(summary->lateness_p99_us));
    if (standstill_words(result, stood, sizeof stood))
        fprintf(out, "; it %s", stood);
    if (CPU_COUNT(&result->cores) > 1) {
        char cores[200];
        fprintf(out, "\n  threads    %s, one on each of the cores %s",
                TEXT_COUNT(result->thread_count),
                units_format_cores(&result->cores, cores, sizeof cores));
    }
    if (isnan(summary->cpu_us_per_request))
        fprintf(out, "\n  client     CPU a request not known, %s of the time with a core\n",
                TEXT_SHARE(summary->core_share, 1));
    else
        fprintf(out, "\n  client     %s of CPU a request, %s of the time idle (%s)\n",
                TEXT_US(summary->cpu_us_per_request), TEXT_SHARE(summary->spin_fraction, 1),
                facts->sleeps                    ? "asleep"
                : summary->asleep_fraction > 0.0 ? "spinning and asleep"
                                                 : "spinning");
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
            "  stamps     %s by the NIC, %s by the kernel, %s by this program; TX missing %s, late "
            "%s, double %s, unknown %s, RX missing %s, coalesced %s\n",
            TEXT_COUNT(summary->stamps_hardware), TEXT_COUNT(summary->stamps_software),
            TEXT_COUNT(summary->stamps_user), TEXT_COUNT(result->stamps_missing),
            TEXT_COUNT(counts->stamps_late), TEXT_COUNT(counts->stamps_double),
            TEXT_COUNT(counts->stamps_unknown), TEXT_COUNT(counts->rx_missing),
            TEXT_COUNT(counts->rx_coalesced));
    if (result->thinned_tsc)
        fprintf(
            out,
            "             from %s on TX stamps of one send call in %s only, drawn by lot: the "
            "client had no time for more (--stamps sw: all, whatever they cost)\n",
            TEXT_INSTANT(1e9 * (double)(result->thinned_tsc - result->start_tsc) / result->tsc_hz),
            TEXT_COUNT(result->stamps_every));
    else if (result->stamps_every)
        fprintf(out, "             TX stamps of one send call in %s, drawn by lot\n",
                TEXT_COUNT(result->stamps_every));
}

static void print_all(const struct load_summary *summary, const struct engine_result *result,
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
    print_silences(&summary->silences, out);
    print_nodes(result, facts, out);
    print_fills(&counts->fills, out);
    print_multigets(&counts->multigets, out);
    print_batches(&counts->batches, facts, out);
    print_sessions(&counts->sessions, facts, out);
    print_tls(counts, out);
    print_client(summary, result, facts, out);
    print_stamps(summary, result, out);
    load_bounds_print(result, out);
}

// Where a line's words begin, behind what it is about, and the lines that it is continued on.
static size_t words_begin(const char *line)
{
    enum { LABEL_COLUMNS = 13 };
    size_t begin = strspn(line, " ");
    if (strncmp(line + begin, "- ", 2) == 0)
        return begin + 2;
    const char *gap = strstr(line + begin, "  ");
    if (!gap || gap >= line + LABEL_COLUMNS)
        return begin;
    return (size_t)(gap - line) + strspn(gap, " ");
}

void load_summary_print(const struct load_summary *summary, const struct engine_result *result,
                        const struct load_facts *facts, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = isatty(fileno(out)) ? open_memstream(&text, &bytes) : NULL;
    print_all(summary, result, facts, memory ? memory : out);
    if (!memory)
        return;
    bool whole = fclose(memory) == 0;
    for (char *line = text, *end; whole && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (end - line > text_width(out)) {
            size_t begin = words_begin(line);
            fwrite(line, 1, begin, out);
            text_wrap(out, line + begin, (int)begin, text_width(out));
        } else {
            fprintf(out, "%s\n", line);
        }
    }
    free(text);
}
