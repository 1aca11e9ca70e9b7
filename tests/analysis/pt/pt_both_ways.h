// SPDX-License-Identifier: MIT
//
// Walks a trace in both ways, following learned stretches (pt_follow.h) and by libipt's block
// decoder alone, and compares everything that comes out, field by field.
#ifndef TESTS_ANALYSIS_PT_PT_BOTH_WAYS_H
#define TESTS_ANALYSIS_PT_PT_BOTH_WAYS_H

#include "analysis/pt/walk/pt_walk.h"
#include "tests/analysis/pt/pt_round_trip.h"

struct both_ways {
    uint64_t pieces, bytes, followed_bytes, flows, errors; // looked at
    uint64_t paths;                                        // known behind each piece
    uint64_t longest_path;                                 // branches, of those known at the end
    uint64_t trails;                                       // known at the end
    uint64_t followed_errors;                              // found by the fast way itself
};

static inline bool flows_equal(const struct pt_flow *a, const struct pt_flow *b)
{
    return a->tsc == b->tsc && a->from == b->from && a->to == b->to && a->function == b->function &&
           a->instruction == b->instruction && a->error_tsc == b->error_tsc && a->kind == b->kind &&
           a->at_start == b->at_start && a->unmarked == b->unmarked && a->ahead == b->ahead &&
           a->asynchronous == b->asynchronous;
}

static inline bool counts_equal(const struct pt_walk_counts *a, const struct pt_walk_counts *b)
{
    return a->instructions == b->instructions && a->blocks == b->blocks && a->calls == b->calls &&
           a->returns == b->returns && a->interrupts == b->interrupts &&
           a->syscalls == b->syscalls && a->overflows == b->overflows &&
           a->walked_bytes == b->walked_bytes && a->lost_mtc == b->lost_mtc &&
           a->lost_cyc == b->lost_cyc;
}

static inline int pieces_differ(const struct pt_piece *followed, const struct pt_piece *walked)
{
    if (!counts_equal(&followed->counts, &walked->counts) ||
        followed->handed_over != walked->handed_over ||
        followed->errors.count != walked->errors.count ||
        followed->flows.count != walked->flows.count) {
        fprintf(stderr,
                "piece %zu: %" PRIu64 " instructions, %" PRIu64 " blocks, %zu flows, %zu errors "
                "followed; %" PRIu64 ", %" PRIu64 ", %zu, %zu by libipt\n",
                followed->first_sync, followed->counts.instructions, followed->counts.blocks,
                followed->flows.count, followed->errors.count, walked->counts.instructions,
                walked->counts.blocks, walked->flows.count, walked->errors.count);
        for (size_t i = 0; i < walked->errors.count; i++)
            fprintf(stderr, "  libipt at %" PRIu64 ": %s\n", walked->errors.items[i].offset,
                    walked->errors.items[i].what);
        return -1;
    }
    for (size_t i = 0; i < walked->flows.count; i++)
        if (!flows_equal(&followed->flows.items[i], &walked->flows.items[i])) {
            fprintf(stderr, "piece %zu: flow %zu of kind %d at 0x%" PRIx64 " differs\n",
                    followed->first_sync, i, walked->flows.items[i].kind,
                    walked->flows.items[i].from);
            return -1;
        }
    for (size_t i = 0; i < walked->errors.count; i++) {
        const struct pt_walk_error *a = &followed->errors.items[i], *b = &walked->errors.items[i];
        if (a->offset != b->offset || a->ip != b->ip || strcmp(a->what, b->what) != 0) {
            fprintf(stderr, "piece %zu: error %zu differs\n", followed->first_sync, i);
            return -1;
        }
    }
    return 0;
}

// One stream in both ways.
struct both_walkers {
    const struct pt_memory *memory;
    const struct pt_symbols *symbols;
    struct pt_walker *follower, *careful;
};

// How libipt cuts blocks depends on what its cache of code knows, and the fast way learns paths
// only where it comes again; of few paths it soon forgets all. Between
// packets of time few trails are long.
enum { FILLINGS = 3, FEW_PATHS = 5, SHORT_TRAILS = 8 };

static inline void follow_short_trails(struct pt_walker *follower)
{
    follower->trails.early = PT_TRAIL_EARLY;
    follower->trails.least = SHORT_TRAILS;
}

static inline int walk_carefully(struct pt_walker *careful, const struct pt_stream *stream,
                                 size_t first, size_t end, struct pt_piece *walked)
{
    struct error err = {0};
    int result = 0;
    for (int i = 0; result == 0 && i < FILLINGS; i++)
        result = pt_walk(careful, stream, first, end, walked, &err);
    return result;
}

// libipt keeps what it learned of code while a damaged packet had it believe that the processor was
// in another mode, and then misreads the same code: one that has seen nothing else decides.
static inline int pieces_differ_still(const struct both_walkers *walkers,
                                      const struct pt_stream *stream, size_t first, size_t end,
                                      const struct pt_piece *followed)
{
    struct pt_piece walked = {0};
    struct error err = {0};
    struct pt_walker *fresh = pt_walker_alloc(walkers->memory, walkers->symbols, true, &err);
    int result = fresh ? walk_carefully(fresh, stream, first, end, &walked) : -1;
    if (result == 0)
        result = pieces_differ(followed, &walked);
    pt_walker_free(fresh);
    pt_piece_free(&walked);
    return result;
}

