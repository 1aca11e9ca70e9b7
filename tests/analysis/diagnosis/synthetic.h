// SPDX-License-Identifier: MIT
//
// Random servers with known truth, as spans: messages that come in over core 1 (interrupt, softirq,
// hand-off) and are served by a thread on core 0, every function call of it known; one to three
// causes at once, at chosen messages, in noise. For every message: how long each cause held it up.
// What the analysis gets is what it would have rebuilt: lifetimes, spans and socket calls.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_H

#include "tests/analysis/diagnosis/synthetic_arrivals.h"
#include "tests/analysis/diagnosis/synthetic_service.h"

static inline int synthetic_by_stint(const void *left, const void *right)
{
    const struct thread_stint *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->begin_ns, b->begin_ns);
}

static inline int synthetic_by_waking(const void *left, const void *right)
{
    const struct waking *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static inline int synthetic_by_moment(const void *left, const void *right)
{
    const struct thread_moment *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static inline int synthetic_by_wait(const void *left, const void *right)
{
    const struct peer_wait *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->begin_ns, b->begin_ns);
}

static inline void synthetic_build(struct synthetic *s, const struct synthetic_options *options)
{
    static const char *const names[] = {
#define SYNTHETIC_TEXT(name)                                                                       \
    [NAME_##name] = NAME_##name == NAME_holder   ? "memcached:lru"                                 \
                    : NAME_##name == NAME_writer ? "redis:bio"                                     \
                                                 : #name,
        SYNTHETIC_NAMES(SYNTHETIC_TEXT)};
    *s = (struct synthetic){.options = *options,
                            .random = options->seed * 2654435761u + 88172645463325252u};
    for (int i = 0; i < 10; i++)
        synthetic_uniform(s);
    size_t count = options->messages;
    s->hit = calloc(count, sizeof *s->hit);
    s->hit_ns = calloc(count, sizeof *s->hit_ns);
    s->connection = calloc(count, sizeof *s->connection);
    s->truth = options->truth ? calloc(count, sizeof *s->truth) : NULL;
    s->turns = options->truth ? calloc(count, sizeof *s->turns) : NULL;
    if (!s->hit || !s->hit_ns || !s->connection || (options->truth && (!s->truth || !s->turns)))
        abort();
    for (size_t i = 0; i < SYNTHETIC_NAME_COUNT; i++)
        SYNTHETIC_PUSH(&s->server.names, strdup(names[i]));
    for (uint16_t core = 0; core < SYNTHETIC_CORES; core++)
        SYNTHETIC_PUSH(&s->server.cores, (struct core_timeline){.core = core});
    if (options->causes)
        synthetic_choose(s);
    synthetic_name_peers(s);
    synthetic_send(s);
    synthetic_receive(s);
    synthetic_application(s);
    synthetic_join_calls(s);
    synthetic_ahead(s);
    struct disorder disorder = {0};
    for (size_t i = 0; i < s->lives.count; i++)
        lifetime_compute_stages(&s->lives.items[i], 0, &disorder);
    synthetic_sum(s);
    array_sort(&s->server.stints, synthetic_by_stint);
    array_sort(&s->server.wakings, synthetic_by_waking);
    array_sort(&s->server.pauses, synthetic_by_moment);
    array_sort(&s->peers.waits, synthetic_by_wait);
    for (size_t c = 0; c < SYNTHETIC_CORES; c++) {
        struct core_timeline *core = &s->server.cores.items[c];
        if (core_timeline_link(core) < 0)
            abort();
        struct time_range all = {core->spans.items[0].begin_ns, INT64_MAX};
        if (options->functions)
            SYNTHETIC_PUSH(&core->traced, all);
    }
}

// Frees what only building needed.
static inline void synthetic_trim(struct synthetic *s)
{
    free(s->turns);
    free(s->hit);
    free(s->hit_ns);
    free(s->connection);
    s->turns = NULL;
    s->hit = NULL;
    s->hit_ns = NULL;
    s->connection = NULL;
}

static inline void synthetic_free(struct synthetic *s)
{
    synthetic_trim(s);
    array_free(&s->lives);
    host_timeline_free(&s->server);
    array_free(&s->calls);
    free(s->truth);
    array_free(&s->hindrances);
    peers_free(&s->peers);
}

static inline struct diagnosis_input synthetic_input(const struct synthetic *s)
{
    static const uint32_t threads[] = {SYNTHETIC_THREAD, SYNTHETIC_OTHER_THREAD};
    static struct application servers[] = {{.name = "memcached"}, {.name = "redis"}};
    static struct application_member members[] = {
        {SYNTHETIC_THREAD, 0, MEMBERSHIP_SERVES},
        {SYNTHETIC_OTHER_THREAD, SYNTHETIC_OTHER, MEMBERSHIP_SERVES}};
    static const struct applications both = {.items = {.items = servers, .count = 2},
                                             .threads = {.items = members, .count = 2}};
    bool other = synthetic_has_other(&s->options);
    return (struct diagnosis_input){.lifetimes = s->lives.items,
                                    .lifetime_count = s->lives.count,
                                    .server = &s->server,
                                    .application_threads = threads,
                                    .application_thread_count = other ? 2 : 1,
                                    .applications = other ? &both : NULL,
                                    .granularity_ns = 500,
                                    .calls = &s->calls,
                                    .peers = &s->peers};
}

#endif
