// SPDX-License-Identifier: MIT
//
// A run for the report's tests, made in memory: one memcached thread on core 3 that takes requests
// in order of their hand-off, a receive core 2, and a CPU hog that shares core 3 in the second
// half. Stamps, spans and causes come from the same small simulation, so they agree; the numbers
// resemble a real run (median near 45 us, head-of-line blocking behind the hog).
#ifndef TESTS_ANALYSIS_REPORT_FIXTURE_H
#define TESTS_ANALYSIS_REPORT_FIXTURE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run/run_analysis.h"

enum { FIXTURE_RECEIVE_CORE = 2, FIXTURE_APPLICATION_CORE = 3, FIXTURE_THREAD = 4711 };
enum { FIXTURE_BEGIN_NS = 1000000000 };

// Names of spans; the hog's is hostile on purpose in the odd variant.
enum fixture_name { NAME_IDLE, NAME_MEMCACHED, NAME_HOG, NAME_NET_RX, NAME_IRQ, NAME_TIMER, NAMES };

// Causes in the order the simulation knows them.
enum fixture_cause {
    FIXTURE_HOG,
    FIXTURE_BLOCKING,
    FIXTURE_WAKEUP,
    FIXTURE_SOFTIRQ,
    FIXTURE_INTERRUPT,
    FIXTURE_QUEUE,
    FIXTURE_UNEXPLAINED,
    FIXTURE_CAUSES
};

// What a command may give a process for a name: ends a script, quotes, an escape, broken UTF-8,
// a line separator, a right-to-left override.
#define FIXTURE_ODD_NAME "</script><!--\"'\033[31m\xff\xe2\x80\xa8\xe2\x80\xae&"

struct fixture_options {
    size_t requests;
    double rate;
    bool odd;        // hostile names, infinities, NaN, losses
    bool everything; // diagnosed is not the slowest 1 % but every message, once
    bool no_causes;  // diagnosed, but nothing found
    bool no_verdict; // N/A
};

struct fixture {
    struct run_analysis run;
    float (*extra)[FIXTURE_CAUSES]; // per lifetime, ns by cause
    uint64_t random;
    int64_t application_free_ns; // when the thread has nothing left to do
    int64_t receive_free_ns;
    int64_t application_shown_ns; // up to where core 3 has spans
    int64_t receive_shown_ns;
    int64_t next_timer_ns;
    bool idle_before;
};

static double fixture_uniform(struct fixture *f)
{
    f->random ^= f->random << 13;
    f->random ^= f->random >> 7;
    f->random ^= f->random << 17;
    return (double)(f->random >> 11) / 0x1p53;
}

static double fixture_exponential(struct fixture *f, double mean)
{
    return -mean * log(1 - fixture_uniform(f));
}

static void fixture_span(struct fixture *f, uint16_t core, enum span_kind kind, uint32_t id,
                         enum fixture_name name, uint8_t depth, int64_t begin, int64_t end)
{
    struct core_timeline *timeline =
        &f->run.server.cores.items[core == FIXTURE_RECEIVE_CORE ? 0 : 1];
    if (end <= begin)
        return;
    struct span span = {begin, end, id, name, kind, depth};
    if (array_push(&timeline->spans, span) < 0)
        abort();
}

// Whether the hog wants the core then.
static bool fixture_hog_at(const struct fixture *f, int64_t time)
{
    int64_t half = f->run.begin_ns + (f->run.end_ns - f->run.begin_ns) / 2;
    return time > half;
}

// Core 3 from where it was shown up to `until`, when nothing of memcached ran.
static void fixture_fill_application(struct fixture *f, int64_t until)
{
    if (fixture_hog_at(f, until))
        fixture_span(f, FIXTURE_APPLICATION_CORE, SPAN_TASK, 999, NAME_HOG, 0,
                     f->application_shown_ns, until);
    else
        fixture_span(f, FIXTURE_APPLICATION_CORE, SPAN_IDLE, 0, NAME_IDLE, 0,
                     f->application_shown_ns, until);
    if (f->next_timer_ns > f->application_shown_ns && f->next_timer_ns + 2500 < until)
        fixture_span(f, FIXTURE_APPLICATION_CORE, SPAN_VECTOR, 1, NAME_TIMER, 1, f->next_timer_ns,
                     f->next_timer_ns + 2400);
    while (f->next_timer_ns < until)
        f->next_timer_ns += 4000000;
    if (until > f->application_shown_ns)
        f->application_shown_ns = until;
}

