// SPDX-License-Identifier: MIT
//
// The server of the report's tests (report_fixture.h): request by request its stamps, its spans,
// and how much longer each of its causes made it.
#ifndef TESTS_ANALYSIS_REPORT_REPORT_FIXTURE_SERVER_H
#define TESTS_ANALYSIS_REPORT_REPORT_FIXTURE_SERVER_H

#include <math.h>
#include <stdint.h>
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
    bool samples;    // the processor was sampled
    bool no_causes;  // diagnosed, but nothing found
    bool no_verdict; // N/A
    bool hops;       // of the network
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
        &f->run.evidence.server.cores.items[core == FIXTURE_RECEIVE_CORE ? 0 : 1];
    if (end <= begin)
        return;
    struct span span = {begin, end, id, name, kind, depth};
    if (array_push(&timeline->spans, span) < 0)
        abort();
}

// Whether the hog wants the core then.
static bool fixture_hog_at(const struct fixture *f, int64_t time)
{
    int64_t half =
        f->run.lifetimes.begin_ns + (f->run.lifetimes.end_ns - f->run.lifetimes.begin_ns) / 2;
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
    if (array_push(&f->run.lifetimes.all, life) < 0)
        abort();
}

#endif
