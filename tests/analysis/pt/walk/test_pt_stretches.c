// SPDX-License-Identifier: MIT
//
// What is learned of code from its bytes is what libipt makes of it: over the C library and this
// program, from any address, also from the middle of instructions, and over random bytes. What is
// not understood is left to libipt; of code that a compiler made, that is next to nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/pt/walk/pt_stretches.h"
#include "tests/analysis/pt/pt_scenario.h"

enum { SAMPLES = 6000, RANDOM_BYTES = 1 << 16, BASE = 0x10000000, ENDLESS = 10000 };

struct learner {
    struct pt_memory memory;
    struct pt_code_view *view;
    struct pt_stretches stretches;
    struct pt_ask ask; // the oracle
    struct pt_image *image;
    uint64_t followed, left; // to libipt
    uint64_t ended;          // at a system call
    uint64_t behind;         // where the last stretch that was followed goes on; 0: nowhere
};

static void learner_begin(struct learner *learner)
{
    struct error err;
    learner->view = pt_code_view_alloc(&learner->memory, &err);
    assert_non_null(learner->view);
    assert_int_equal(
        pt_stretches_init(&learner->stretches, &learner->memory, learner->view, NULL, NULL, &err),
        0);
    learner->ask = (struct pt_ask){0};
    assert_int_equal(pt_code_view_image(learner->view, PT_SPACE_ALL, &learner->image, &err), 0);
}

static void learner_end(struct learner *learner)
{
    pt_ask_fini(&learner->ask);
    pt_stretches_free(&learner->stretches);
    pt_code_view_free(learner->view);
    pt_memory_free(&learner->memory);
}

// Where libipt goes on when these packets are all that follows.
static uint64_t goes_to(struct learner *learner, uint64_t ip, uint8_t packet)
{
    struct pt_answer answer;
    if (pt_ask(&learner->ask, learner->image, ip, &packet, 1, &answer) < 0 || answer.status < 0)
        return 0;
    return pt_ask_ip(&learner->ask);
}

// Jumps that no packet ever ends: libipt calls itself for each until its stack is full.
static bool goes_round(struct learner *learner, uint64_t ip)
{
    uint32_t found = pt_stretches_find(&learner->stretches, PT_SPACE_ALL, ip, PT_AIM_DECISION, 0);
    return found != PT_NO_STRETCH && learner->stretches.items[found].instructions >= ENDLESS;
}

static bool agrees(struct learner *learner, const struct pt_stretch *stretch)
{
    struct pt_answer answer;
    if (pt_ask(&learner->ask, learner->image, stretch->ip, NULL, 0, &answer) < 0)
        return false;
    bool same =
        answer.block.end_ip == stretch->end_ip && answer.block.ninsn == stretch->instructions;
    switch ((enum pt_stretch_end)stretch->end) {
    case PT_STRETCH_ON:
        return same && answer.status >= 0 && pt_ask_ip(&learner->ask) == stretch->next;
    case PT_STRETCH_BRANCH:
        return same && answer.status < 0 && goes_to(learner, stretch->ip, 0x06) == stretch->taken &&
               goes_to(learner, stretch->ip, 0x04) == stretch->next;
    case PT_STRETCH_UNMAPPED:
        return answer.status == -pte_nomap && stretch->instructions == 0;
    default:
        return same && answer.status == -pte_eos;
    }
}

// Where tracing ends, when nothing says where it goes on.
static bool ends_alike(struct learner *learner, uint64_t ip)
{
    static const uint8_t disable[] = {0x01};
    struct pt_answer answer;
    struct pt_event event;
    uint32_t found = pt_stretches_find(&learner->stretches, PT_SPACE_ALL, ip, PT_AIM_DISABLE, 0);
    const struct pt_stretch *stretch = &learner->stretches.items[found];
    bool reached = stretch->end == PT_STRETCH_AIM;
    if (pt_ask(&learner->ask, learner->image, ip, disable, sizeof disable, &answer) < 0 ||
        answer.status < 0 || !(answer.status & pts_event_pending) == reached ||
        (reached && pt_blk_event(learner->ask.decoder, &event, sizeof event) < 0))
        return false;
    learner->ended += reached && stretch->class == ptic_far_call;
    return answer.block.end_ip == stretch->end_ip && answer.block.ninsn == stretch->instructions &&
           pt_ask_ip(&learner->ask) == stretch->next;
}

static void compare_from(struct learner *learner, uint64_t ip)
{
    learner->behind = 0;
    uint32_t found = pt_stretches_find(&learner->stretches, PT_SPACE_ALL, ip, PT_AIM_DECISION, 0);
    assert_true(found != PT_NO_STRETCH);
    struct pt_stretch found_there = learner->stretches.items[found], *stretch = &found_there;
    bool branches = stretch->end == PT_STRETCH_BRANCH;
    if (stretch->end == PT_STRETCH_UNUSUAL ||
        (branches && (goes_round(learner, stretch->next) || goes_round(learner, stretch->taken)))) {
        learner->left++;
        return;
    }
    learner->followed++;
    learner->behind = stretch->next;
    if (!agrees(learner, stretch))
        fail_msg("0x%" PRIx64 ": to 0x%" PRIx64 ", %u instructions, end %u: not what libipt says",
                 ip, stretch->end_ip, stretch->instructions, stretch->end);
    // of other code libipt is asked anyway
    bool learned = stretch->class == ptic_far_call || stretch->class == ptic_call;
    if (learned && stretch->end != PT_STRETCH_CALL && !ends_alike(learner, ip))
        fail_msg("0x%" PRIx64 ": tracing does not end where libipt says", ip);
}

