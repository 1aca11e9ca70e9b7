// SPDX-License-Identifier: MIT
#include "experiments/watch/watch_interval.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/run/result_fields.h"
#include "analysis/run/run_verdict_evidence.h"
#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

enum { CAUSES_SHOWN = 5, BAR_CELLS = 10, NAME_COLUMNS = 40, SERVER_COLUMNS = 20 };
enum { SENTENCE_BYTES = 1000 };

static uint64_t dropped_of(const struct run_analysis *run)
{
    return run->evidence.dropped_events + run->evidence.dropped_calls;
}

static bool has_verdict(const struct watch_requests *requests)
{
    return requests->diagnosis && !requests->diagnosis->not_available;
}

static const char *why_no_verdict(const struct watch_requests *requests)
{
    return requests->diagnosis ? requests->diagnosis->reason : "nothing was diagnosed";
}

static void write_numbers(const struct watch_requests *requests, double seconds, FILE *out)
{
    char text[TEXT_NUMBER_BYTES];
    fprintf(out, "%9s/s", text_rate((double)requests->count / seconds, text));
    for (int q = 0; q < LATENCY_QUANTILES && requests->count; q++) {
        if (q != 1 && q != 4)
            fprintf(out, "  %s %-*s", latency_quantile_names[q], q + 1 < LATENCY_QUANTILES ? 9 : 0,
                    summary_duration(requests->latency->value_ns[q], text));
    }
}

void watch_interval_line(const struct watch_interval *interval, const struct watch_server *server,
                         FILE *out)
{
    struct tm local;
    char when[16], name[sizeof server->name];
    strftime(when, sizeof when, "%H:%M:%S", localtime_r(&interval->ended.tv_sec, &local));
    fprintf(out, "%s ", when);
    if (server)
        fprintf(out, " %-*s", SERVER_COLUMNS, text_clean(server->name, true, name, sizeof name));
    if (!interval->run) {
        fprintf(out, " %s\n", interval->problem);
        return;
    }
    const struct watch_requests all = watch_requests_of_all(interval->run, interval->answers);
    write_numbers(server ? &server->requests : &all, interval->seconds, out);
    // The windows are of all servers: said once.
    const bool first = !server || server == interval->servers->all.items;
    if (first && interval->windows)
        fprintf(out, "  saved: %s", interval->saved);
    if (first && interval->windows > 1)
        fprintf(out, " and %s more", TEXT_COUNT(interval->windows - 1));
    fputc('\n', out);
}

