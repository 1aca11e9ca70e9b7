// SPDX-License-Identifier: MIT
//
// What a hop of Time Capsule costs, in ns a packet, as the kernel itself times its programs
// (BPF_PROG_TEST_RUN): a stamp appended to a packet, a trailer begun, and taken off with all stamps
// recorded; beside them the hop that only looks, and packets that nobody asked for.
//
// The kernel's clock is read around each timed run, so what is below is less an empty program's
// time, timed the same way and alternated with the others. What disturbs a run only adds to it: a
// figure is the median over the rounds of each round's QUIET quantile.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stddef.h>

#include "profiler/bpf/capsule_trailer.h"
#include "profiler/capsule/hop_rings.h"
#include "profiler/capsule/packet_words.h"
#include "tests/bench/bench.h"
#include "tests/profiler/capsule/capsule_frames.h"
#include "tests/profiler/capsule/capsule_programs.h"

enum { ROUNDS = 9, TRIES = 1500, PAYLOAD = 200, APPENDS = 8, STAMPS = 10, RING_BYTES = 1 << 20 };
#define QUIET 0.2

enum kind { EMPTY, LOOK, LOOK_TCP, UNSAMPLED, UNASKED, BEGIN, APPEND, END, PLAIN_CARRY, KINDS };
static const struct {
    const char *name, *means;
    int repeat; // runs that the kernel times as one
} kinds[KINDS] = {
    [EMPTY] = {"empty", "a program that does nothing (taken off below)", 1},
    [LOOK] = {"look_udp", "a hop that looks, at a datagram", 1},
    [LOOK_TCP] = {"look_tcp", "the same, at a segment", 1},
    [UNSAMPLED] = {"look_unsampled", "the same, at a datagram that is not sampled", 1},
    [UNASKED] = {"look_unasked", "the same, at a datagram of another port", 1},
    [BEGIN] = {"begin", "a trailer with its first stamp", 1},
    [APPEND] = {"append", "one more stamp (each of 8 in turn)", APPENDS},
    [END] = {"strip", "a trailer of 9 stamps taken off, and recorded with the tenth", 1},
    [PLAIN_CARRY] = {"carry_plain", "a packet that carries none, at a hop that carries", 1},
};

struct scene {
    struct capsule_bpf *programs, *sampling;
    struct hop_rings rings;
    int empty;
    uint64_t recorded;
    struct frame frames[KINDS];
};

// Counts what the programs recorded.
static void take(void *context, const struct hop_slot *slot, const uint64_t *stamps, size_t count)
{
    (void)slot, (void)stamps, (void)count;
    ++*(uint64_t *)context;
}

static struct capsule_bpf *load_hop(const struct hop_rings *rings, uint32_t sample_limit)
{
    struct capsule_bpf *programs = capsule_bpf__open();
    if (!programs)
        bench_fail("the hops' programs cannot be opened");
    programs->rodata->key = 4711;
    programs->rodata->run = 31;
    programs->rodata->asked = 0x7fff;
    programs->rodata->stamps_room = STAMPS;
    programs->bss->room_bytes = 1500;
    programs->rodata->link_bytes = LINK_BYTES;
    programs->rodata->sample_limit = sample_limit;
    packet_filter_parse("port 11211", &programs->rodata->filter, NULL);
    if (hop_rings_share(rings, programs->maps.slots, programs->maps.rings) < 0 ||
        capsule_bpf__load(programs) < 0)
        bench_fail("the hops' programs cannot be loaded: %s", strerror(errno));
    return programs;
}

static int load_empty(void)
{
    const struct bpf_insn instructions[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
        {.code = BPF_JMP | BPF_EXIT}};
    int program = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "empty", "GPL", instructions, 2, NULL);
    if (program < 0)
        bench_fail("an empty program cannot be loaded: %s", strerror(errno));
    return program;
}

static int program_of(const struct scene *scene, enum kind kind)
{
    const struct capsule_bpf *programs = kind == UNSAMPLED ? scene->sampling : scene->programs;
    switch (kind) {
    case EMPTY:
        return scene->empty;
    case BEGIN:
        return bpf_program__fd(programs->progs.hop_begin);
    case APPEND:
    case PLAIN_CARRY:
        return bpf_program__fd(programs->progs.hop_carry);
    case END:
        return bpf_program__fd(programs->progs.hop_end);
    default:
        return bpf_program__fd(programs->progs.hop_look);
    }
}

// One run of a program over a packet; ns as the kernel times it. after: what became of it.
static double run_once(int program, const struct frame *frame, int repeat, struct frame *after)
{
    struct bpf_test_run_opts run = {.sz = sizeof run,
                                    .data_in = frame->bytes,
                                    .data_size_in = (uint32_t)frame->count,
                                    .repeat = repeat,
                                    .data_out = after ? after->bytes : NULL,
                                    .data_size_out = after ? sizeof after->bytes : 0};
    if (bpf_prog_test_run_opts(program, &run) < 0)
        bench_fail("BPF_PROG_TEST_RUN: %s", strerror(errno));
    if (after)
        after->count = run.data_size_out;
    return run.duration;
}

