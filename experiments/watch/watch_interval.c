// SPDX-License-Identifier: MIT
#include "experiments/watch/watch_interval.h"

#include <math.h>

#include "analysis/run/result_fields.h"
#include "analysis/run/run_verdict.h"
#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

enum { CAUSES_SHOWN = 5, BAR_CELLS = 10, NAME_COLUMNS = 40 };

static const struct diagnosis *diagnosis_of(const struct watch_interval *interval)
{
    const struct diagnosis_array *all = &interval->run->findings.diagnoses;
    return all->count ? all->items : NULL;
}

// NULL: none is whole.
static const struct lifetime *slowest_of(const struct run_analysis *run)
{
    const struct lifetime *slowest = NULL;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (life->state == LIFETIME_WHOLE && (!slowest || life->latency_ns > slowest->latency_ns))
            slowest = life;
    }
    return slowest;
}

static uint64_t dropped_of(const struct run_analysis *run)
{
    return run->evidence.dropped_events + run->evidence.dropped_calls;
}

void watch_interval_line(const struct watch_interval *interval, FILE *out)
{
    struct tm local;
    char when[16], text[32];
    strftime(when, sizeof when, "%H:%M:%S", localtime_r(&interval->ended.tv_sec, &local));
    fprintf(out, "%s ", when);
    if (!interval->run) {
        fprintf(out, " %s\n", interval->problem);
        return;
    }
    const struct run_lifetimes *lives = &interval->run->lifetimes;
    fprintf(out, "%9.0f/s", (double)lives->scheduled / interval->seconds);
    for (int q = 0; q < LATENCY_QUANTILES; q++) {
        const char *name = latency_quantile_names[q];
        // What rests on fewer than a few requests is the slowest, which is there as that.
        bool known = q == LATENCY_QUANTILES - 1 ||
                     (double)lives->scheduled * (1 - latency_quantiles[q]) >= 5;
        if (q != 1 && q != 4)
            fprintf(out, "  %s %-9s", name,
                    known ? units_format_ns(lives->latency.value_ns[q], text, sizeof text) : "-");
    }
    if (interval->windows)
        fprintf(out, "  saved: %s", interval->saved);
    if (interval->windows > 1)
        fprintf(out, " and %zu more", interval->windows - 1);
    fputc('\n', out);
}

static void write_causes(const struct diagnosis *diagnosis, const struct summary *s)
{
    double whole = run_diagnosis_extra_ns(diagnosis);
    char added[32], share[32], name[CAUSE_NAME_BYTES + 32], clean[CAUSE_NAME_BYTES + 32];
    fprintf(s->out,
            "  the slowest 1 %%, %zu requests, against %s of an ordinary one; added on average:\n",
            diagnosis->messages.count,
            units_format_ns(diagnosis->reference_latency_ns, added, sizeof added));
    for (size_t i = 0; i < diagnosis->causes.count && i < CAUSES_SHOWN; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        snprintf(name, sizeof name, "%s (%s)", cause->name, role_name(cause->role));
        text_clean(name, !s->style->unicode, clean, sizeof clean);
        fprintf(s->out, "    ");
        summary_field(s, clean, NAME_COLUMNS);
        fprintf(s->out, " %9s  ",
                units_format_ns(cause->total_ns / (double)diagnosis->messages.count, added,
                                sizeof added));
        summary_bar(s, cause->total_ns / whole, BAR_CELLS);
        fprintf(s->out, " %s%s\n", summary_percent(cause->total_ns, whole, share),
                summary_cause_mark(cause));
    }
    if (diagnosis->causes.count == 0)
        fprintf(s->out, "    no cause found\n");
    summary_explain_marks(s, diagnosis, CAUSES_SHOWN);
}

static void write_slowest(const struct lifetime *slowest, FILE *out)
{
    char text[32];
    const char *before = ": ";
    fprintf(out, "  slowest, %s", units_format_ns(slowest->latency_ns, text, sizeof text));
    for (int stage = 1; stage < STAGES; stage++) {
        if (!(slowest->stage_ns[stage] > 0))
            continue;
        fprintf(out, "%s%s %s", before, stage_name((enum stamp_kind)stage, 0),
                units_format_ns(slowest->stage_ns[stage], text, sizeof text));
        before = ", ";
    }
    fputc('\n', out);
}