// M(n) to M(h) on core 2: an interrupt, then NET_RX.
static void fixture_receive(struct fixture *f, struct lifetime *life, float *extra)
{
    int64_t arrived = life->stamp_ns[STAMP_NIC];
    double delivery = 1200 + fixture_exponential(f, 500);
    if (fixture_uniform(f) < 0.004) {
        double late = 20000 + fixture_exponential(f, 60000);
        extra[FIXTURE_INTERRUPT] = (float)late;
        delivery += late;
    }
    int64_t begin = arrived + (int64_t)delivery;
    if (begin < f->receive_free_ns)
        begin = f->receive_free_ns;
    int64_t handoff = begin + 4200 + (int64_t)fixture_exponential(f, 900);
    fixture_span(f, FIXTURE_RECEIVE_CORE, SPAN_IDLE, 0, NAME_IDLE, 0, f->receive_shown_ns,
                 handoff + 600);
    fixture_span(f, FIXTURE_RECEIVE_CORE, SPAN_IRQ, 31, NAME_IRQ, 1, begin, begin + 1100);
    fixture_span(f, FIXTURE_RECEIVE_CORE, SPAN_SOFTIRQ, 3, NAME_NET_RX, 1, begin + 1200,
                 handoff + 500);
    f->receive_shown_ns = f->receive_free_ns = handoff + 600;
    life->stamp_ns[STAMP_HANDOFF] = handoff;
}

// When the sleeping thread runs after a hand-off: soon, or when the hog's slice is over.
static int64_t fixture_wake(struct fixture *f, int64_t handoff, float *extra)
{
    double wait = 2500 + fixture_exponential(f, 1200);
    if (fixture_hog_at(f, handoff) && fixture_uniform(f) < 0.0012) {
        double slice = 60000 + fixture_exponential(f, 380000);
        extra[FIXTURE_HOG] = (float)slice;
        wait += slice;
    } else if (fixture_uniform(f) < 0.004) {
        double late = 25000 + fixture_exponential(f, 80000);
        extra[FIXTURE_WAKEUP] = (float)late;
        wait += late;
    }
    return handoff + (int64_t)wait;
}

// M(h) to reply on core 3.
static void fixture_serve(struct fixture *f, struct lifetime *life, float *extra)
{
    int64_t handoff = life->stamp_ns[STAMP_HANDOFF], start;
    if (handoff >= f->application_free_ns) {
        start = fixture_wake(f, handoff, extra);
        fixture_fill_application(f, start);
        life->batch_position = 0;
    } else {
        start = f->application_free_ns;
        extra[FIXTURE_BLOCKING] = (float)(start - handoff);
        life->batch_position = 1;
    }
    int64_t received = start + 1500, work = 3000 + (int64_t)fixture_exponential(f, 1200);
    bool disturbed = fixture_uniform(f) < 0.003;
    int64_t softirq = disturbed ? 15000 + (int64_t)fixture_exponential(f, 40000) : 0;
    int64_t reply = received + work + softirq, done = reply + 5200;
    fixture_span(f, FIXTURE_APPLICATION_CORE, SPAN_TASK, FIXTURE_THREAD, NAME_MEMCACHED, 0, start,
                 done);
    if (disturbed) {
        fixture_span(f, FIXTURE_APPLICATION_CORE, SPAN_SOFTIRQ, 3, NAME_NET_RX, 1, received + 500,
                     received + 500 + softirq);
        extra[FIXTURE_SOFTIRQ] = (float)softirq;
    }
    f->application_free_ns = f->application_shown_ns = done;
    life->stamp_ns[STAMP_APPLICATION] = received;
    life->stamp_ns[STAMP_REPLY] = reply;
    life->stamp_ns[STAMP_SERVER_TX] = reply + 4100;
}

