// SPDX-License-Identifier: MIT
#include "analysis/report/terminal/summary_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/terminal/summary_causes.h"
#include "analysis/report/terminal/summary_findings.h"
#include "analysis/report/terminal/summary_queues.h"
#include "analysis/report/terminal/summary_setup.h"
#include "analysis/run/run_limits.h"
#include "analysis/run/run_lede.h"
#include "analysis/run/run_verdict.h"
#include "analysis/run/run_verdict_evidence.h"
#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

enum {
    TOP_HINTS = 3,
    BAR_CELLS_NARROW = 7,
};

#define SMALL_STAGE 0.03 // of the time of all hops: not in the short form

// --- parts -------------------------------------------------------------------------------------

// The findings for everybody, and what to do about them.
static void write_lede(const struct summary *s)
{
    struct run_lede lede;
    char text[LEDE_BYTES];
    run_lede(s->run, &lede);
    fputs(summary_strong(s), s->out);
    summary_wrapped(s, text_clean(lede.text, !s->style->unicode, text, sizeof text), 0);
    if (lede.remedy[0]) {
        bool asks = lede.remedy[strlen(lede.remedy) - 1] == '?';
        snprintf(text, sizeof text, "%s %s%s", s->style->unicode ? "\u2192" : "->", lede.remedy,
                 asks ? "" : ".");
        summary_wrapped(s, text, s->style->unicode ? 2 : 3);
    }
    fputs(summary_plain(s), s->out);
}

static void write_verdict(const struct summary *s)
{
    char title[256], name[256], verdict[VERDICT_BYTES];
    text_clean(run_title(s->run, title, sizeof title), !s->style->unicode, name, sizeof name);
    text_clean(run_verdict_details(s->run), !s->style->unicode, verdict, sizeof verdict);
    const bool available = s->run->findings.verdict_available, doubt = run_load_doubt(s->run);
    fprintf(s->out, "%s%s%s%s%s%s\n", summary_strong(s), name, summary_plain(s),
            summary_warn(s, !available || doubt),
            !available ? "  N/A: no verdict"
            : doubt    ? "  inconclusive"
                       : "",
            summary_plain(s));
    write_lede(s);
    fputc('\n', s->out);
    summary_wrapped(s, verdict, 0);
}

// How the clocks of two machines relate, and the one network time that needs no such relation.
static void write_hosts(const struct summary *s, const struct two_hosts *hosts)
{
    char a[32], b[32], line[300] = "";
    if (!hosts->apart)
        return;
    if (hosts->exchanges == 0) {
        fprintf(s->out, "  hosts     two, and no request was stamped by both\n");
        return;
    }
    fprintf(s->out, "  network   %s there and back (median), %s (p99)\n",
            summary_duration(hosts->round_trip_ns[0], a),
            summary_duration(hosts->round_trip_ns[2], b));
    text_append(line, sizeof line,
                "two; their clocks related within %s (median), %s (p99), %+.2f ppm",
                summary_duration(hosts->bound_p50_ns, a), summary_duration(hosts->bound_p99_ns, b),
                hosts->rate * 1e6);
    if (hosts->both_ways)
        text_append(line, sizeof line, ": too wide to separate the two ways");
    else if (hosts->unknown)
        text_append(line, sizeof line, "; unknown for %s requests", TEXT_COUNT(hosts->unknown));
    fprintf(s->out, "  hosts     ");
    summary_wrapped(s, line, 12);
}

