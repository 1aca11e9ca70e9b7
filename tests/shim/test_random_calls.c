// SPDX-License-Identifier: MIT
//
// Random sequences of calls (random_calls.h) with the shim loaded and recording, and without: the
// program must see the same to the byte, and the shim's counts must be those of the calls' own
// results, or the connection be counted as lost. A few seeds that are always the same; with
// TAILLIGHT_TRUST=1 new ones for TRUST_SECONDS. A failure names its seed: `test_random_calls SEED`
// runs that one. How much of a batch finds room, and whether a peer's end is already known, is also
// a matter of when the kernel gets to it, and a port may be used twice: a seed with a difference is
// run again, up to TRIES times, which is said. What the shim does wrong it does each time.
//
// Runs beside others: what it compares is what calls return, not when.
#include "tests/shim/random_calls.h"
#include "tests/shim/shim_test.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/process.h"
#include "tests/ports.h"

enum { QUICK_SEEDS = 2, QUICK_STEPS = 3000, TRUST_STEPS = 10000, TRUST_SECONDS = 60, TRIES = 4 };

enum { DIFFERENCE_BYTES = 900 };

struct tally {
    uint64_t calls, ends, wrong, said, again;
};

// --- the two runs --------------------------------------------------------------------------------

struct sequence {
    uint64_t seed;
    unsigned steps, bare; // as random_calls()
    uint16_t port;
};

static void sequence_run(const struct sequence *sequence, const char *const *environment,
                         const char *output)
{
    const unsigned long long seed = sequence->seed;
    char self[PATH_MAX] = "", numbers[4][24];
    struct error err;
    struct process process;
    int status = -1;
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(numbers[0], sizeof numbers[0], "%llu", seed);
    snprintf(numbers[1], sizeof numbers[1], "%u", sequence->steps);
    snprintf(numbers[2], sizeof numbers[2], "%u", sequence->bare);
    snprintf(numbers[3], sizeof numbers[3], "%u", sequence->port);
    const char *argv[] = {self, "--sequence", numbers[0], numbers[1], numbers[2], numbers[3], NULL};
    struct process_place place = {.environment = environment, .log_path = output};
    if (process_start(&process, argv, &place, &err) < 0 ||
        process_wait(&process, 120000, &status, &err) != 1)
        fail_msg("seed %llu: %s", seed, err.text);
    if (status != 0)
        fail_msg("seed %llu: wait status %x", seed, (unsigned)status);
}

// The first line that differs is the call that the shim changed, and what `differs` says. Returns
// the number of calls before that.
static uint64_t outputs_compare(uint64_t seed, const char *plain, const char *shimmed,
                                char differs[DIFFERENCE_BYTES])
{
    FILE *files[2] = {fopen(plain, "re"), fopen(shimmed, "re")};
    char lines[2][256], before[256] = "";
    uint64_t calls = 0;
    differs[0] = '\0';
    assert_true(files[0] && files[1]);
    for (;;) {
        char *read[2];
        for (int i = 0; i < 2; i++)
            read[i] = fgets(lines[i], sizeof lines[i], files[i]);
        if (!read[0] && !read[1])
            break;
        if (!read[0] || !read[1] || strcmp(lines[0], lines[1]) != 0) {
            snprintf(differs, DIFFERENCE_BYTES,
                     "seed %llu, call %llu after %sis %swith the shim %s", (unsigned long long)seed,
                     (unsigned long long)calls, before, read[0] ? lines[0] : "nothing\n",
                     read[1] ? lines[1] : "nothing\n");
            break;
        }
        calls += lines[0][0] != ' ';
        strcpy(before, lines[0]);
    }
    fclose(files[0]);
    fclose(files[1]);
    return calls;
}

// --- the counts ----------------------------------------------------------------------------------

// Whether the log has each byte of that direction once, in order, `bytes` of them.
static bool direction_is_right(const struct logs *logs, uint32_t connection, enum call_kind kind,
                               uint64_t bytes)
{
    const struct call *calls = logs->calls.records;
    uint64_t at = 0;
    bool gap = false;
    for (size_t i = 0; i < logs->calls.count; i++) {
        if (calls[i].connection != connection || calls[i].kind != (uint8_t)kind)
            continue;
        gap |= calls[i].offset != at;
        at = calls[i].offset + calls[i].length;
    }
    if (gap || at != bytes)
        print_message("%s ends at %llu, not %llu%s\n", kind == CALL_SEND ? "sent" : "received",
                      (unsigned long long)at, (unsigned long long)bytes, gap ? ", with gaps" : "");
    return !gap && at == bytes;
}

static bool end_is_right(const struct logs *logs, bool outgoing, unsigned local, unsigned peer,
                         uint64_t in, uint64_t out)
{
    const struct connection *all = logs->connections.records;
    for (size_t i = 0; i < logs->connections.count; i++)
        if (all[i].local_port == local && all[i].peer_port == peer &&
            (all[i].outgoing != 0) == outgoing)
            return direction_is_right(logs, all[i].id, CALL_RECEIVE, in) &&
                   direction_is_right(logs, all[i].id, CALL_SEND, out);
    return in == 0 && out == 0; // nothing moved, so nothing had to be said
}

static void totals_compare(const struct places *places, const char *path, struct tally *tally)
{
    struct logs logs;
    FILE *file = fopen(path, "re");
    unsigned outgoing, local, peer;
    unsigned long long in, out;
    assert_non_null(file);
    logs_open(&logs, places);
    logs_check(&logs);
    while (fscanf(file, "%u %u %u %llu %llu", &outgoing, &local, &peer, &in, &out) == 5) {
        bool right = end_is_right(&logs, outgoing, local, peer, in, out);
        tally->ends++;
        tally->wrong += !right;
        if (!right && tally->wrong < 10)
            print_message("%s end %u of %u: %llu in, %llu out\n",
                          outgoing ? "connecting" : "accepting", local, peer, in, out);
    }
    fclose(file);
    logs_close(&logs);
}