static void fixture_finish_life(struct fixture *f, struct lifetime *life)
{
    life->stamp_ns[STAMP_CLIENT_RX] =
        life->stamp_ns[STAMP_SERVER_TX] + 3800 + (int64_t)fixture_exponential(f, 700);
    life->stamp_ns[STAMP_REPLY_READ] =
        life->stamp_ns[STAMP_CLIENT_RX] + 2600 + (int64_t)fixture_exponential(f, 1500);
    life->present = (1u << STAMP_KINDS) - 1;
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        life->stamp_core[kind] = NO_CORE;
    life->stamp_core[STAMP_NIC] = life->stamp_core[STAMP_HANDOFF] = FIXTURE_RECEIVE_CORE;
    life->stamp_core[STAMP_APPLICATION] = life->stamp_core[STAMP_REPLY] =
        life->stamp_core[STAMP_SERVER_TX] = FIXTURE_APPLICATION_CORE;
    for (int kind = 1; kind < STAMP_KINDS; kind++)
        life->stage_ns[kind] = (double)(life->stamp_ns[kind] - life->stamp_ns[kind - 1]);
    life->latency_ns = (double)(life->stamp_ns[STAMP_REPLY_READ] - life->stamp_ns[STAMP_INTENDED]);
    life->uncorrected_latency_ns =
        (double)(life->stamp_ns[STAMP_REPLY_READ] - life->stamp_ns[STAMP_SEND]);
    life->thread = FIXTURE_THREAD;
    life->state = LIFETIME_WHOLE;
}

static void fixture_request(struct fixture *f, size_t index, int64_t intended)
{
    struct lifetime life = {.request = index, .connection = (uint32_t)(index * 7 % 16)};
    float *extra = f->extra[index];
    life.operation = fixture_uniform(f) < 0.1;
    life.stamp_ns[STAMP_INTENDED] = intended;
    double queue = 900 + fixture_exponential(f, 500);
    if (fixture_uniform(f) < 0.002) {
        extra[FIXTURE_QUEUE] = (float)(8000 + fixture_exponential(f, 20000));
        queue += (double)extra[FIXTURE_QUEUE];
    }
    life.stamp_ns[STAMP_SEND] = intended + (int64_t)queue;
    life.stamp_ns[STAMP_CLIENT_TX] =
        life.stamp_ns[STAMP_SEND] + 5200 + (int64_t)fixture_exponential(f, 1300);
    life.stamp_ns[STAMP_NIC] =
        life.stamp_ns[STAMP_CLIENT_TX] + 2600 + (int64_t)fixture_exponential(f, 500);
    fixture_receive(f, &life, extra);
    fixture_serve(f, &life, extra);
    fixture_finish_life(f, &life);
    if (array_push(&f->run.lifetimes, life) < 0)
        abort();
}

// --- statistics ----------------------------------------------------------------------------------

static void fixture_latency(const struct run_analysis *run, bool corrected,
                            struct latency_summary *out)
{
    double *values = calloc(run->lifetimes.count + 1, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.count; i++) {
        const struct lifetime *life = &run->lifetimes.items[i];
        double value = corrected ? life->latency_ns : life->uncorrected_latency_ns;
        if (!isnan(value))
            values[count++] = value;
    }
    quantile_sort(values, count);
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        out->value_ns[i] = quantile_sorted(values, count, latency_quantiles[i]);
        out->interval_ns[i] = quantile_interval_sorted(values, count, latency_quantiles[i], 0.95);
    }
    free(values);
}

