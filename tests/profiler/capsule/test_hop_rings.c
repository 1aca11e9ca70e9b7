// SPDX-License-Identifier: MIT
//
// The rings of the hops from the reader's side, with a writer of its own in place of the programs:
// all that is written comes in order, round the ring and over several slots, and what is not
// written yet is waited for, and counted where it never is.
// Runs beside others: it sends nothing and asserts no times.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profiler/capsule/hop_rings.h"
#include "tests/skip.h"

struct scene {
    struct hop_rings rings;
    uint64_t taken, expected; // things; the number of the next one
};

// What is number `n` carries so many stamps.
static uint32_t stamps_of(uint64_t n)
{
    return (uint32_t)(n * 7 % (HOPS_MAX + 1));
}

static void take(void *context, const struct hop_slot *slot, const uint64_t *stamps, size_t count)
{
    struct scene *scene = context;
    assert_int_equal(slot->record.flow, scene->expected);
    assert_int_equal(count, stamps_of(scene->expected));
    assert_int_equal(slot->what & 255, count ? HOP_SLOT_CARRIED : HOP_SLOT_RECORD);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(stamps[i], scene->expected * 100 + i);
    scene->expected++;
    scene->taken++;
}

// As a program writes it (profiler/bpf/hop_rings.bpf.h). False: there is no room.
static bool write_one(struct scene *scene, size_t core, uint64_t n)
{
    struct hop_ring *ring = &scene->rings.rings[core];
    struct hop_slot *slots = scene->rings.slots + ring->base;
    uint32_t stamps = stamps_of(n), needed = 1 + hop_slots_behind(stamps);
    if (ring->head + needed - ring->tail > (uint64_t)ring->mask + 1)
        return false;
    struct hop_slot *slot = &slots[ring->head & ring->mask];
    for (uint32_t i = 0; i < stamps; i++)
        slots[(ring->head + 1 + i / HOP_SLOT_STAMPS) & ring->mask].stamps[i % HOP_SLOT_STAMPS] =
            n * 100 + i;
    slot->record = (struct hop_record){.flow = n};
    slot->what = (stamps ? HOP_SLOT_CARRIED : HOP_SLOT_RECORD) | (uint64_t)stamps << 8;
    ring->head += needed;
    return true;
}

static void begin(struct scene *scene)
{
    *scene = (struct scene){.expected = 0};
    int result = hop_rings_open(&scene->rings, 1);
    if (result == -EPERM)
        skip_case("BPF maps cannot be made here");
    assert_int_equal(result, 0);
}

static void all_comes_in_order_round_the_ring(void **state)
{
    (void)state;
    enum { THINGS = 5000 };
    struct scene scene;
    begin(&scene);
    size_t last_core = scene.rings.core_count - 1, rounds = 0;
    for (uint64_t n = 0; n < THINGS; n++) {
        if (write_one(&scene, last_core, n))
            continue;
        assert_false(hop_rings_drain(&scene.rings, take, &scene));
        assert_int_equal(scene.taken, n);
        assert_true(write_one(&scene, last_core, n));
        rounds++;
    }
    hop_rings_drain(&scene.rings, take, &scene);
    assert_int_equal(scene.taken, THINGS);
    assert_true(rounds > 10);
    assert_int_equal(hop_rings_left(&scene.rings), 0);
    hop_rings_close(&scene.rings);
}

// A program is still at it, or never comes to its end: what lies behind it waits.
static void what_is_not_written_is_not_taken(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    assert_true(write_one(&scene, 0, 0));
    scene.rings.rings[0].head++; // somebody who has not written yet
    assert_true(write_one(&scene, 0, 17));
    assert_false(hop_rings_drain(&scene.rings, take, &scene));
    assert_int_equal(scene.taken, 1);
    assert_int_equal(hop_rings_left(&scene.rings), 2 + hop_slots_behind(stamps_of(17)));
    struct hop_slot *late = &scene.rings.slots[1];
    late->record = (struct hop_record){.flow = 16};
    late->what = HOP_SLOT_RECORD;
    scene.expected = 16;
    assert_false(hop_rings_drain(&scene.rings, take, &scene));
    assert_int_equal(scene.taken, 3);
    assert_int_equal(hop_rings_left(&scene.rings), 0);
    hop_rings_close(&scene.rings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_in_order_round_the_ring),
        cmocka_unit_test(what_is_not_written_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