static void write_numbers(const struct summary *s)
{
    const struct run_analysis *run = s->run;
    char a[32], b[32], c[32], apart[RUN_TOLD_APART_WORDS], line[500];
    char offered[TEXT_NUMBER_BYTES], achieved[TEXT_NUMBER_BYTES];
    const double duration_ns = (double)(run->lifetimes.end_ns - run->lifetimes.begin_ns);
    if (run->evidence.without_client)
        snprintf(line, sizeof line, "%s requests in %s: %s/s; told apart %s",
                 text_count(run->lifetimes.scheduled, a), TEXT_NS(duration_ns),
                 text_rate(run->lifetimes.achieved_rate, achieved),
                 run_told_apart(run, apart, sizeof apart));
    else
        snprintf(line, sizeof line, "%s requests in %s: %s/s offered, %s/s achieved",
                 text_count(run->lifetimes.scheduled, a), TEXT_NS(duration_ns),
                 text_rate(run->lifetimes.offered_rate, offered),
                 text_rate(run->lifetimes.achieved_rate, achieved));
    fprintf(s->out, "\n  %-10s", run->evidence.without_client ? "clients" : "load");
    summary_wrapped(s, line, 12);
    if (!s->style->full && run->lifetimes.join.disorder.violations == 0)
        return;
    if (!run->evidence.without_client)
        fprintf(s->out, "  client    sent late by %s (median), %s (p99)\n",
                summary_duration(run->lifetimes.lateness_p50_ns, a),
                summary_duration(run->lifetimes.lateness_p99_ns, b));
    fprintf(s->out, "  joined    %s of them have every stamp (%s)\n",
            text_share((double)run->lifetimes.states[LIFETIME_WHOLE],
                       (double)run->lifetimes.scheduled, a),
            text_count(run->lifetimes.states[LIFETIME_WHOLE], b));
    fprintf(s->out, "  clocks    error at most %s; %s%s stamps out of order%s",
            summary_duration(run->evidence.clock_error_ns, a),
            summary_warn(s, run->lifetimes.join.disorder.violations > 0),
            text_count(run->lifetimes.join.disorder.violations, c), summary_plain(s));
    if (run->lifetimes.join.disorder.violations)
        fprintf(s->out, ", by up to %s",
                summary_duration(run->lifetimes.join.disorder.worst_ns, b));
    fputc('\n', s->out);
    write_hosts(s, &run->lifetimes.join.hosts);
}

static void latency_row(const struct summary *s, const char *label, const double *values)
{
    char text[32];
    fprintf(s->out, "  ");
    summary_field(s, label, 17);
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        fprintf(s->out, "%10s", summary_duration(values[i], text));
    fputc('\n', s->out);
}

static void write_latency(const struct summary *s)
{
    const struct run_analysis *run = s->run;
    double low[LATENCY_QUANTILES], high[LATENCY_QUANTILES];
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        const struct quantile_interval *interval = &run->lifetimes.latency.interval_ns[i];
        low[i] = interval->known ? interval->low : NAN;
        high[i] = interval->known ? interval->high : NAN;
    }
    summary_heading_field(s, "Latency", 19);
    fprintf(s->out, "%s", summary_faint(s));
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        fprintf(s->out, "%10s", latency_quantile_names[i]);
    fprintf(s->out, "%s\n", summary_plain(s));
    latency_row(s, run->evidence.without_client ? "in the server" : "from intended",
                run->lifetimes.latency.value_ns);
    latency_row(s, "  95 % from", low);
    latency_row(s, "  95 % to", high);
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        if (isinf(low[i])) {
            fprintf(s->out, "    never: too many were never answered\n");
            break;
        }
    if (!run->evidence.without_client && s->style->full)
        latency_row(s, "from sent", run->lifetimes.uncorrected_latency.value_ns);
}

// How long the requests of the loads beside took, as these measured it.
static void write_other_loads(const struct summary *s)
{
    const struct run_load_array *others = &s->run->evidence.other_loads;
    char label[RUN_LOAD_NAME_BYTES + 16], name[sizeof label];
    for (size_t i = 0; i < others->count; i++) {
        const json_t *latency = json_object_get(others->items[i].summary, "latency_us");
        double values[LATENCY_QUANTILES];
        for (int k = 0; k < LATENCY_QUANTILES; k++)
            values[k] = 1e3 * json_percentile(latency, latency_quantile_names[k]);
        snprintf(label, sizeof label, "load `%s`", others->items[i].name);
        latency_row(s, text_clean(label, !s->style->unicode, name, sizeof name), values);
    }
}