// Mean stages of the messages within 10 % of each quantile's latency.
static void fixture_stages(struct run_analysis *run)
{
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        double sums[STAGES] = {0}, number = 0, at = run->latency.value_ns[i];
        for (size_t m = 0; m < run->lifetimes.count; m++) {
            const struct lifetime *life = &run->lifetimes.items[m];
            if (life->state != LIFETIME_WHOLE || fabs(life->latency_ns - at) > at / 10)
                continue;
            number++;
            for (int stage = 0; stage < STAGES; stage++)
                sums[stage] += life->stage_ns[stage];
        }
        for (int stage = 0; stage < STAGES; stage++)
            run->stage_at_quantile_ns[i][stage] = number > 0 ? sums[stage] / number : 0;
    }
}

static void fixture_cause_statistics(struct diagnosis *diagnosis, struct cause *cause,
                                     uint32_t index)
{
    double *values = calloc(diagnosis->attributions.count + 1, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; i < diagnosis->attributions.count; i++) {
        if (diagnosis->attributions.items[i].cause != index)
            continue;
        values[count] = (double)diagnosis->attributions.items[i].ns;
        cause->total_ns += values[count++];
    }
    quantile_sort(values, count);
    cause->messages = count;
    cause->min_ns = quantile_sorted(values, count, 0);
    cause->p25_ns = quantile_sorted(values, count, 0.25);
    cause->median_ns = quantile_sorted(values, count, 0.5);
    cause->p75_ns = quantile_sorted(values, count, 0.75);
    cause->max_ns = quantile_sorted(values, count, 1);
    free(values);
}

static int fixture_compare_causes(const void *a, const void *b)
{
    double x = ((const struct cause *)a)->total_ns, y = ((const struct cause *)b)->total_ns;
    return (x < y) - (x > y);
}

// Fills the causes, largest total first, and renumbers the attributions.
static void fixture_causes(struct diagnosis *diagnosis, bool odd)
{
    static const struct {
        const char *name, *category;
        enum core_role role;
        enum cause_class class;
    } known[FIXTURE_CAUSES] = {
        {"yes", "other programs", ROLE_A, CAUSE_CONTEXT},
        {"head-of-line blocking", "head-of-line blocking", ROLE_A, CAUSE_BLOCKING},
        {"wake-up latency", "scheduling", ROLE_A, CAUSE_GAP},
        {"NET_RX softirq", "receive processing", ROLE_A, CAUSE_CONTEXT},
        {"interrupt delivery", "NIC delay", ROLE_R, CAUSE_GAP},
        {"client queue", "client", ROLE_CLIENT, CAUSE_STAGE},
        {"in an expected context", "application", ROLE_A, CAUSE_UNEXPLAINED},
    };
    uint32_t renumbered[FIXTURE_CAUSES] = {0};
    for (uint32_t i = 0; i < FIXTURE_CAUSES; i++) {
        struct cause cause = {.role = known[i].role, .class = known[i].class};
        // So that sorting can tell which is which.
        snprintf(cause.name, sizeof cause.name, "%s",
                 odd && i == FIXTURE_HOG ? FIXTURE_ODD_NAME : known[i].name);
        snprintf(cause.category, sizeof cause.category, "%s",
                 odd && i == FIXTURE_HOG ? "</script><b>web tier" : known[i].category);
        cause.explains = known[i].class != CAUSE_UNEXPLAINED;
        fixture_cause_statistics(diagnosis, &cause, i);
        if (cause.messages && array_push(&diagnosis->causes, cause) < 0)
            abort();
    }
    if (diagnosis->causes.count)
        qsort(diagnosis->causes.items, diagnosis->causes.count, sizeof(struct cause),
              fixture_compare_causes);
    for (uint32_t i = 0; i < FIXTURE_CAUSES; i++)
        for (uint32_t j = 0; j < diagnosis->causes.count; j++)
            if (diagnosis->causes.items[j].role == known[i].role &&
                diagnosis->causes.items[j].class == known[i].class &&
                (known[i].class != CAUSE_CONTEXT ||
                 (strncmp(diagnosis->causes.items[j].name, "NET_RX", 6) == 0) ==
                     (i == FIXTURE_SOFTIRQ)))
                renumbered[i] = j;
    for (size_t i = 0; i < diagnosis->attributions.count; i++)
        diagnosis->attributions.items[i].cause = renumbered[diagnosis->attributions.items[i].cause];
}