// Adds the executable parts of a file that this program has mapped. Its bytes in all.
static uint64_t add_mapped(struct learner *learner, const char *name)
{
    char line[4500], path[4096];
    uint64_t low, high, offset, bytes = 0;
    struct error err;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64 " %*s %*s %4095s", &low, &high,
                   &offset, path) == 4 &&
            strstr(path, name)) {
            assert_int_equal(pt_memory_add_file(&learner->memory, path, offset, high - low,
                                                BASE + bytes, PT_SPACE_ALL, &err),
                             0);
            bytes += high - low;
        }
    fclose(maps);
    return bytes;
}

static void real_code_is_what_libipt_says(void **state)
{
    static const char *const files[] = {"libc.so", "libipt.so", "libtaillight.so"};
    struct random_source random = {7};
    uint64_t ended = 0;
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        struct learner learner = {0};
        uint64_t bytes = add_mapped(&learner, files[f]);
        uint64_t followed = 0, left = 0;
        assert_true(bytes > 0);
        learner_begin(&learner);
        for (int i = 0; i < SAMPLES; i++) {
            compare_from(&learner, BASE + random_below(&random, (unsigned)bytes));
            if (learner.behind - BASE >= bytes)
                continue;
            // whatever the first one began with, this is nearly always an instruction
            learner.followed = learner.left = 0;
            compare_from(&learner, learner.behind);
            followed += learner.followed;
            left += learner.left;
        }
        assert_true(followed > 50 * left);
        ended += learner.ended;
        learner_end(&learner);
    }
    assert_true(ended > SAMPLES / 100);
}

static void any_bytes_are_what_libipt_says_or_left_to_it(void **state)
{
    static uint8_t code[RANDOM_BYTES];
    struct random_source random = {8};
    struct learner learner = {0};
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof code; i++) {
        code[i] = (uint8_t)random_next(&random);
        if (code[i] == 0xeb || code[i] == 0xe9) // libipt does not come back from an endless loop
            code[i] = 0x90;
    }
    assert_int_equal(
        pt_memory_add_bytes(&learner.memory, code, sizeof code, BASE, PT_SPACE_ALL, &err), 0);
    learner_begin(&learner);
    for (unsigned i = 0; i < RANDOM_BYTES; i++)
        compare_from(&learner, BASE + i);
    assert_true(learner.followed > RANDOM_BYTES / 4);
    learner_end(&learner);
}

// Sections over one another, split and next to each other.
static void the_later_section_hides_the_earlier(void **state)
{
    static uint8_t code[4096];
    struct random_source random = {9};
    (void)state;
    for (size_t i = 0; i < sizeof code; i++) // short instructions, jumps back and forth
        code[i] = (uint8_t)(random_below(&random, 8) ? 0x90 : 0xeb);
    for (int round = 0; round < 20; round++) {
        struct learner learner = {0};
        struct error err;
        for (int i = 0; i < 12; i++) {
            size_t from = random_below(&random, sizeof code - 300);
            assert_int_equal(
                pt_memory_add_bytes(&learner.memory, code + from, 1 + random_below(&random, 300),
                                    BASE + random_below(&random, 1000), PT_SPACE_ALL, &err),
                0);
        }
        learner_begin(&learner);
        for (unsigned ip = 0; ip < 1300; ip++)
            compare_from(&learner, BASE + ip);
        assert_true(learner.followed > 0);
        learner_end(&learner);
    }
}

static uint32_t decision_at(struct learner *learner, uint32_t space, uint64_t ip)
{
    return pt_stretches_find(&learner->stretches, space, ip, PT_AIM_DECISION, 0);
}

// The kernel's code is learned once for all processes, and theirs once for all states of the
// kernel's; not where a process has code of its own among the kernel's.
static void the_kernel_is_learned_once(void **state)
{
    static const uint8_t code[] = {0x90, 0xc3}, longer[] = {0x90, 0x90, 0xc3}; // return
    (void)state;
    for (int strange = 0; strange < 2; strange++) {
        struct learner learner = {.memory.kernel_apart = true};
        struct error err;
        assert_int_equal(
            pt_memory_add_bytes(&learner.memory, code, sizeof code, KERNEL_BASE, 0, &err), 0);
        assert_int_equal(pt_memory_add_bytes(&learner.memory, code, sizeof code, BASE, 1, &err), 0);
        assert_int_equal(pt_memory_add_bytes(&learner.memory, longer, sizeof longer, BASE, 2, &err),
                         0);
        if (strange)
            assert_int_equal(
                pt_memory_add_bytes(&learner.memory, longer, sizeof longer, KERNEL_BASE, 2, &err),
                0);
        learner_begin(&learner);
        uint32_t first = decision_at(&learner, 1, KERNEL_BASE);
        uint32_t second = decision_at(&learner, 2, KERNEL_BASE);
        uint32_t changed = decision_at(&learner, pt_space_in_state(1, 1), KERNEL_BASE);
        assert_int_equal(learner.stretches.items[first].instructions, 2);
        assert_int_equal(learner.stretches.items[second].instructions, strange ? 3 : 2);
        assert_int_equal(first == second, !strange);
        assert_int_not_equal(first, changed);
        uint32_t one = decision_at(&learner, 1, BASE), other = decision_at(&learner, 2, BASE);
        assert_int_equal(learner.stretches.items[one].instructions, 2);
        assert_int_equal(learner.stretches.items[other].instructions, 3);
        assert_int_equal(decision_at(&learner, pt_space_in_state(1, 1), BASE) == one, !strange);
        assert_false(pt_stretches_link(&learner.stretches, first, BASE));
        learner_end(&learner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_code_is_what_libipt_says),
        cmocka_unit_test(any_bytes_are_what_libipt_says_or_left_to_it),
        cmocka_unit_test(the_later_section_hides_the_earlier),
        cmocka_unit_test(the_kernel_is_learned_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