static double stage_sum(const double *stages)
{
    double sum = 0;
    for (int stage = 1; stage < STAGES; stage++)
        sum += isfinite(stages[stage]) ? stages[stage] : 0;
    return sum;
}

// Where client and server are two machines, which of them the stages that follow pass on.
static void write_machine(const struct summary *s, const char *machine, const char **before)
{
    char name[256];
    bool changed = strcmp(machine, *before) != 0;
    *before = machine;
    if (!changed)
        return;
    text_clean(machine[0] ? machine : "between them", !s->style->unicode, name, sizeof name);
    fprintf(s->out, "%s %s:%s\n", summary_faint(s), name, summary_plain(s));
}

static const int stage_columns[] = {0, 2, 3}; // of latency_quantiles: p50, p99, p99.9
enum { STAGE_COLUMNS = 3 };
static const double OFF_CORE_MATTERS = 0.1;

static int stage_cells(const struct summary *s)
{
    return s->style->width < SUMMARY_WIDE ? BAR_CELLS_NARROW : SUMMARY_BAR_CELLS;
}

static void write_stage(const struct summary *s, const char *name, const char *role,
                        const double ns[STAGE_COLUMNS])
{
    char text[32];
    fprintf(s->out, "  ");
    summary_field(s, name, 20);
    fprintf(s->out, "%-4s", role);
    for (size_t i = 0; i < STAGE_COLUMNS; i++) {
        const double *stages = s->run->lifetimes.stage_at_quantile_ns[stage_columns[i]];
        fprintf(s->out, "%s%9s ", i ? " " : "", summary_duration(ns[i], text));
        summary_bar(s, ns[i] / stage_sum(stages), stage_cells(s));
    }
    fputc('\n', s->out);
}

// What of the application's stage was not the application's doing, where that is worth a line.
static void write_off_core(const struct summary *s, const double application_ns[STAGE_COLUMNS])
{
    double ns[STAGE_COLUMNS];
    bool matters = false;
    for (size_t i = 0; i < STAGE_COLUMNS; i++) {
        ns[i] = s->run->lifetimes.off_core_at_quantile_ns[stage_columns[i]];
        matters |= ns[i] > OFF_CORE_MATTERS * application_ns[i];
    }
    if (matters)
        write_stage(s, "  thread not running", "", ns);
}

static void write_stages(const struct summary *s)
{
    const char *machine = "";
    summary_heading_field(s, "Where the time goes (mean)", 26);
    fprintf(s->out, "%s", summary_faint(s));
    for (size_t i = 0; i < STAGE_COLUMNS; i++)
        fprintf(s->out, "%s%9s%*s", i ? " " : "", latency_quantile_names[stage_columns[i]],
                stage_cells(s) + 1, "");
    fprintf(s->out, "%s\n", summary_plain(s));
    for (int stage = 1; stage < STAGES; stage++) {
        double ns[STAGE_COLUMNS], most = 0;
        for (size_t i = 0; i < STAGE_COLUMNS; i++) {
            ns[i] = s->run->lifetimes.stage_at_quantile_ns[stage_columns[i]][stage];
            most = fmax(most, ns[i]);
        }
        if (!(most > 0))
            continue; // merged into the next one
        enum core_role role = stage_role((enum stamp_kind)stage);
        write_machine(s, run_stage_machine(s->run, (enum stamp_kind)stage), &machine);
        write_stage(s, stage_name((enum stamp_kind)stage, join_undivided(&s->run->lifetimes.join)),
                    role == ROLE_R || role == ROLE_A ? role_name(role) : "", ns);
        if (stage == STAMP_REPLY)
            write_off_core(s, ns);
    }
}

// Before the first hop and behind the last there is little, as a rule.
static bool is_small_row(const struct hop_row_array *rows, size_t i)
{
    size_t all = i; // the last row of its way
    while (all + 1 < rows->count && rows->items[all + 1].way == rows->items[i].way)
        all++;
    return rows->items[i].mean_ns < SMALL_STAGE * rows->items[all].mean_ns;
}

