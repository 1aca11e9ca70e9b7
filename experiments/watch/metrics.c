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
#include <sys/socket.h>
#include <unistd.h>

#include "experiments/watch/metric_formats.h"
#include "loadgen/client/server_address.h"

enum {
    CAUSES_KEPT = 100, // of a server; more names than these are counted together
    SERVERS_KEPT = 64, // so are the servers after these
    ADDRESS_BYTES = 256,
    REQUEST_BYTES = 8192, // of a scraper's header
};

struct counted_cause {
    char name[CAUSE_NAME_BYTES], category[CAUSE_NAME_BYTES];
    enum core_role role;
    double seconds;
};

struct counted_server {
    char name[80];
    struct metric_histogram latency, stages[STAGES];
    struct counted_cause causes[CAUSES_KEPT];
    size_t cause_count;
    double other_causes, extra, explained;
    uint64_t requests, looked_at, joined, without_verdict;
};

struct metrics {
    pthread_mutex_t lock; // of all below
    struct counted_server *servers[SERVERS_KEPT + 1];
    size_t server_count;
    double recorded_seconds, own_seconds;
    uint64_t intervals, passed_over, framed, waiting, dropped, unanswered, saved, not_saved;

    pthread_t thread;
    bool serves;
    struct event_base *base;
    struct evhttp *http;
};

// --- counting ------------------------------------------------------------------------------------

static void count_cause(struct counted_server *server, const struct cause *cause)
{
    size_t i = 0;
    for (; i < server->cause_count; i++)
        if (server->causes[i].role == cause->role &&
            strcmp(server->causes[i].name, cause->name) == 0)
            break;
    if (i == CAUSES_KEPT) {
        server->other_causes += cause->total_ns / 1e9;
        return;
    }
    struct counted_cause *counted = &server->causes[i];
    if (i == server->cause_count) {
        server->cause_count++;
        counted->role = cause->role;
        snprintf(counted->name, sizeof counted->name, "%s", cause->name);
        snprintf(counted->category, sizeof counted->category, "%s", cause->category);
    }
    counted->seconds += cause->total_ns / 1e9;
}

static void count_latencies(struct counted_server *server, const struct run_analysis *run,
                            const struct answer_array *answers, uint16_t application)
{
    for (size_t i = 0; i < answers->count; i++)
        metric_observe(&server->latency,
                       (double)(answers->items[i].answered_ns - answers->items[i].arrived_ns) /
                           1e9);
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (life->application != application || !isfinite(life->latency_ns))
            continue;
        if (!answers->count)
            metric_observe(&server->latency, life->latency_ns / 1e9);
        for (int stage = STAMP_HANDOFF; stage <= STAMP_SERVER_TX; stage++)
            if (life->state == LIFETIME_WHOLE && !(life->merged >> stage & 1))
                metric_observe(&server->stages[stage], life->stage_ns[stage] / 1e9);
    }
}

static void count_diagnosis(struct counted_server *server, const struct diagnosis *diagnosis)
{
    if (!diagnosis || diagnosis->not_available) {
        server->without_verdict++;
        return;
    }
    double extra = run_diagnosis_extra_ns(diagnosis) / 1e9;
    server->extra += extra;
    if (isfinite(diagnosis->coverage_total))
        server->explained += extra * diagnosis->coverage_total;
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        count_cause(server, &diagnosis->causes.items[i]);
}

// The one with that name, which is added; the last place is that of all others. NULL: no memory.
static struct counted_server *find_server(struct metrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->server_count; i++)
        if (strcmp(metrics->servers[i]->name, name) == 0)
            return metrics->servers[i];
    if (metrics->server_count > SERVERS_KEPT)
        return metrics->servers[SERVERS_KEPT];
    struct counted_server *new = calloc(1, sizeof *new);
    if (!new)
        return NULL;
    snprintf(new->name, sizeof new->name, "%s",
             metrics->server_count < SERVERS_KEPT ? name : "others");
    return metrics->servers[metrics->server_count++] = new;
}