static struct frame datagram(void)
{
    struct frame frame;
    ipv4(&frame, 17, 0, 7, 0x4000, 8 + PAYLOAD);
    udp(&frame, PAYLOAD);
    payload(&frame, PAYLOAD, 7);
    return frame;
}

static void frames_make(struct scene *scene)
{
    struct frame carried, segment, other = datagram();
    for (int i = 0; i < KINDS; i++)
        scene->frames[i] = datagram();
    ipv4(&segment, 6, 20, 1, 0x4000, 20 + 12 + PAYLOAD);
    tcp(&segment, 1000, 12);
    payload(&segment, PAYLOAD, 3);
    scene->frames[LOOK_TCP] = segment;
    other.bytes[LINK_BYTES + 22] ^= 0x55; // of the destination's port
    scene->frames[UNASKED] = other;
    run_once(program_of(scene, BEGIN), &scene->frames[BEGIN], 1, &carried);
    scene->frames[APPEND] = carried;
    run_once(program_of(scene, APPEND), &carried, APPENDS, &scene->frames[END]);
    size_t expected = scene->frames[BEGIN].count + trailer_bytes(STAMPS);
    if (scene->frames[END].count != expected)
        bench_fail("a packet with %d stamps has %zu bytes, not %zu", 1 + APPENDS,
                   scene->frames[END].count, expected);
}

// Each kind did what its row says: otherwise its time is of something else.
static void check_counts(const struct scene *scene)
{
    const uint64_t each = (uint64_t)ROUNDS * TRIES;
    const struct hop_counts *counts = &scene->programs->bss->counts[0];
    if (counts->begun != each + 1 || counts->stamped != (each + 1) * APPENDS ||
        counts->ended != each || scene->recorded != 3 * each || counts->dropped ||
        counts->damaged || counts->not_stamped || counts->unsampled != each ||
        scene->sampling->bss->counts[0].unsampled != each)
        bench_fail("the programs did not do what is timed: begun %llu, stamped %llu, ended %llu, "
                   "recorded %llu, dropped %llu",
                   (unsigned long long)counts->begun, (unsigned long long)counts->stamped,
                   (unsigned long long)counts->ended, (unsigned long long)scene->recorded,
                   (unsigned long long)counts->dropped);
}

static void measure_round(struct scene *scene, struct bench_metrics *metrics)
{
    static double times[KINDS][TRIES];
    for (int n = 0; n < TRIES; n++) {
        for (int kind = 0; kind < KINDS; kind++)
            times[kind][n] = run_once(program_of(scene, (enum kind)kind), &scene->frames[kind],
                                      kinds[kind].repeat, NULL);
        hop_rings_drain(&scene->rings, take, &scene->recorded);
    }
    double empty = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        quantile_sort(times[kind], TRIES);
        double ns = quantile_sorted(times[kind], TRIES, QUIET);
        if (kind == EMPTY)
            empty = ns;
        bench_add(metrics, "ns", kind == EMPTY ? ns : ns - empty / kinds[kind].repeat, "%s",
                  kinds[kind].name);
    }
}

int main(void)
{
    struct scene scene = {.empty = -1};
    static struct bench_metrics metrics;
    if (!programs_can_be_loaded())
        return 77;
    if (hop_rings_open(&scene.rings, RING_BYTES) < 0)
        bench_fail("the rings cannot be made");
    scene.programs = load_hop(&scene.rings, packet_sample_limit(1));
    scene.sampling = load_hop(&scene.rings, 0);
    scene.empty = load_empty();
    frames_make(&scene);
    for (int round = 0; round < ROUNDS; round++) {
        bench_progress("capsule_costs: round %d of %d", round + 1, ROUNDS);
        measure_round(&scene, &metrics);
    }
    bench_progress("%s", "");
    check_counts(&scene);
    printf("  %-16s %8s %8s  ns a packet of %d bytes\n", "", "median", "least", PAYLOAD);
    for (int kind = 0; kind < KINDS; kind++)
        printf("  %-16s %8.0f %8.0f  %s\n", kinds[kind].name,
               bench_median(&metrics, "%s", kinds[kind].name),
               bench_quantile(&metrics, 0, "%s", kinds[kind].name), kinds[kind].means);
    bench_write(&metrics, "capsule_costs");
    hop_rings_close(&scene.rings);
    capsule_bpf__destroy(scene.programs);
    capsule_bpf__destroy(scene.sampling);
    close(scene.empty);
    return 0;
}