// What the packets say of the two machines' clocks, beside what the requests say.
static void write_hop_clock(const struct summary *s)
{
    const struct packet_clock *clock = &s->run->lifetimes.hops.stays.clock;
    char a[32], b[32], c[32], line[300] = "";
    if (clock->exchanges == 0)
        return;
    text_append(line, sizeof line,
                "by these packets the clocks are related within %s (p99), %+.2f ppm",
                summary_duration(clock->bound_p99_ns, a), clock->rate * 1e6);
    if (clock->compared)
        text_append(line, sizeof line,
                    "; from the requests' relation that differs by %s (median), %s (max)",
                    summary_duration(clock->difference_p50_ns, b),
                    summary_duration(clock->difference_max_ns, c));
    fprintf(s->out, "  ");
    summary_wrapped(s, line, 4);
}

// Over UDP: between which hops requests were lost.
static void write_hop_losses(const struct summary *s)
{
    const struct run_hops *hops = &s->run->lifetimes.hops;
    const char *before = "of the requests without an answer ";
    char line[2400] = "", words[HOP_LOSS_WORDS];
    for (size_t i = 0; i < hops->losses.places.count; i++, before = ", ")
        text_append(line, sizeof line, "%s%s %s", before,
                    TEXT_COUNT(hops->losses.places.items[i].requests),
                    run_hops_loss_words(hops, &hops->losses.places.items[i], words));
    if (hops->losses.unseen)
        text_append(line, sizeof line, "%s%s that no hop saw", before,
                    TEXT_COUNT(hops->losses.unseen));
    if (!line[0])
        return;
    fprintf(s->out, "  ");
    summary_wrapped(s, line, 4);
}

// The page has p90 too, for which a terminal is too narrow.
static bool is_shown_quantile(size_t q)
{
    return hop_quantiles[q] < 0.9 || hop_quantiles[q] > 0.9;
}

// What the slow messages waited for between a row's hops, the three that took them longest.
static void write_hop_waits(const struct summary *s, const struct hop_row *row)
{
    enum { MOST = 3 };
    const struct diagnosis_array *all = &s->run->findings.diagnoses;
    char clean[CAUSE_NAME_BYTES], ns[32], count[32], line[CAUSE_NAME_BYTES + 128];
    unsigned shown = 0;
    for (size_t i = 0; all->count && i < all->items[0].causes.count && shown < MOST; i++) {
        const struct cause *cause = &all->items[0].causes.items[i];
        const char *wait = run_hops_wait(&s->run->lifetimes.hops, row, cause);
        if (!wait)
            continue;
        shown++;
        text_clean(wait, !s->style->unicode, clean, sizeof clean);
        snprintf(line, sizeof line, "%s of slow messages: %s (%s of them)",
                 summary_duration(cause->total_ns, ns), clean, text_count(cause->messages, count));
        fprintf(s->out, "    ");
        summary_wrapped(s, line, 6);
    }
}

// What of the network's time passed between which hops.
static void write_hops(const struct summary *s)
{
    const struct run_hops *hops = &s->run->lifetimes.hops;
    const int name_width = s->style->width < SUMMARY_WIDE ? 28 : 44;
    char name[HOP_ROW_BYTES], text[32];
    if (hops->rows.count == 0)
        return;
    summary_heading_field(s, "Hop by hop", 2 + name_width);
    fprintf(s->out, "%s%9s", summary_faint(s), "messages");
    for (size_t q = 0; q < HOP_QUANTILES; q++)
        if (is_shown_quantile(q))
            fprintf(s->out, "%10s", hop_quantile_names[q]);
    fprintf(s->out, "%s\n", summary_plain(s));
    for (size_t i = 0; i < hops->rows.count; i++) {
        const struct hop_row *row = &hops->rows.items[i];
        if (!s->style->full && is_small_row(&hops->rows, i))
            continue;
        text_clean(row->name, !s->style->unicode, name, sizeof name);
        summary_label(s, name, 2, name_width);
        fprintf(s->out, "%9s", text_count(row->messages, text));
        for (size_t q = 0; q < HOP_QUANTILES; q++)
            if (is_shown_quantile(q))
                fprintf(s->out, "%10s", summary_duration(row->value_ns[q], text));
        fputc('\n', s->out);
        write_hop_waits(s, row);
    }
    write_hop_losses(s);
    write_hop_clock(s);
}