static void fixture_attribute(struct fixture *f, struct diagnosis *diagnosis, size_t index,
                              double reference)
{
    const float *extra = f->extra[index];
    struct diagnosed_message message = {.lifetime = index};
    message.deviation_ns = f->run.lifetimes.items[index].latency_ns - reference;
    double left = message.deviation_ns;
    for (uint32_t i = 0; i < FIXTURE_CAUSES; i++) {
        double ns = i == FIXTURE_UNEXPLAINED ? left : fmin((double)extra[i], left);
        if (ns < 500)
            continue;
        if (i != FIXTURE_UNEXPLAINED)
            message.explained_ns += ns;
        left -= ns;
        if (array_push(&diagnosis->attributions, (struct attribution){index, i, (float)ns}) < 0)
            abort();
    }
    if (array_push(&diagnosis->messages, message) < 0)
        abort();
}

static int fixture_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fixture_coverage(struct diagnosis *diagnosis)
{
    size_t count = diagnosis->messages.count;
    double *shares = calloc(count + 1, sizeof *shares), explained = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[i];
        shares[i] = message->explained_ns / message->deviation_ns;
        explained += message->explained_ns;
        all += message->deviation_ns;
    }
    qsort(shares, count, sizeof *shares, fixture_compare_doubles);
    diagnosis->coverage_median = quantile_sorted(shares, count, 0.5);
    diagnosis->coverage_min = quantile_sorted(shares, count, 0);
    diagnosis->coverage_total = count ? explained / all : NAN;
    free(shares);
}

struct fixture_ranked {
    double latency;
    size_t index;
};

static int fixture_compare_ranked(const void *a, const void *b)
{
    double x = ((const struct fixture_ranked *)a)->latency;
    double y = ((const struct fixture_ranked *)b)->latency;
    return (x < y) - (x > y);
}

// Queues and blockers of about the right kind: the requests before a message held it up.
static void fixture_views(struct fixture *f, struct diagnosis *diagnosis)
{
    struct diagnosis_views *views = &diagnosis->views;
    const struct spread few = {0.4, 0, 0, 0, 1, 5}, many = {7.5, 0, 2, 6, 11, 61};
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        uint64_t lifetime = diagnosis->messages.items[i].lifetime;
        struct message_view view = {.first_blocker = views->blockers.count};
        for (int kind = 0; kind < QUEUE_KINDS; kind++)
            view.ahead[kind] = (uint32_t)(fixture_uniform(f) * 20);
        for (uint64_t b = 1; b <= 12 && b <= lifetime; b++, view.blockers++)
            if (array_push(&views->blockers, (struct blocker){.lifetime = lifetime - b,
                                                              .ns = (float)(90000 / b),
                                                              .scope = (uint8_t)(b % 3)}) < 0)
                abort();
        view.blocked_by[BLOCKED_BY_THREAD] = view.blockers;
        if (array_push(&views->messages, view) < 0)
            abort();
    }
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        views->queue[kind] = (struct queue_summary){{many, few}, {many, few}, 100};
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
        views->blocking[scope] = (struct blocking_summary){100, 2e7, 2e5, {2e5, 1e3}};
    static const struct core_context contexts[] = {
        {"NET_RX softirq", ROLE_R, FIXTURE_RECEIVE_CORE, {2e6, 4e6}},
        {"yes", ROLE_A, FIXTURE_APPLICATION_CORE, {6e7, 1e5}},
        {"memcached", ROLE_A, FIXTURE_APPLICATION_CORE, {3e7, 2e7}},
        {"idle", ROLE_A, FIXTURE_APPLICATION_CORE, {1e6, 3e6}}};
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        views->context_ns[VIEW_SLICE] += contexts[i].ns[VIEW_SLICE];
        views->context_ns[VIEW_REFERENCE] += contexts[i].ns[VIEW_REFERENCE];
        if (array_push(&views->contexts, contexts[i]) < 0)
            abort();
    }
    struct named_blocker worst = {.messages = 12, .total_ns = 3e6};
    if (array_push(&views->worst, worst) < 0)
        abort();
    views->available = true;
}

