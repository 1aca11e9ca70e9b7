// SPDX-License-Identifier: MIT
//
// What share of wrong byte counts is found in a real server's recording: inject_mismatches RUN
// COUNT SEED. COUNT times one random call of the shim's is made wrong, as the shim would have
// logged it, and all later ones of its direction with it; then the kernel's events are asked, as an
// analysis does. A line of JSON: how many were injected and found, how many calls stood wrong and
// were taken out, and how many of the recording as it is (which should be none).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/call_doubts.h"
#include "analysis/run/input/run_input_open.h"
#include "base/hash.h"

enum mismatch {
    MISMATCH_MISSED,  // the call was not seen: its bytes are in no count
    MISMATCH_SHORT,   // some of its bytes were not counted
    MISMATCH_STRANGE, // bytes of something else were counted before it
    MISMATCHES
};
static const char *const names[MISMATCHES] = {"missed", "short", "strange"};

struct tally {
    uint64_t injected, found, wrong, taken_out;
};

struct injection {
    uint32_t connection;
    uint8_t kind;
    uint64_t from; // calls at or behind this offset of the right log stand wrong
    int64_t by;    // by so many bytes
};

// Makes *out of the right calls. Returns how many are wrong in it.
static uint64_t inject(const struct application_calls *right, size_t chosen, enum mismatch how,
                       uint64_t random, struct application_calls *out, struct injection *made)
{
    const struct application_call *one = &right->items[chosen];
    const uint32_t missed = how == MISMATCH_MISSED || one->length < 2
                                ? one->length
                                : 1 + (uint32_t)(random % (one->length - 1));
    *made = (struct injection){one->connection, one->kind, one->offset, -(int64_t)missed};
    if (how == MISMATCH_STRANGE)
        made->by = 1 + (int64_t)(random % 4096);
    uint64_t wrong = 0;
    out->count = 0;
    for (size_t i = 0; i < right->count; i++) {
        struct application_call call = right->items[i];
        const bool later = call.connection == made->connection && call.kind == made->kind &&
                           call.offset >= made->from;
        if (i == chosen && how == MISMATCH_MISSED)
            continue;
        if (i == chosen && how == MISMATCH_SHORT)
            call.length -= missed;
        else if (later)
            call.offset += (uint64_t)made->by;
        wrong += later;
        out->items[out->count++] = call;
    }
    return wrong;
}

static uint64_t wrong_left(const struct application_calls *calls, const struct injection *made)
{
    uint64_t left = 0;
    for (size_t i = 0; i < calls->count; i++) {
        const struct application_call *call = &calls->items[i];
        left += call->connection == made->connection && call->kind == made->kind &&
                (int64_t)call->offset >= (int64_t)made->from + (made->by > 0 ? made->by : 0);
    }
    return left;
}

static bool may_be_chosen(const struct application_call *call)
{
    return (call->kind == CALL_RECEIVE || call->kind == CALL_SEND) && call->length > 0;
}

static int measure(const struct application_calls *right, const struct call_doubts_input *in,
                   unsigned count, uint64_t seed, struct tally tallies[MISMATCHES])
{
    struct application_calls working = {0};
    struct call_doubts doubts;
    int result = array_reserve(&working, right->count + 1);
    for (unsigned i = 0; i < count && result == 0; i++) {
        const enum mismatch how = (enum mismatch)(i % MISMATCHES);
        size_t chosen = hash64(seed + i) % right->count;
        while (!may_be_chosen(&right->items[chosen]))
            chosen = (chosen + 1) % right->count;
        struct injection made;
        struct tally *tally = &tallies[how];
        uint64_t wrong = inject(right, chosen, how, hash64(~seed - i), &working, &made);
        result = call_doubts_settle(&working, in, &doubts);
        tally->injected++;
        tally->found += doubts.sockets > 0;
        tally->wrong += wrong;
        uint64_t left = wrong_left(&working, &made);
        tally->taken_out += wrong > left ? wrong - left : 0;
    }
    array_free(&working);
    return result;
}

static int measure_run(const char *run, unsigned count, uint64_t seed, struct error *err)
{
    struct run_input input;
    struct application_calls right = {0};
    struct tally tallies[MISMATCHES] = {0};
    struct call_doubts doubts = {0};
    uint64_t damaged, found = 0, injected = 0;
    int result = run_input_open(&input, run, NULL, (struct run_segment_range){0},
                                &(struct progress){.quiet = true}, err);
    if (result < 0)
        return result;
    result = application_calls_build(input.calls.records, input.calls.count - input.calls_by_kernel,
                                     &input.clock, &right, &damaged, err);
    const struct call_doubts_input in = {.connections = input.shim_connections.records,
                                         .connection_count = input.shim_connections.count -
                                                             input.kernel_calls.connections.count,
                                         .events = input.events.records,
                                         .event_count = input.events.count,
                                         .sockets = input.sockets.records,
                                         .socket_count = input.sockets.count,
                                         .clock = input.clock};
    if (result == 0 && (!input.has_events || right.count < 100))
        result = error_set(err, ERROR_INPUT, "%s: too few calls, or no events", run);
    if (result == 0 && (call_doubts_settle(&right, &in, &doubts) < 0 ||
                        measure(&right, &in, count, seed, tallies) < 0))
        result = error_set(err, ERROR_FAILED, "no memory");
    for (int how = 0; how < MISMATCHES && result == 0; how++) {
        const struct tally *tally = &tallies[how];
        printf("%s%s: %" PRIu64 " of %" PRIu64 " found, %" PRIu64 " of %" PRIu64
               " wrong calls taken out",
               how ? "; " : "", names[how], tally->found, tally->injected, tally->taken_out,
               tally->wrong);
        found += tally->found;
        injected += tally->injected;
    }
    if (result == 0)
        printf("; all: %" PRIu64 " of %" PRIu64 " (%.1f %%); of the %zu calls as they were %" PRIu64
               " are doubted\n",
               found, injected, 100.0 * (double)found / (double)injected, right.count,
               doubts.calls);
    array_free(&right);
    run_input_close(&input);
    return result;
}

int main(int argc, char **argv)
{
    struct error err;
    if (argc != 4 ||
        measure_run(argv[1], (unsigned)atoi(argv[2]), strtoull(argv[3], NULL, 10), &err) < 0) {
        fprintf(stderr, "inject_mismatches: %s\n", argc == 4 ? err.text : "RUN COUNT SEED");
        return 1;
    }
    return 0;
}