// The functions that were sampled while a cause was at work.
static void write_samples(const struct summary *s)
{
    const struct run_samples *samples = &s->run->evidence.samples;
    char line[900], clean[900];
    if (samples->hints.count || samples->problem[0] || samples->profile.damages)
        summary_heading(s, "Hints: where samples were in the slow requests (in ordinary ones)");
    for (size_t i = 0; i < samples->hints.count + 2; i++) {
        if (!s->style->full && i >= TOP_HINTS && i < samples->hints.count)
            continue; // the lines after the last hint are about all of them
        run_samples_line(samples, i, line, sizeof line);
        text_clean(line, !s->style->unicode, clean, sizeof clean);
        if (clean[0]) {
            fprintf(s->out, "  ");
            summary_wrapped(s, clean, 4);
        }
    }
}

// Warnings of the load generator and the capture about themselves. The load's first reason is in
// the lede where that has no plainer words for it.
static void write_warnings(const struct summary *s)
{
    json_t *const lists[] = {json_object_get(s->run->evidence.load, "reasons"),
                             json_object_get(s->run->evidence.load, "warnings"),
                             json_object_get(s->run->evidence.capture, "warnings")};
    size_t count = 0, shown = s->style->full ? SIZE_MAX : 1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t j = 0; j < json_array_size(lists[i]); j++) {
            const char *text = json_string_value(json_array_get(lists[i], j));
            char clean[800];
            if (!text || (text == run_load_doubt(s->run) && !run_load_doubt_words(s->run).words))
                continue;
            if (++count > shown)
                continue;
            text_clean(text, !s->style->unicode, clean, sizeof clean);
            fprintf(s->out, "%sBeware%s  ", summary_warn(s, true), summary_plain(s));
            summary_wrapped(s, clean, 8);
        }
    if (count > shown)
        fprintf(s->out, "        and %s more of that kind (--full)\n", TEXT_COUNT(count - shown));
}

// Over UDP it is known where requests were lost, not only that they were.
static uint64_t datagrams_lost(const struct run_analysis *run)
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < DATAGRAM_LOSSES; i++)
        lost += run->lifetimes.join.datagrams_lost.at[i];
    return lost;
}