static int count_servers(struct metrics *metrics, const struct metrics_interval *interval)
{
    for (size_t i = 0; i < interval->servers->all.count; i++) {
        const struct watch_server *server = &interval->servers->all.items[i];
        if (server->application == NO_APPLICATION)
            continue;
        struct counted_server *counted = find_server(metrics, server->name);
        if (!counted)
            return -1;
        counted->requests += server->requests.count;
        counted->looked_at += server->requests.looked_at;
        counted->joined += server->requests.joined;
        count_latencies(counted, interval->run, interval->answers, server->application);
        count_diagnosis(counted, server->requests.diagnosis);
    }
    return 0;
}

int metrics_add(struct metrics *metrics, const struct metrics_interval *interval, struct error *err)
{
    int result = 0;
    pthread_mutex_lock(&metrics->lock);
    metrics->intervals++;
    metrics->own_seconds += interval->own_seconds;
    metrics->recorded_seconds += interval->recorded_seconds;
    metrics->passed_over = interval->passed_over;
    metrics->saved = interval->saved;
    metrics->not_saved = interval->not_saved;
    if (interval->run) {
        const struct run_evidence *evidence = &interval->run->evidence;
        metrics->dropped += evidence->dropped_events + evidence->dropped_calls;
        metrics->framed += evidence->turns_framed;
        metrics->waiting += evidence->turns_waiting;
        metrics->unanswered += evidence->turns_unanswered;
        result = count_servers(metrics, interval);
    }
    pthread_mutex_unlock(&metrics->lock);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for a server's metrics") : 0;
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
    for (size_t i = 0; i < metrics->server_count; i++) {
        const struct counted_server *server = metrics->servers[i];
        format->histogram(out, &(struct metric_labels){1, {{"server", server->name}}},
                          &server->latency);
    }
    format->end(out);
    format->begin(out, &stages);
    for (size_t i = 0; i < metrics->server_count; i++)
        for (int stage = STAMP_HANDOFF; stage <= STAMP_SERVER_TX; stage++) {
            const struct counted_server *server = metrics->servers[i];
            const char *name = stage_name((enum stamp_kind)stage, 0);
            format->histogram(
                out, &(struct metric_labels){2, {{"server", server->name}, {"stage", name}}},
                &server->stages[stage]);
        }
    format->end(out);
}

// What is counted of each server.
struct server_counter {
    struct metric_family family;
    double (*value)(const struct counted_server *server);
};

static double requests_of(const struct counted_server *server)
{
    return (double)server->requests;
}

static double looked_at_of(const struct counted_server *server)
{
    return (double)server->looked_at;
}

static double joined_of(const struct counted_server *server)
{
    return (double)server->joined;
}

static double without_verdict_of(const struct counted_server *server)
{
    return (double)server->without_verdict;
}

static double extra_of(const struct counted_server *server)
{
    return server->extra;
}

static double explained_of(const struct counted_server *server)
{
    return server->explained;
}

static const struct server_counter server_counters[] = {
    {{"intervals_without_verdict", "", "intervals with requests but no causes (N/A)",
      METRIC_COUNTER},
     without_verdict_of},
    {{"requests", "", "requests that were answered", METRIC_COUNTER}, requests_of},
    {{"looked_at_requests", "", "of these, those of which stages and causes are", METRIC_COUNTER},
     looked_at_of},
    {{"joined_requests", "", "of these, with every stamp", METRIC_COUNTER}, joined_of},
    {{"extra_seconds", "seconds",
      "what the slowest per cent of each interval took longer than its median", METRIC_COUNTER},
     extra_of},
    {{"explained_seconds", "seconds", "of that, what the causes explain", METRIC_COUNTER},
     explained_of},
};

