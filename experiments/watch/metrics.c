// SPDX-License-Identifier: MIT
#include "experiments/watch/metrics.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/watch/metric_formats.h"

enum {
    CAUSES_KEPT = 100, // more names than these are counted together
    ADDRESS_BYTES = 256,
    REQUEST_BYTES = 8192, // of a scraper's header
};

struct counted_cause {
    char name[CAUSE_NAME_BYTES], category[CAUSE_NAME_BYTES];
    enum core_role role;
    double seconds;
};

struct metrics {
    pthread_mutex_t lock; // of all below
    struct metric_histogram latency, stages[STAGES];
    struct counted_cause causes[CAUSES_KEPT];
    size_t cause_count;
    double other_causes, extra, explained, own_seconds;
    uint64_t intervals, without_verdict, requests, joined, framed, dropped, unanswered, saved,
        not_saved;

    pthread_t thread;
    bool serves;
    struct event_base *base;
    struct evhttp *http;
};

// --- counting ------------------------------------------------------------------------------------

static void count_cause(struct metrics *metrics, const struct cause *cause)
{
    size_t i = 0;
    for (; i < metrics->cause_count; i++)
        if (metrics->causes[i].role == cause->role &&
            strcmp(metrics->causes[i].name, cause->name) == 0)
            break;
    if (i == CAUSES_KEPT) {
        metrics->other_causes += cause->total_ns / 1e9;
        return;
    }
    struct counted_cause *counted = &metrics->causes[i];
    if (i == metrics->cause_count) {
        metrics->cause_count++;
        counted->role = cause->role;
        snprintf(counted->name, sizeof counted->name, "%s", cause->name);
        snprintf(counted->category, sizeof counted->category, "%s", cause->category);
    }
    counted->seconds += cause->total_ns / 1e9;
}

static void count_run(struct metrics *metrics, const struct run_analysis *run)
{
    const struct diagnosis *diagnosis =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    metrics->requests += run->lifetimes.scheduled;
    metrics->joined += run->lifetimes.states[LIFETIME_WHOLE];
    metrics->dropped += run->evidence.dropped_events + run->evidence.dropped_calls;
    metrics->framed += run->evidence.turns_framed;
    metrics->unanswered += run->evidence.turns_unanswered;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (!isfinite(life->latency_ns))
            continue;
        metric_observe(&metrics->latency, life->latency_ns / 1e9);
        for (int stage = STAMP_HANDOFF; stage <= STAMP_SERVER_TX; stage++)
            if (life->state == LIFETIME_WHOLE && !(life->merged >> stage & 1))
                metric_observe(&metrics->stages[stage], life->stage_ns[stage] / 1e9);
    }
    if (!diagnosis || diagnosis->not_available) {
        metrics->without_verdict++;
        return;
    }
    double extra = run_diagnosis_extra_ns(diagnosis) / 1e9;
    metrics->extra += extra;
    if (isfinite(diagnosis->coverage_total))
        metrics->explained += extra * diagnosis->coverage_total;
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        count_cause(metrics, &diagnosis->causes.items[i]);
}

void metrics_add(struct metrics *metrics, const struct metrics_interval *interval)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->intervals++;
    metrics->own_seconds += interval->own_seconds;
    metrics->saved = interval->saved;
    metrics->not_saved = interval->not_saved;
    if (interval->run)
        count_run(metrics, interval->run);
    pthread_mutex_unlock(&metrics->lock);
}

// --- writing -------------------------------------------------------------------------------------

static void write_latencies(struct metric_output *out, const struct metrics *metrics)
{
    static const struct metric_family latency = {
        "latency_seconds", "seconds",
        "in the server, from a request's arrival to the last byte of its answer", METRIC_HISTOGRAM};
    static const struct metric_family stages = {"stage_seconds", "seconds", "the stages of that",
                                                METRIC_HISTOGRAM};
    const struct metric_format *format = out->format;
    format->begin(out, &latency);
    format->histogram(out, &(struct metric_labels){0}, &metrics->latency);
    format->end(out);
    format->begin(out, &stages);
    for (int stage = STAMP_HANDOFF; stage <= STAMP_SERVER_TX; stage++) {
        const char *name = stage_name((enum stamp_kind)stage, 0);
        format->histogram(out, &(struct metric_labels){1, {{"stage", name}}},
                          &metrics->stages[stage]);
    }
    format->end(out);
}