// A sentence of its own, broken into lines as wide as the page.
static void __attribute__((format(printf, 2, 3)))
say(const struct summary *s, const char *format, ...)
{
    char text[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("  ", s->out);
    summary_wrapped(s, text, 2);
}

static void write_causes(const struct diagnosis *diagnosis, const struct summary *s)
{
    double whole = run_diagnosis_extra_ns(diagnosis);
    char added[32], share[32], name[CAUSE_NAME_BYTES + 32], clean[CAUSE_NAME_BYTES + 32];
    say(s, "the slowest 1 %%, %s request%s, against %s of an ordinary one; added on average:",
        TEXT_COUNT(diagnosis->messages.count), diagnosis->messages.count == 1 ? "" : "s",
        units_format_ns(diagnosis->reference_latency_ns, added, sizeof added));
    for (size_t i = 0; i < diagnosis->causes.count && i < CAUSES_SHOWN; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        snprintf(name, sizeof name, "%s (%s)", cause->name, role_name(cause->role));
        text_clean(name, !s->style->unicode, clean, sizeof clean);
        summary_label(s, clean, 4, NAME_COLUMNS);
        fprintf(s->out, " %9s  ",
                units_format_ns(cause->total_ns / (double)diagnosis->messages.count, added,
                                sizeof added));
        summary_bar(s, cause->total_ns / whole, BAR_CELLS);
        fprintf(s->out, " %s%s\n", text_share(cause->total_ns, whole, share),
                summary_cause_mark(cause));
    }
    if (diagnosis->causes.count == 0)
        fprintf(s->out, "    no cause found\n");
    summary_explain_marks(s, diagnosis, CAUSES_SHOWN);
}

// Whether a cause that is shown is that the server had read a request and answered others first: of
// a server that its clients ask to be kept waiting nothing else is to be expected.
static bool is_put_off(const struct diagnosis *diagnosis)
{
    static const char put_off[] = "put off ";
    for (size_t i = 0; i < diagnosis->causes.count && i < CAUSES_SHOWN; i++)
        if (strncmp(diagnosis->causes.items[i].name, put_off, sizeof put_off - 1) == 0)
            return true;
    return false;
}

// Of those with every stamp: the slowest of all, "max", may have been none of them.
static void write_slowest(const struct watch_requests *requests, const struct summary *s)
{
    char text[32], line[SENTENCE_BYTES] = "";
    const char *before = ": ";
    const struct lifetime *slowest = requests->slowest;
    bool of_all = !(slowest->latency_ns < requests->latency->value_ns[LATENCY_QUANTILES - 1]);
    text_append(line, sizeof line, "slowest%s, %s", of_all ? "" : " with every stamp",
                units_format_ns(slowest->latency_ns, text, sizeof text));
    for (int stage = 1; stage < STAGES; stage++) {
        if (!(slowest->stage_ns[stage] > 0))
            continue;
        text_append(line, sizeof line, "%s%s %s", before, stage_name((enum stamp_kind)stage, 0),
                    units_format_ns(slowest->stage_ns[stage], text, sizeof text));
        before = ", ";
    }
    say(s, "%s", line);
}

// How much of the requests the causes are of, as the beginning of a sentence.
static void append_explained(char out[SENTENCE_BYTES], const struct watch_requests *requests)
{
    char count[32], of[32];
    if (has_verdict(requests)) {
        const struct diagnosis *diagnosis = requests->diagnosis;
        text_append(out, SENTENCE_BYTES, "explained %s",
                    text_share(diagnosis->coverage_total, 1, count));
        if (diagnosis->reference_taken < diagnosis->reference_count)
            text_append(out, SENTENCE_BYTES, ", against %s of %s ordinary ones",
                        text_count(diagnosis->reference_taken, count),
                        text_count(diagnosis->reference_count, of));
        if (diagnosis->earlier)
            text_append(out, SENTENCE_BYTES, "; compared with %s requests of before as well",
                        text_count(diagnosis->earlier, count));
    } else {
        text_append(out, SENTENCE_BYTES, "explained -");
    }
    text_append(out, SENTENCE_BYTES, "; joined %s of %s", text_count(requests->joined, count),
                text_count(requests->looked_at, of));
}

static void write_requests(const struct watch_requests *requests, const struct summary *s)
{
    if (has_verdict(requests)) {
        write_causes(requests->diagnosis, s);
        if (is_put_off(requests->diagnosis) && s->run->evidence.turns_framed == 0)
            say(s, "requests that ask to be kept waiting, as BLPOP does, are among these: with "
                   "--framing redis they are left out");
    } else {
        say(s, "N/A: %s", why_no_verdict(requests));
    }
    if (requests->slowest)
        write_slowest(requests, s);
}

const char watch_passed_over_why[] =
    "to look at them takes longer than they are apart (a longer --interval)";

// How much of what there was is known.
static void write_evidence(const struct watch_interval *interval, const struct summary *s,
                           char line[SENTENCE_BYTES])
{
    const struct run_analysis *run = interval->run;
    char apart[RUN_TOLD_APART_WORDS], share[32], taken[32];
    text_append(line, SENTENCE_BYTES,
                "%stold apart %s; %s record%s dropped; the capture took %s of a core",
                line[0] ? ", " : "", run_told_apart(run, apart, sizeof apart),
                text_count(dropped_of(run), (char[32]){0}), text_plural((double)dropped_of(run)),
                text_share(interval->own_share, 1, share));
    if (interval->taken > 0)
        text_append(line, SENTENCE_BYTES, ", all of the watch %s",
                    text_share(interval->taken * interval->recorded, 1, share));
    say(s, "%s", line);
    if (interval->recorded < 1)
        say(s, "recorded for %s of the time: all of it would take %s of a core (--budget)",
            text_share(interval->recorded, 1, share), text_share(interval->taken, 1, taken));
    if (interval->answers->count)
        say(s,
            "causes and stages are of %s of %s requests, in a row, with most of the slowest: "
            "there are too many to take all apart (--look)",
            text_count(run->lifetimes.all.count, share),
            text_count(interval->answers->count, taken));
    if (run->lifetimes.join.spared)
        say(s,
            "%s without hand-offs, departures and softirqs, because these take too much: "
            "every tenth interval has them (--budget)",
            text_count(run->lifetimes.join.spared, share));
}

void watch_interval_details(const struct watch_interval *interval,
                            const struct summary_style *style, FILE *out)
{
    const struct run_analysis *run = interval->run;
    const struct summary s = {.run = run, .style = style, .out = out};
    const struct watch_servers *servers = interval->servers;
    char line[SENTENCE_BYTES] = "", count[32];
    if (interval->passed_over)
        say(&s, "%s interval%s before it %s passed over: %s",
            text_count(interval->passed_over, count), text_plural((double)interval->passed_over),
            text_were((double)interval->passed_over), watch_passed_over_why);
    if (!run)
        return;
    if (servers->all.count < 2) {
        const struct watch_requests all = watch_requests_of_all(run, interval->answers);
        write_requests(&all, &s);
        append_explained(line, &all);
    }
    for (size_t i = 0; i < servers->all.count && servers->all.count > 1; i++) {
        const struct watch_server *server = &servers->all.items[i];
        char name[sizeof server->name], of_server[SENTENCE_BYTES] = "";
        if (server->application == NO_APPLICATION)
            continue;
        fprintf(out, "%s%s%s\n", summary_strong(&s),
                text_clean(server->name, !style->unicode, name, sizeof name), summary_plain(&s));
        write_requests(&server->requests, &s);
        append_explained(of_server, &server->requests);
        say(&s, "%s", of_server);
    }
    write_evidence(interval, &s, line);
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

static void put_requests(json_t *object, const struct watch_requests *requests, double seconds)
{
    const struct diagnosis *diagnosis = has_verdict(requests) ? requests->diagnosis : NULL;
    const struct {
        const char *key;
        json_t *value;
    } parts[] = {
        {"requests", json_integer((json_int_t)requests->count)},
        {"looked_at", json_integer((json_int_t)requests->looked_at)},
        {"joined", json_integer((json_int_t)requests->joined)},
        {"rate", json_real((double)requests->count / seconds)},
        {"latency_us", latency_json(requests->latency)},
        {"latency_ci_us", intervals_json(requests->latency)},
        {"verdict_available", json_boolean(diagnosis != NULL)},
        {"reason", json_string(diagnosis ? "" : why_no_verdict(requests))},
        {"slice_messages", json_integer(diagnosis ? (json_int_t)diagnosis->messages.count : 0)},
        {"ordinary_us",
         json_number_or_null(diagnosis ? diagnosis->reference_latency_ns / 1000 : NAN)},
        {"ordinary_messages", json_integer(diagnosis ? (json_int_t)diagnosis->reference_count : 0)},
        {"ordinary_taken", json_integer(diagnosis ? (json_int_t)diagnosis->reference_taken : 0)},
        {"ordinary_earlier", json_integer(diagnosis ? (json_int_t)diagnosis->earlier : 0)},
        {"extra_us",
         json_number_or_null(diagnosis ? run_diagnosis_extra_ns(diagnosis) / 1000 : NAN)},
        {"causes", causes_json(diagnosis)},
        {"coverage_total", json_number_or_null(diagnosis ? diagnosis->coverage_total : NAN)},
        {"slowest", slowest_json(requests->slowest)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        json_object_set_new(object, parts[i].key, parts[i].value);
}

static void put_nothing(json_t *object, const char *reason)
{
    json_object_update_new(object, json_pack("{s:i, s:b, s:s}", "requests", 0, "verdict_available",
                                             0, "reason", reason));
}

static json_t *servers_json(const struct watch_interval *interval)
{
    json_t *list = json_array();
    for (size_t i = 0; i < interval->servers->all.count; i++) {
        const struct watch_server *server = &interval->servers->all.items[i];
        json_t *one = json_pack("{s:s}", "server", server->name);
        if (server->requests.count)
            put_requests(one, &server->requests, interval->seconds);
        else
            put_nothing(one, interval->run ? "no request was answered" : interval->problem);
        json_array_append_new(list, one);
    }
    return list;
}

static void put_all(json_t *line, const struct watch_interval *interval)
{
    const struct run_analysis *run = interval->run;
    const struct watch_requests all = watch_requests_of_all(run, interval->answers);
    put_requests(line, &all, interval->seconds);
    json_object_set_new(line, "framed", json_integer((json_int_t)run->evidence.turns_framed));
    json_object_set_new(line, "waiting", json_integer((json_int_t)run->evidence.turns_waiting));
    json_object_set_new(line, "dropped", json_integer((json_int_t)dropped_of(run)));
    json_object_set_new(line, "spared", json_integer((json_int_t)run->lifetimes.join.spared));
}

json_t *watch_interval_json(const struct watch_interval *interval)
{
    struct tm utc;
    char when[32];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&interval->ended.tv_sec, &utc));
    json_t *line = json_pack(
        "{s:s, s:f, s:f, s:f, s:f, s:I, s:s*, s:I, s:I}", "at", when, "seconds", interval->seconds,
        "recorded", interval->recorded, "watch_share", interval->taken * interval->recorded,
        "own_share", interval->own_share, "passed_over", (json_int_t)interval->passed_over, "saved",
        interval->windows ? interval->saved : NULL, "windows", (json_int_t)interval->windows,
        "unsaved", (json_int_t)interval->unsaved);
    if (line && interval->run)
        put_all(line, interval);
    else if (line)
        put_nothing(line, interval->problem);
    if (line)
        json_object_set_new(line, "servers", servers_json(interval));
    return line;
}