// The slowest 1 % of a window.
// Receive lifetimes have two of the whole's causes, service lifetimes none, those of sending are
// not available.
static void fixture_parts(struct run_analysis *run, const struct diagnosis *whole)
{
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        struct diagnosis one = {.part = (enum lifetime_part)part,
                                .without_part = part == PART_SEND,
                                .not_available = part == PART_SEND,
                                .reason = "no answer's departure was seen",
                                .slice_low_ns = whole->slice_low_ns / 2,
                                .reference_latency_ns = whole->reference_latency_ns / 2,
                                .coverage_total = 0.9};
        for (size_t i = 0; part == PART_RECEIVE && i < whole->causes.count && i < 2; i++)
            if (array_push(&one.causes, whole->causes.items[i]) < 0)
                abort();
        if (array_push(&run->part_diagnoses, one) < 0)
            abort();
    }
}

static void fixture_diagnose(struct fixture *f, const struct fixture_options *options, int64_t from,
                             int64_t to)
{
    struct run_analysis *run = &f->run;
    struct diagnosis diagnosis = {.granularity_ns = 500};
    diagnosis.slice.low = options->everything ? 0 : 0.99;
    diagnosis.slice.high = 1;
    diagnosis.slice.from_ns = from;
    diagnosis.slice.to_ns = to;
    struct fixture_ranked *ranked = calloc(run->lifetimes.count + 1, sizeof *ranked);
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.count; i++) {
        const struct lifetime *life = &run->lifetimes.items[i];
        int64_t at = life->stamp_ns[STAMP_INTENDED];
        if (from != to && (at < from || at >= to))
            continue;
        if (life->state == LIFETIME_WHOLE)
            ranked[count++] = (struct fixture_ranked){life->latency_ns, i};
        else
            diagnosis.left_out[life->state]++;
    }
    qsort(ranked, count, sizeof *ranked, fixture_compare_ranked);
    diagnosis.candidates = count;
    diagnosis.reference_count = count / 5;
    diagnosis.reference_latency_ns = count ? ranked[count / 2].latency : NAN;
    size_t slow = options->everything ? count : (count + 99) / 100;
    for (size_t i = 0; !options->no_causes && i < slow; i++)
        fixture_attribute(f, &diagnosis, ranked[i].index, diagnosis.reference_latency_ns);
    diagnosis.slice_high_ns = count ? ranked[0].latency : NAN;
    diagnosis.slice_low_ns = slow ? ranked[slow - 1].latency : NAN;
    if (options->no_verdict) {
        diagnosis.not_available = true;
        snprintf(diagnosis.reason, sizeof diagnosis.reason, "only %zu of %zu requests were joined",
                 count, run->lifetimes.count);
    }
    fixture_causes(&diagnosis, options->odd);
    fixture_coverage(&diagnosis);
    free(ranked);
    if (!options->no_verdict && diagnosis.messages.count)
        fixture_views(f, &diagnosis);
    fixture_parts(run, &diagnosis);
    if (array_push(&run->diagnoses, diagnosis) < 0)
        abort();
}

// --- the whole -----------------------------------------------------------------------------------

static void fixture_names(struct fixture *f, bool odd)
{
    static const char *const names[NAMES] = {"idle",   "memcached",       "yes",
                                             "NET_RX", "virtio1-input.0", "local timer"};
    for (int i = 0; i < NAMES; i++)
        if (array_push(&f->run.server.names,
                       strdup(odd && i == NAME_HOG ? FIXTURE_ODD_NAME : names[i])) < 0)
            abort();
    for (uint16_t core = FIXTURE_RECEIVE_CORE; core <= FIXTURE_APPLICATION_CORE; core++)
        if (array_push(&f->run.server.cores, (struct core_timeline){.core = core}) < 0)
            abort();
    f->run.application_threads = malloc(sizeof(uint32_t));
    f->run.application_threads[0] = FIXTURE_THREAD;
    f->run.application_thread_count = 1;
}

