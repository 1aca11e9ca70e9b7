// SPDX-License-Identifier: MIT
//
// The findings in plain words: recorded situations, and what is said of each. One that is not told
// truthfully, or in jargon, fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/run/run_lede.h"

enum { MESSAGES = 100, REQUESTS = 10000 };
#define ALL_NS (20e6 * MESSAGES) // 20 ms longer each

#define CAUSE(NAME, CATEGORY, ROLE, share)                                                         \
    {                                                                                              \
        .name = (NAME), .category = CATEGORY, .role = (ROLE), .explains = true,                    \
        .total_ns = (share)*ALL_NS                                                                 \
    }

struct situation {
    const char *what;
    struct cause causes[4];
    const char *lede, *remedy; // wanted
    const char *doubt;         // of the load
    const char *reason;        // why there is no verdict
    double deviation_ns;       // of each message; 0: 20 ms
    double low;                // of the slice; 0: 0.99
    uint64_t unanswered, unfollowed;
    size_t servers;
    bool one, own_requests;
};

#define SLOW "1 in 100 requests took 3.80 ms or more (usually 53.2 us). "

static const struct situation situations[] = {
    {.what = "an intruder",
     .servers = 1,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .78),
                CAUSE("NET_RX softirq", "receive processing", ROLE_A, .1)},
     .lede = SLOW "For 78 % of that extra time another program, `yes`, had memcached's CPU core.",
     .remedy = "Keep other programs off the server's cores (cpuset, taskset), or give it more of "
               "them"},
    {.what = "an intruder on both cores, and several servers",
     .servers = 2,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .5),
                CAUSE("wake-up latency", "scheduling", ROLE_A, .2),
                CAUSE("yes", "other programs", ROLE_R, .3)},
     .lede = SLOW "For 80 % of that extra time another program, `yes`, had the CPU that the server "
                  "needed; for 20 % the server was woken late, or waited for its turn."},
    {.what = "only where it received",
     .servers = 1,
     .causes = {CAUSE("yes", "other programs", ROLE_R, .999)},
     .lede = SLOW "For 99 % of that extra time another program, `yes`, had the CPU core that "
                  "received packets for memcached."},
    {.what = "a name that would break out",
     .causes = {CAUSE("x`\n<b>", "other programs", ROLE_A, 1)},
     .lede = SLOW "For 100 % of that extra time another program, `x'\u240a<b>`, had the server's "
                  "CPU core."},
    {.what = "a category of the user's own",
     .causes = {CAUSE("nightly backup", "ours", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time it was `nightly backup`.",
     .remedy = ""},
    {.what = "a function",
     .causes = {{.name = "memcpy slower",
                 .category = "application",
                 .role = ROLE_A,
                 .class = CAUSE_FUNCTION,
                 .total_ns = .9 * ALL_NS}},
     .lede = SLOW "For 90 % of that extra time the server's own code ran longer than usual: "
                  "`memcpy slower`."},
    {.what = "half of it is not known",
     .causes = {CAUSE("yes", "other programs", ROLE_A, .4)},
     .lede = SLOW "For 40 % of that extra time another program, `yes`, had the server's CPU core. "
                  "Of another 60 % nobody knows where it went."},
    {.what = "the client was late",
     .causes = {CAUSE("head-of-line blocking", "head-of-line blocking", ROLE_A, .4),
                CAUSE("yes", "client's cores", ROLE_CLIENT, .6)},
     .lede = "1 in 100 requests took 3.80 ms or more (usually 53.2 us), but it was the load "
             "generator that was late, not the server. For 60 % of that extra time the load "
             "generator did not have its CPU core: `yes`."},
    {.what = "nothing stands out",
     .deviation_ns = 10000,
     .causes = {{.name = "yes", .category = "other programs", .role = ROLE_A, .total_ns = 6e5}},
     .lede = "Nothing stands out: 1 in 100 requests took 3.80 ms or more (usually 53.2 us).",
     .remedy = ""},
    {.what = "nothing but the virtual machine's host",
     .causes = {{.name = "virtual CPU taken away",
                 .category = "virtual machine",
                 .role = ROLE_A,
                 .apart = true,
                 .total_ns = .7 * ALL_NS}},
     .lede = "Nothing stands out: 1 in 100 requests took 3.80 ms or more (usually 53.2 us). For 70 "
             "% of that extra time the host of this virtual machine gave its processor to others. "
             "Of another 30 % nobody knows where it went.",
     .remedy = "Ask for a dedicated host, or for processors of its own"},
    {.what = "no cause",
     .lede = "1 in 100 requests took 3.80 ms or more (usually 53.2 us); nothing was found that "
             "explains it.",
     .remedy = ""},
    {.what = "the load cannot be trusted",
     .doubt = "this client had its core for only 63 % of the time.",
     .causes = {CAUSE("yes", "other programs", ROLE_A, .8)},
     .lede = "Inconclusive: this client had its core for only 63 % of the time. As measured, " SLOW
             "For 80 % of that extra time another program, `yes`, had the server's CPU core.",
     .remedy = ""},
    {.what = "no verdict",
     .reason = "only 71.0 % of the answered requests could be followed, 95 % are needed (most "
               "often: no M(a) stamp)",
     .lede = "Inconclusive: only 71.0 % of the answered requests could be followed, 95 % are "
             "needed. 1 in 100 requests took 4.00 ms or more, half of them 50.0 us or less; why is "
             "not known.",
     .remedy = ""},
    {.what = "unanswered and lost ones",
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .unanswered = 80,
     .unfollowed = 300,
     .lede = SLOW "For 100 % of that extra time another program, `yes`, had the server's CPU core. "
                  "Besides, 80 requests were never answered. 3 % of the answered requests could "
                  "not be followed and are not in this."},
    {.what = "another slice",
     .low = 0.85,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .lede = "15 % of requests took 3.80 ms or more (usually 53.2 us). For 100 % of that extra "
             "time another program, `yes`, had the server's CPU core."},
    {.what = "one request, of clients that are not ours",
     .one = true,
     .own_requests = true,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .lede = "Request 963 took 3.80 ms in the server (usually 53.2 us). For 100 % of that extra "
             "time another program, `yes`, had the server's CPU core."},
};

static void tell(const struct situation *of, struct run_lede *out)
{
    struct diagnosed_message messages[MESSAGES];
    struct application servers[] = {{.name = "memcached"}, {.name = "redis-server"}};
    struct diagnosis diagnosis = {
        .slice = {.low = of->low ? of->low : 0.99, .high = 1, .one = of->one, .request = 963},
        .reference_latency_ns = 53200,
        .slice_low_ns = 3.8e6,
        .messages = {.items = messages, .count = MESSAGES},
        .causes = {.items = (struct cause *)of->causes},
        .not_available = of->reason != NULL,
    };
    struct run_analysis run = {
        .evidence = {.load = of->doubt
                                 ? json_pack("{s:s, s:[s]}", "verdict", "n/a", "reasons", of->doubt)
                                 : NULL,
                     .without_client = of->own_requests},
        .lifetimes = {.scheduled = REQUESTS,
                      .answered = REQUESTS - of->unanswered,
                      .applications = {.items = {.items = servers, .count = of->servers}}},
        .findings = {.diagnoses = {.items = &diagnosis, .count = 1},
                     .verdict_available = !of->reason},
    };
    run.lifetimes.states[LIFETIME_WHOLE] = run.lifetimes.answered - of->unfollowed;
    run.lifetimes.latency.value_ns[0] = 50000;
    run.lifetimes.latency.value_ns[2] = 4e6;
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] =
            (struct diagnosed_message){i, of->deviation_ns ? of->deviation_ns : 20e6, 0, 0};
    while (diagnosis.causes.count < 4 && of->causes[diagnosis.causes.count].name[0])
        diagnosis.causes.count++;
    if (of->reason)
        snprintf(diagnosis.reason, sizeof diagnosis.reason, "%s", of->reason);
    run_lede(&run, out);
    json_decref(run.evidence.load);
}