void watch_interval_details(const struct watch_interval *interval,
                            const struct summary_style *style, FILE *out)
{
    const struct run_analysis *run = interval->run;
    const struct summary s = {.run = run, .style = style, .out = out};
    char count[32], of[32], apart[RUN_TOLD_APART_WORDS];
    if (!run)
        return;
    const struct diagnosis *diagnosis = diagnosis_of(interval);
    const struct lifetime *slowest = slowest_of(run);
    if (diagnosis && !diagnosis->not_available)
        write_causes(diagnosis, &s);
    else
        fprintf(out, "  N/A: %s\n", diagnosis ? diagnosis->reason : "nothing was diagnosed");
    if (slowest)
        write_slowest(slowest, out);
    if (diagnosis && !diagnosis->not_available)
        fprintf(out, "  explained %s", summary_percent(diagnosis->coverage_total, 1, count));
    else
        fprintf(out, "  explained -");
    fprintf(out,
            "; joined %s of %s, told apart %s; %s records dropped; the capture took %.1f %% of a "
            "core\n",
            text_count(run->lifetimes.states[LIFETIME_WHOLE], count),
            text_count(run->lifetimes.scheduled, of), run_told_apart(run, apart, sizeof apart),
            text_count(dropped_of(run), (char[32]){0}), 100 * interval->own_share);
}

// --- for scripts ---------------------------------------------------------------------------------

static json_t *causes_json(const struct diagnosis *diagnosis)
{
    json_t *list = json_array();
    for (size_t i = 0; diagnosis && i < diagnosis->causes.count; i++) {
        json_t *one = json_object();
        result_put_json(one, "", cause_fields, &diagnosis->causes.items[i]);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *slowest_json(const struct lifetime *slowest)
{
    json_t *stages = json_object();
    if (!slowest)
        return json_null();
    for (int stage = 1; stage < STAGES; stage++)
        if (slowest->stage_ns[stage] > 0)
            json_object_set_new(stages, stage_name((enum stamp_kind)stage, 0),
                                json_real(slowest->stage_ns[stage] / 1000));
    return json_pack("{s:f, s:o}", "latency_us", slowest->latency_ns / 1000, "stages_us", stages);
}

static json_t *latency_json(const struct latency_summary *latency)
{
    json_t *object = json_object();
    for (int q = 0; q < LATENCY_QUANTILES; q++)
        json_set_percentile(object, latency_quantile_names[q], latency->value_ns[q] / 1000);
    return object;
}

static json_t *intervals_json(const struct latency_summary *latency)
{
    json_t *object = json_object();
    for (int q = 0; q < LATENCY_QUANTILES; q++) {
        const struct quantile_interval *interval = &latency->interval_ns[q];
        json_object_set_new(object, latency_quantile_names[q],
                            interval->known
                                ? json_number_pair(interval->low / 1000, interval->high / 1000)
                                : json_null());
    }
    return object;
}

static void put_requests(json_t *line, const struct watch_interval *interval)
{
    const struct run_analysis *run = interval->run;
    const struct diagnosis *diagnosis = diagnosis_of(interval);
    const bool available = diagnosis && !diagnosis->not_available;
    const struct {
        const char *key;
        json_t *value;
    } parts[] = {
        {"requests", json_integer((json_int_t)run->lifetimes.scheduled)},
        {"joined", json_integer((json_int_t)run->lifetimes.states[LIFETIME_WHOLE])},
        {"framed", json_integer((json_int_t)run->evidence.turns_framed)},
        {"rate", json_real((double)run->lifetimes.scheduled / interval->seconds)},
        {"latency_us", latency_json(&run->lifetimes.latency)},
        {"latency_ci_us", intervals_json(&run->lifetimes.latency)},
        {"verdict_available", json_boolean(available)},
        {"reason", json_string(available   ? ""
                               : diagnosis ? diagnosis->reason
                                           : "nothing was diagnosed")},
        {"slice_messages", json_integer(available ? (json_int_t)diagnosis->messages.count : 0)},
        {"ordinary_us",
         json_number_or_null(available ? diagnosis->reference_latency_ns / 1000 : NAN)},
        {"causes", causes_json(available ? diagnosis : NULL)},
        {"coverage_total", json_number_or_null(available ? diagnosis->coverage_total : NAN)},
        {"slowest", slowest_json(slowest_of(run))},
        {"dropped", json_integer((json_int_t)dropped_of(run))},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        json_object_set_new(line, parts[i].key, parts[i].value);
}

json_t *watch_interval_json(const struct watch_interval *interval)
{
    struct tm utc;
    char when[32];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&interval->ended.tv_sec, &utc));
    json_t *line = json_pack("{s:s, s:f, s:f, s:s*, s:I}", "at", when, "seconds", interval->seconds,
                             "own_share", interval->own_share, "saved",
                             interval->windows ? interval->saved : NULL, "windows",
                             (json_int_t)interval->windows);
    if (line && interval->run)
        put_requests(line, interval);
    else if (line)
        json_object_update_new(line,
                               json_pack("{s:i, s:b, s:s}", "requests", 0, "verdict_available", 0,
                                         "reason", interval->problem));
    return line;
}