// Every fiftieth request without an answer, every ninetieth never sent, some without a stamp.
static void fixture_lose(struct run_analysis *run)
{
    for (size_t i = 0; i < run->lifetimes.count; i++) {
        struct lifetime *life = &run->lifetimes.items[i];
        bool unanswered = i % 50 == 7, unsent = i % 90 == 11;
        if (unanswered || unsent) {
            life->state = LIFETIME_UNANSWERED;
            life->latency_ns = INFINITY;
            life->uncorrected_latency_ns = unsent ? NAN : INFINITY;
            life->present = unsent ? 1 : 3;
        } else if (i % 70 == 13) {
            life->state = LIFETIME_NO_NIC;
            life->present &= (uint16_t) ~(1u << STAMP_NIC);
            life->stamp_ns[STAMP_NIC] = 0;
            life->stage_ns[STAMP_HANDOFF] += life->stage_ns[STAMP_NIC];
            life->stage_ns[STAMP_NIC] = 0;
        }
        run->unsent += unsent;
        run->timed_out += unanswered && !unsent;
    }
    run->dropped_events = 12;
    run->server.unpaired = 3;
    run->order_violations = 2;
    run->worst_disorder_ns = 910;
}

// What stood beside the server: tuned, and not, and a neighbour under load.
static void fixture_setup(json_t *experiment)
{
    json_object_set_new(experiment, "tuned",
                        json_pack("[{s:s,s:s,s:s,s:s,s:s,s:b,s:n}, {s:s,s:s,s:s,s:s,s:n,s:b,s:s}]",
                                  "host", "server", "setting", "sysctl", "path",
                                  "/proc/sys/kernel/numa_balancing", "value", "0", "old", "1",
                                  "applied", 1, "reason", "host", "server", "setting", "governor",
                                  "path", "/sys/devices/</script>", "value", "performance", "old",
                                  "applied", 0, "reason", "No such file or directory"));
    json_object_set_new(experiment, "neighbour_loads",
                        json_pack("[{s:s,s:s,s:i,s:f,s:f,s:f}]", "name", "web", "file",
                                  "nginx-web/load.json", "rate", 5000, "achieved_rate", 4998.7,
                                  "p50_us", 144.2, "p99_us", 4613.0));
}

static void fixture_documents(struct run_analysis *run)
{
    run->experiment = json_pack("{s:s, s:{s:s, s:i}, s:{s:{s:i, s:i}}, s:{s:f, s:s, s:i}}", "name",
                                "quickstart", "server", "kind", "memcached", "threads", 1,
                                "workload", "mix", "get", 90, "set", 10, "load", "rate",
                                run->offered_rate, "arrivals", "exponential", "connections", 16);
    run->load = json_pack("{s:i, s:i}", "tx_stamps_unmatched", 0, "timed_out", (int)run->timed_out);
    if (run->timed_out) {
        json_object_set_new(run->load, "reasons",
                            json_pack("[s]", "some requests had to wait for a connection"));
        fixture_setup(run->experiment);
    }
    run->capture = json_pack("{s:s, s:i, s:i}", "backend", "events", "events", 812345, "dropped",
                             (int)run->dropped_events);
    run->facts = json_pack("{s:{s:s, s:i}}", "server", "kernel", "6.18.0", "cores", 4);
}

static void fixture_summarise(struct run_analysis *run, const struct fixture_options *options)
{
    run->scheduled = run->lifetimes.count;
    for (size_t i = 0; i < run->lifetimes.count; i++)
        run->states[run->lifetimes.items[i].state]++;
    run->sent = run->scheduled - run->unsent;
    run->answered = run->scheduled - run->states[LIFETIME_UNANSWERED];
    run->offered_rate = options->rate;
    run->achieved_rate = options->rate * 0.9996;
    run->lateness_p50_ns = 1240;
    run->lateness_p99_ns = 8900;
    run->clock_error_ns = 38;
    fixture_latency(run, true, &run->latency);
    fixture_latency(run, false, &run->uncorrected_latency);
    fixture_stages(run);
}