static void write_losses(const struct summary *s)
{
    const struct run_analysis *run = s->run;
    const uint64_t placed = datagrams_lost(run);
    const struct {
        const char *noun, *rest;
        uint64_t count;
    } losses[] = {
        {"", "not answered by the end of the capture", run->evidence.turns_unanswered},
        {"send", " that answer no request", run->evidence.turns_unasked},
        {"", "unsent", run->lifetimes.unsent},
        {"", "timed out", run->lifetimes.timed_out},
        {"", "lost with their connection", placed ? 0 : run->lifetimes.lost},
        {"kernel event", " dropped", run->evidence.dropped_events},
        {"socket call", " dropped", run->evidence.dropped_calls},
        {"sample", " dropped", run->evidence.dropped_samples},
        {"kernel event", " of the load's cores dropped", run->evidence.dropped_client_events},
        {"span", " without begin or end", run->evidence.server.unpaired},
        {"gap", " in the capture", run->evidence.server.lost_intervals},
        {"request", " on cores that were not recorded then", run->lifetimes.unseen.unrecorded},
        {"sample", " of the cores lost", run->evidence.samples.profile.lost},
        {"decode error", " of the trace", run->evidence.trace.errors},
        {"overflow", " of the trace", run->evidence.trace.overflows},
        {"cut", " of the trace for want of buffer", run->evidence.trace.truncated},
        {"piece", " of the trace with gaps", run->evidence.trace.gaps},
        {"error", " of the trace noted by perf", run->evidence.trace.perf_errors},
        {"record", " lost by perf", run->evidence.trace.perf_lost},
        {"malformed record", " of perf's", run->evidence.trace.malformed},
    };
    const struct datagram_losses *lost = &run->lifetimes.join.datagrams_lost;
    char line[4800] = "", count[32], words[RUN_TRACE_WORDS], limits[RUN_LIMITS_WORDS];
    char by[DATAGRAM_LOSS_WORDS];
    const char *lack = run_trace_lack(&run->evidence.trace, words);
    size_t used = 0;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].count)
            used += (size_t)snprintf(
                line + used, sizeof line - used, "%s%s %s%s%s", used ? ", " : "",
                text_count(losses[i].count, count), losses[i].noun,
                losses[i].noun[0] ? text_plural((double)losses[i].count) : "", losses[i].rest);
    for (unsigned i = 0; i < DATAGRAM_LOSSES; i++)
        if (lost->at[i])
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %s%s", used ? ", " : "",
                                     text_count(lost->at[i], count),
                                     datagram_loss_words((enum datagram_loss)i),
                                     datagram_loss_by_words(lost, (enum datagram_loss)i, by));
    for (int state = LIFETIME_NO_CONNECTION; state < LIFETIME_STATES; state++)
        if (run->lifetimes.states[state])
            used +=
                (size_t)snprintf(line + used, sizeof line - used, "%s%s with %s", used ? ", " : "",
                                 text_count(run->lifetimes.states[state], count),
                                 lifetime_state_name((enum lifetime_state)state));
    if (run_limits_words(run->evidence.capture, limits)[0])
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", used ? ", " : "", limits);
    if (lack[0])
        used += (size_t)snprintf(line + used, sizeof line - used, "%sall functions: %s",
                                 used ? ", " : "", lack);
    fprintf(s->out, "\n%sLost%s  ", summary_strong(s), summary_plain(s));
    fputs(summary_warn(s, used > 0), s->out);
    summary_wrapped(s, used ? line : "nothing: every request was answered, every record arrived",
                    6);
    fputs(summary_plain(s), s->out);
}

// --- the whole -----------------------------------------------------------------------------------

// Where the short form leaves out what the full one has.
static void write_more(const struct summary *s)
{
    const char *load = run_load_name(s->run);
    char words[sizeof s->run->evidence.run_dir + 200] = "", line[sizeof words];
    text_append(words, sizeof words, "More: taillight report %s", s->run->evidence.run_dir);
    if (load)
        text_append(words, sizeof words, " --load %s", load);
    text_append(words, sizeof words, " --text --full");
    fputs(summary_faint(s), s->out);
    summary_wrapped(s, text_clean(words, !s->style->unicode, line, sizeof line), 6);
    fputs(summary_plain(s), s->out);
}

void summary_text_write(const struct run_analysis *run, const struct summary_style *style,
                        FILE *out)
{
    struct summary s = {run, style, out};
    const struct diagnosis *first =
        run->findings.diagnoses.count ? &run->findings.diagnoses.items[0] : NULL;
    write_verdict(&s);
    write_numbers(&s);
    write_latency(&s);
    write_other_loads(&s);
    if (style->full) {
        write_stages(&s);
        summary_write_budget(&s);
    }
    write_hops(&s);
    if (first)
        summary_write_diagnosis(&s, first);
    if (first && style->full)
        summary_write_queues(&s, first);
    else if (first)
        summary_write_first_culprit(&s, first);
    if (style->full)
        summary_write_shared(&s);
    write_samples(&s);
    if (style->full)
        summary_write_parts(&s);
    if (style->full || !run->findings.verdict_available)
        summary_write_windows(&s);
    write_losses(&s);
    summary_write_setup(&s);
    write_warnings(&s);
    if (!style->full)
        write_more(&s);
}