// Walks every piece of the stream, each from one PSB that hands over to the next.
static inline int stream_both_ways(const struct both_walkers *walkers,
                                   const struct pt_stream *stream, bool damaged,
                                   struct both_ways *sum)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    struct pt_piece followed = {0}, walked = {0};
    struct error err = {0};
    int result = 0;
    for (size_t first = 0, end; result == 0 && first < syncs->count; first = end) {
        end = first + 1;
        while (end < syncs->count && !syncs->items[end].after_break &&
               !syncs->items[end].hands_over)
            end++;
        result = walk_carefully(walkers->careful, stream, first, end, &walked);
        for (int i = 0; result == 0 && i < FILLINGS; i++)
            result = pt_walk(walkers->follower, stream, first, end, &followed, &err);
        sum->paths += walkers->follower->paths.list.count;
        if (result == 0 && followed.counts.followed_bytes) { // the others are libipt's own
            sum->followed_errors += followed.errors.count;
            result = pieces_differ(&followed, &walked);
            if (result < 0 && damaged)
                result = pieces_differ_still(walkers, stream, first, end, &followed);
        }
        sum->pieces++;
        sum->bytes += followed.counts.walked_bytes;
        sum->followed_bytes += followed.counts.followed_bytes;
        sum->flows += followed.flows.count;
        sum->errors += followed.errors.count;
    }
    pt_piece_free(&followed);
    pt_piece_free(&walked);
    return result;
}

// One with many errata, among them that tracing seems to be switched off asynchronously where a
// virtual machine was entered (SKD022).
static const struct pt_cpu skylake = {
    .vendor = pcv_intel, .family = 6, .model = 0x55, .stepping = 4};

// One CPU of a scenario; `damage` bytes of its trace are overwritten by others.
static inline int both_ways(const struct scenario *scenario, unsigned damage, bool named,
                            struct both_ways *sum)
{
    static struct program program;
    static struct machine machine;
    struct pt_packets packets = {0};
    struct pt_memory memory;
    struct error err = {0};
    struct random_source random = {scenario->seed};
    struct pt_symbols symbols = {.context = &program, .find = program_find};
    program_build(&program, scenario->seed / 8, 0, scenario->rich);
    if (memory_of(&program, &memory, &err) < 0)
        return -1;
    memory.kernel_apart = scenario->seed / 16 % 2;
    int result = machine_run(&machine, &program, scenario);
    size_t bytes = writer_offset(&machine.writer);
    for (unsigned i = 0; i < damage; i++)
        machine.writer.data[random_below(&random, (unsigned)bytes)] = (uint8_t)random_next(&random);
    struct pt_stream stream = {.bytes = {.bytes = bytes, .data = machine.writer.data},
                               .packets = &packets,
                               .changes = &machine.changes,
                               .recorder = scenario_recorder()};
    if (scenario->seed % 5 == 0 && !scenario->faults) // its overflows are left to libipt
        stream.recorder.cpu = skylake;
    if (result == 0)
        result = pt_packets_scan(&stream.bytes, &packets, &err);
    struct both_walkers walkers = {.memory = &memory, .symbols = named ? &symbols : NULL};
    walkers.follower = pt_walker_alloc(&memory, walkers.symbols, false, &err);
    walkers.careful = pt_walker_alloc(&memory, walkers.symbols, true, &err);
    if (walkers.follower && scenario->seed / 7 % 2)
        walkers.follower->paths.most = FEW_PATHS;
    if (walkers.follower && scenario->seed / 3 % 2)
        follow_short_trails(walkers.follower);
    if (result == 0 && walkers.follower && walkers.careful)
        result = stream_both_ways(&walkers, &stream, damage > 0, sum);
    else
        result = -1;
    sum->trails += walkers.follower ? walkers.follower->trails.list.count : 0;
    pt_walker_free(walkers.follower);
    pt_walker_free(walkers.careful);
    pt_packets_free(&packets);
    machine_fini(&machine);
    pt_memory_free(&memory);
    return result;
}

static inline int seeds_both_ways(uint64_t first, uint64_t count, bool damaged,
                                  struct both_ways *sum)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct scenario scenario = {.seed = seed,
                                    .bytes = 1000 + seed * 37 % 5000,
                                    .psb_bytes = 200 + (unsigned)(seed * 211 % 2000),
                                    .faults = seed % 3 == 0,
                                    .rich = seed / 2 % 2};
        if (both_ways(&scenario, damaged ? 1 + (unsigned)seed % 5 : 0, seed % 4 != 0, sum) < 0) {
            fprintf(stderr, "seed %" PRIu64 "\n", seed);
            return -1;
        }
    }
    return 0;
}

#endif