static void situations_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        struct run_lede lede;
        tell(&situations[i], &lede);
        if (strcmp(lede.text, situations[i].lede) != 0)
            fail_msg("%s:\n  %s\nwanted:\n  %s", situations[i].what, lede.text, situations[i].lede);
        if (situations[i].remedy)
            assert_string_equal(lede.remedy, situations[i].remedy);
        else
            assert_true(lede.remedy[0] >= 'A' && lede.remedy[0] <= 'Z');
    }
}

static const char *const jargon[] = {"(A)", "(R)", "M(", "overage", "joined", "lifetime", "p99"};

static void no_jargon(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        struct run_lede lede;
        tell(&situations[i], &lede);
        for (size_t j = 0; j < sizeof jargon / sizeof *jargon; j++)
            if (strstr(lede.text, jargon[j]) || strstr(lede.remedy, jargon[j]))
                fail_msg("%s: %s in \"%s\"", situations[i].what, jargon[j], lede.text);
    }
}

// Without any request that was answered, and where the tail never was.
static void what_never_came(void **state)
{
    (void)state;
    struct run_lede lede;
    struct run_analysis run = {.lifetimes = {.scheduled = 10}};
    run_lede(&run, &lede);
    assert_string_equal(lede.text, "Inconclusive: nothing was recorded that could say why. "
                                   "Besides, 10 requests were never answered.");
    run.lifetimes.answered = 9;
    run.lifetimes.latency.value_ns[2] = INFINITY;
    run_lede(&run, &lede);
    assert_string_equal(lede.text, "Inconclusive: nothing was recorded that could say why. More "
                                   "than 1 in 100 requests were never answered. Besides, 1 request "
                                   "was never answered.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(situations_are_told),
        cmocka_unit_test(no_jargon),
        cmocka_unit_test(what_never_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