static void fixture_verdict(struct run_analysis *run, const struct fixture_options *options)
{
    run->verdict_available = !options->no_verdict;
    if (options->no_verdict)
        snprintf(run->verdict, sizeof run->verdict, "N/A: too few requests could be followed.");
    else if (options->odd)
        snprintf(run->verdict, sizeof run->verdict, "The tail is %s & co.", FIXTURE_ODD_NAME);
    else
        snprintf(run->verdict, sizeof run->verdict,
                 "The slowest 1 %% of requests took %.0f us to %.2f ms where an ordinary one takes "
                 "%.0f us. Most of the extra time went to head-of-line blocking (A) behind "
                 "requests that waited while yes (A) held the server's core, all of it in the "
                 "second half of the run.",
                 run->diagnoses.items[0].slice_low_ns / 1e3,
                 run->diagnoses.items[0].slice_high_ns / 1e6,
                 run->diagnoses.items[0].reference_latency_ns / 1e3);
}

// Builds the run. Free with fixture_free.
static inline void fixture_build(struct fixture *f, const struct fixture_options *options)
{
    *f = (struct fixture){.random = 88172645463325252u};
    struct run_analysis *run = &f->run;
    double spacing = 1e9 / options->rate;
    snprintf(run->run_dir, sizeof run->run_dir, "runs/quickstart-20250102T030405Z");
    snprintf(run->name, sizeof run->name, "%s", options->odd ? FIXTURE_ODD_NAME : "quickstart");
    run->begin_ns = FIXTURE_BEGIN_NS;
    run->end_ns = FIXTURE_BEGIN_NS + (int64_t)(spacing * (double)options->requests);
    f->extra = calloc(options->requests + 1, sizeof *f->extra);
    f->application_free_ns = f->receive_free_ns = f->application_shown_ns = f->receive_shown_ns =
        f->next_timer_ns = FIXTURE_BEGIN_NS;
    fixture_names(f, options->odd);
    int64_t at = FIXTURE_BEGIN_NS;
    for (size_t i = 0; i < options->requests; i++) {
        fixture_request(f, i, at);
        at += (int64_t)fixture_exponential(f, spacing);
    }
    if (options->odd)
        fixture_lose(run);
    fixture_summarise(run, options);
    if (options->requests) {
        int64_t half = (run->begin_ns + run->end_ns) / 2;
        fixture_diagnose(f, options, 0, 0);
        if (!options->everything) {
            fixture_diagnose(f, options, run->begin_ns, half);
            fixture_diagnose(f, options, half, run->end_ns);
        }
    }
    if (options->requests)
        fixture_verdict(run, options);
    fixture_documents(run);
}

static inline void fixture_free(struct fixture *f)
{
    struct run_analysis *run = &f->run;
    for (size_t i = 0; i < run->diagnoses.count; i++) {
        array_free(&run->diagnoses.items[i].messages);
        array_free(&run->diagnoses.items[i].causes);
        array_free(&run->diagnoses.items[i].attributions);
        array_free(&run->diagnoses.items[i].views.messages);
        array_free(&run->diagnoses.items[i].views.blockers);
        array_free(&run->diagnoses.items[i].views.contexts);
        array_free(&run->diagnoses.items[i].views.worst);
    }
    array_free(&run->diagnoses);
    for (size_t i = 0; i < run->part_diagnoses.count; i++)
        array_free(&run->part_diagnoses.items[i].causes);
    array_free(&run->part_diagnoses);
    array_free(&run->lifetimes);
    host_timeline_free(&run->server);
    free(run->application_threads);
    json_decref(run->experiment);
    json_decref(run->load);
    json_decref(run->capture);
    json_decref(run->facts);
    free(f->extra);
}

#endif