// Whether the two runs were the same; else `differs` says where, and nothing is counted.
static bool sequence_try(const struct sequence *sequence, struct tally *tally,
                         char differs[DIFFERENCE_BYTES])
{
    const uint64_t seed = sequence->seed;
    struct places places;
    struct error err;
    struct message_collector *collector = NULL;
    struct message_stats stats;
    pthread_t thread;
    char plain[160], shimmed[160], totals[160], variable[180];
    const char asan[] = "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0";
    places_init(&places, "random");
    snprintf(plain, sizeof plain, "%s/plain", places.out);
    snprintf(shimmed, sizeof shimmed, "%s/shimmed", places.out);
    snprintf(totals, sizeof totals, "%s/totals", places.out);
    snprintf(variable, sizeof variable, "SEQUENCE_TOTALS=%s", totals);
    if (message_collector_create(places.rings, 0, &sequence->port, 1, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_watch_peers(collector);
    message_collector_watch_commands(collector);
    message_collector_enable(collector);
    struct poller poller = {.collector = collector};
    pthread_create(&thread, NULL, poller_run, &poller);
    sequence_run(sequence, (const char *const[]){asan, "SEQUENCE_TOTALS=/dev/null", NULL}, plain);
    sequence_run(sequence,
                 (const char *const[]){asan, places.preload, places.environment, variable, NULL},
                 shimmed);
    poller.stop = true;
    pthread_join(thread, NULL);
    assert_false(poller.failed);
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    const struct tally before = *tally;
    uint64_t lost = stats.doubtful_connections + stats.unseen_connections + stats.dropped_full;
    tally->calls += outputs_compare(seed, plain, shimmed, differs);
    totals_compare(&places, totals, tally);
    tally->said += lost;
    uint64_t wrong = tally->wrong - before.wrong;
    if (!differs[0] && wrong > lost)
        snprintf(differs, DIFFERENCE_BYTES,
                 "seed %llu: %llu ends have wrong counts, %llu are said to be lost: %s\n",
                 (unsigned long long)seed, (unsigned long long)wrong, (unsigned long long)lost,
                 stats.warning);
    if (differs[0])
        *tally = before;
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
    return !differs[0];
}

static void sequence_judge(const struct sequence *sequence, struct tally *tally)
{
    char differs[DIFFERENCE_BYTES];
    for (int tries = 0; !sequence_try(sequence, tally, differs); tries++, tally->again++) {
        print_message("%s", differs);
        if (tries + 1 == TRIES)
            fail_msg("in each of %d tries: %s", TRIES, differs);
    }
}

// Calls that the program makes by instructions of its own cannot be seen. What they moved is missed
// when the counts are held against the kernel's; what share of the connections, is printed.
static void what_cannot_be_seen_is_counted_as_lost(void **state)
{
    (void)state;
    struct tally tally = {0};
    char text[PORT_TEXT_BYTES];
    bool trust = getenv("TAILLIGHT_TRUST");
    struct sequence sequence = {
        .steps = trust ? TRUST_STEPS : QUICK_STEPS, .bare = 10, .port = claim_port(text)};
    unsigned seeds = trust ? 5 : 1;
    for (sequence.seed = 1; sequence.seed <= seeds; sequence.seed++)
        sequence_judge(&sequence, &tally);
    print_message("%llu of %llu ends have calls that could not be seen; said of %llu\n",
                  (unsigned long long)tally.wrong, (unsigned long long)tally.ends,
                  (unsigned long long)tally.said);
    assert_true(tally.wrong > 0);
}

static uint64_t seed_only; // the one that the command line names; 0: none

static void random_sequences_are_the_same(void **state)
{
    (void)state;
    struct tally tally = {0};
    bool trust = getenv("TAILLIGHT_TRUST");
    int64_t begun_ns = monotonic_ns();
    unsigned seeds = 0;
    char text[PORT_TEXT_BYTES];
    struct sequence sequence = {0, trust ? TRUST_STEPS : QUICK_STEPS, 0, claim_port(text)};
    uint64_t first = seed_only ? seed_only : trust ? (uint64_t)clock_now_ns(CLOCK_REALTIME) : 1;
    print_message("seeds from %llu on\n", (unsigned long long)first);
    do {
        sequence.seed = first + seeds++;
        sequence_judge(&sequence, &tally);
    } while (!seed_only && (trust ? monotonic_ns() - begun_ns < TRUST_SECONDS * INT64_C(1000000000)
                                  : seeds < QUICK_SEEDS));
    print_message("%u seeds, %llu calls and %llu ends of connections compared, %llu of them lost; "
                  "%llu tries once more\n",
                  seeds, (unsigned long long)tally.calls, (unsigned long long)tally.ends,
                  (unsigned long long)tally.wrong, (unsigned long long)tally.again);
    assert_true(tally.calls > 1000 && tally.ends > 20);
}

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "--sequence") == 0) {
        setvbuf(stdout, NULL, _IOFBF, 1 << 16);
        random_calls(strtoull(argv[2], NULL, 10), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]),
                     (uint16_t)atoi(argv[5]));
        return 0;
    }
    if (argc > 1)
        seed_only = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_are_the_same),
        cmocka_unit_test(what_cannot_be_seen_is_counted_as_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