static void write_counters(struct metric_output *out, const struct metrics *metrics)
{
    const struct {
        const char *name, *unit, *help;
        double value;
    } counters[] = {
        {"intervals", "", "intervals that were looked at", (double)metrics->intervals},
        {"intervals_without_verdict", "", "of these, with requests but no causes (N/A)",
         (double)metrics->without_verdict},
        {"requests", "", "requests that were answered", (double)metrics->requests},
        {"joined_requests", "", "of these, with every stamp", (double)metrics->joined},
        {"framed_requests", "", "of the answered, told apart by framing; the others by turns",
         (double)metrics->framed},
        {"unanswered_requests", "", "requests without an answer at the end of their interval",
         (double)metrics->unanswered},
        {"dropped_records", "", "records of the kernel's events that were lost",
         (double)metrics->dropped},
        {"extra_seconds", "seconds",
         "what the slowest per cent of each interval took longer than its median", metrics->extra},
        {"explained_seconds", "seconds", "of that, what the causes explain", metrics->explained},
        {"own_cpu_seconds", "seconds", "processor time of the capture's process",
         metrics->own_seconds},
        {"saved_windows", "", "folders of records around slow requests", (double)metrics->saved},
        {"unsaved_windows", "", "folders that could not be saved", (double)metrics->not_saved},
    };
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        out->format->begin(out, &(struct metric_family){counters[i].name, counters[i].unit,
                                                        counters[i].help, METRIC_COUNTER});
        out->format->counter(out, &(struct metric_labels){0}, counters[i].value);
        out->format->end(out);
    }
}

static void write_cause(struct metric_output *out, const char *cause, const char *category,
                        const char *role, double seconds)
{
    const struct metric_labels labels = {
        3, {{"cause", cause}, {"category", category}, {"role", role}}};
    out->format->counter(out, &labels, seconds);
}

static void write_causes(struct metric_output *out, const struct metrics *metrics)
{
    static const struct metric_family causes = {
        "cause_seconds", "seconds",
        "what each cause added to the slowest per cent of each interval", METRIC_COUNTER};
    out->format->begin(out, &causes);
    for (size_t i = 0; i < metrics->cause_count; i++) {
        const struct counted_cause *cause = &metrics->causes[i];
        write_cause(out, cause->name, cause->category, role_name(cause->role), cause->seconds);
    }
    if (metrics->other_causes > 0)
        write_cause(out, "others", "others", "", metrics->other_causes);
    out->format->end(out);
}

// --- serving -------------------------------------------------------------------------------------

static void answer(struct evhttp_request *request, void *context)
{
    struct metrics *metrics = context;
    struct metric_output out = {.text = evhttp_request_get_output_buffer(request)};
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
        evhttp_send_error(request, 405, "only GET");
        return;
    }
    out.format = metric_format_accepted(
        evhttp_find_header(evhttp_request_get_input_headers(request), "Accept"));
    evhttp_add_header(headers, "Content-Type", out.format->content_type);
    evhttp_add_header(headers, "Vary", "Accept");
    pthread_mutex_lock(&metrics->lock);
    write_latencies(&out, metrics);
    write_counters(&out, metrics);
    write_causes(&out, metrics);
    pthread_mutex_unlock(&metrics->lock);
    out.format->finish(&out);
    if (out.failed)
        evhttp_send_error(request, 503, "no memory");
    else
        evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

static void *serve(void *context)
{
    struct metrics *metrics = context;
    event_base_dispatch(metrics->base);
    return NULL;
}

static int listen_on(struct metrics *metrics, const char *address, struct error *err)
{
    char host[ADDRESS_BYTES];
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || end == colon + 1 || *end || port < 1 || port > 65535 ||
        (size_t)(colon - address) >= sizeof host)
        return error_set(err, ERROR_INPUT,
                         "--metrics \"%s\": not like 127.0.0.1:9411, or :9411 for this host alone",
                         address);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    if (evhttp_bind_socket(metrics->http, host[0] ? host : "127.0.0.1", (uint16_t)port) < 0)
        return error_set_errno(err, ERROR_INPUT, "--metrics %s: cannot listen there", address);
    return 0;
}

int metrics_open(const char *address, struct metrics **out, struct error *err)
{
    struct metrics *metrics = *out = calloc(1, sizeof *metrics);
    if (!metrics)
        return error_set(err, ERROR_FAILED, "no memory for the metrics");
    pthread_mutex_init(&metrics->lock, NULL);
    if (evthread_use_pthreads() < 0 || !(metrics->base = event_base_new()) ||
        !(metrics->http = evhttp_new(metrics->base)))
        return error_set(err, ERROR_FAILED, "no memory for a server of metrics");
    evhttp_set_max_headers_size(metrics->http, REQUEST_BYTES);
    evhttp_set_max_body_size(metrics->http, 0);
    evhttp_set_timeout(metrics->http, 10);
    evhttp_set_cb(metrics->http, "/metrics", answer, metrics);
    int result = listen_on(metrics, address, err);
    if (result < 0)
        return result;
    if (pthread_create(&metrics->thread, NULL, serve, metrics) != 0)
        return error_set(err, ERROR_FAILED, "no thread for a server of metrics");
    metrics->serves = true;
    return 0;
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics)
        return;
    if (metrics->serves) {
        event_base_loopbreak(metrics->base);
        pthread_join(metrics->thread, NULL);
    }
    if (metrics->http)
        evhttp_free(metrics->http);
    if (metrics->base)
        event_base_free(metrics->base);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}