static void write_server_counters(struct metric_output *out, const struct metrics *metrics)
{
    for (size_t c = 0; c < sizeof server_counters / sizeof *server_counters; c++) {
        out->format->begin(out, &server_counters[c].family);
        for (size_t i = 0; i < metrics->server_count; i++) {
            const struct counted_server *server = metrics->servers[i];
            out->format->counter(out, &(struct metric_labels){1, {{"server", server->name}}},
                                 server_counters[c].value(server));
        }
        out->format->end(out);
    }
}

static void write_counters(struct metric_output *out, const struct metrics *metrics)
{
    const struct {
        const char *name, *unit, *help;
        double value;
    } counters[] = {
        {"intervals", "", "intervals that were looked at", (double)metrics->intervals},
        {"passed_over_intervals", "", "intervals that were recorded and not looked at",
         (double)metrics->passed_over},
        {"recorded_seconds", "seconds", "of the intervals; nothing else was (watch --budget)",
         metrics->recorded_seconds},
        {"framed_requests", "", "of the answered, told apart by framing; the others by turns",
         (double)metrics->framed},
        {"waiting_requests", "", "none of the answered: they had asked to be kept waiting",
         (double)metrics->waiting},
        {"unanswered_requests", "", "requests without an answer at the end of their interval",
         (double)metrics->unanswered},
        {"dropped_records", "", "records of the kernel's events that were lost",
         (double)metrics->dropped},
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

static void write_cause(struct metric_output *out, const char *server, const char *cause,
                        const char *category, const char *role, double seconds)
{
    const struct metric_labels labels = {
        4, {{"server", server}, {"cause", cause}, {"category", category}, {"role", role}}};
    out->format->counter(out, &labels, seconds);
}

static void write_causes(struct metric_output *out, const struct metrics *metrics)
{
    static const struct metric_family causes = {
        "cause_seconds", "seconds",
        "what each cause added to the slowest per cent of each interval", METRIC_COUNTER};
    out->format->begin(out, &causes);
    for (size_t s = 0; s < metrics->server_count; s++) {
        const struct counted_server *server = metrics->servers[s];
        for (size_t i = 0; i < server->cause_count; i++) {
            const struct counted_cause *cause = &server->causes[i];
            write_cause(out, server->name, cause->name, cause->category, role_name(cause->role),
                        cause->seconds);
        }
        if (server->other_causes > 0)
            write_cause(out, server->name, "others", "others", "", server->other_causes);
    }
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
    write_server_counters(&out, metrics);
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

// ":9411" is this host's own alone.
static int resolve(const char *text, struct server_address *address, struct error *err)
{
    char whole[ADDRESS_BYTES + 16];
    struct error problem;
    snprintf(whole, sizeof whole, "%s%.*s", text[0] == ':' ? "127.0.0.1" : "", ADDRESS_BYTES, text);
    if (server_address_parse(whole, address, &problem) < 0 || address->transport != SERVER_TCP)
        return error_set(err, ERROR_INPUT,
                         "--metrics \"%.260s\": not like 127.0.0.1:9411, [::1]:9411, or :9411 for "
                         "this host alone",
                         text);
    if (server_address_resolve(address, &problem) < 0)
        return error_set(err, ERROR_INPUT, "--metrics %.260s: %s", text, problem.text);
    return 0;
}

static int listen_on(struct metrics *metrics, const char *text, struct error *err)
{
    struct server_address address;
    const int yes = 1;
    int result = resolve(text, &address, err);
    if (result < 0)
        return result;
    const struct sockaddr *place = (const void *)&address.socket_address;
    int listener = socket(place->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(listener, place, address.socket_address_bytes) < 0 || listen(listener, 16) < 0) {
        result = error_set_errno(err, ERROR_INPUT, "--metrics %.260s: cannot listen there", text);
    } else if (evhttp_accept_socket(metrics->http, listener) < 0) {
        result = error_set(err, ERROR_FAILED, "no memory for a server of metrics");
    } else {
        return 0;
    }
    if (listener >= 0)
        close(listener);
    return result;
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
    for (size_t i = 0; i < metrics->server_count; i++)
        free(metrics->servers[i]);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}
