// SPDX-License-Identifier: MIT
//
// How right the diagnosis is, on random servers with known causes
// (tests/analysis/diagnosis/synthetic.h), and how fast: 100,000 and 1,000,000 messages
// with some fifty spans each, on one core, the slowest hundredth and all of them explained. Each
// size is a process of its own, for its peak memory. BENCH_SEEDS changes how many servers; a table
// is printed as soon as it is known, and what is left of the next one is told on stderr.
#include "tests/analysis/diagnosis/synthetic_score.h"
#include "tests/bench/bench.h"

enum { SEEDS = 1000, SPANS_PER_MESSAGE = 50 };

static unsigned seeds_asked(void)
{
    return (unsigned)bench_setting("BENCH_SEEDS", SEEDS, 10, 1000000);
}

// Says now and then how far a table is: a thousand servers take minutes.
static void tell_progress(const char *table, uint64_t seed, unsigned seeds)
{
    enum { EVERY_S = 10 };
    static time_t told;
    time_t now = time(NULL);
    if (seed == 1 || now - told < EVERY_S) {
        told = seed == 1 ? now : told;
        return;
    }
    told = now;
    fprintf(stderr, "  %s: %llu of %u servers\n", table, (unsigned long long)seed, seeds);
}

static void score_all(struct bench_metrics *metrics, bool through_pt)
{
    const unsigned seeds = seeds_asked();
    const char *kind = through_pt ? "pt_" : "";
    struct score score = {0};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        tell_progress(through_pt ? "through Intel PT" : "function spans", seed, seeds);
        if (score_seed(&score, seed, false, through_pt) < 0 ||
            score_seed(&score, seed, true, through_pt) < 0)
            bench_fail("seed %llu cannot be diagnosed", (unsigned long long)seed);
    }
    double error = 100 * score_median(&score.errors), cover = 100 * score_median(&score.coverage);
    double right = 100.0 * score.right / score.scenarios;
    double of_messages = 100 * (double)score.messages_right / (double)score.messages;
    double quiet = 100.0 * score.quiet_right / score.quiet;
    double blame = 100.0 * score.blamed_wrong / score.blamed;
    double far = 100 * quantile_sorted(score.errors.items, score.errors.count, 0.95);
    printf("%s\n"
           "  top cause right           %6.2f %% of %u servers with 1-3 causes\n"
           "  of each slow message      %6.2f %% of %llu\n"
           "  attribution error         %6.2f %% median, %.2f %% at p95, of %zu\n"
           "  wrong blame               %6.2f %% of %u causes of a tenth or more\n"
           "  coverage of the slice     %6.2f %% median, %.2f %% least\n"
           "  nothing reported          %6.2f %% of %u servers without a cause\n",
           through_pt ? "the same through Intel PT, encoded and decoded" : "with function spans",
           right, score.scenarios, of_messages, (unsigned long long)score.messages, error, far,
           score.errors.count, blame, score.blamed, cover, 100 * score.coverage.items[0], quiet,
           score.quiet);
    bench_add(metrics, "%", right, "%stop_cause_right", kind);
    bench_add(metrics, "%", of_messages, "%stop_cause_right_of_messages", kind);
    bench_add(metrics, "%", error, "%sattribution_error_median", kind);
    bench_add(metrics, "%", far, "%sattribution_error_p95", kind);
    bench_add(metrics, "%", blame, "%swrong_blame", kind);
    bench_add(metrics, "%", cover, "%scoverage_median", kind);
    bench_add(metrics, "%", 100 * score.coverage.items[0], "%scoverage_least", kind);
    bench_add(metrics, "%", quiet, "%snothing_reported", kind);
    score_free(&score);
}

static void score_lifetimes(struct bench_metrics *metrics)
{
    const unsigned seeds = seeds_asked();
    struct score scores[PARTS] = {0};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        tell_progress("each lifetime", seed, seeds);
        if (score_parts(scores, seed, false) < 0 || score_parts(scores, seed, true) < 0)
            bench_fail("seed %llu cannot be diagnosed", (unsigned long long)seed);
    }
    printf("each lifetime on its own, where something held it up\n");
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        const char *name = lifetime_part_name((enum lifetime_part)part);
        struct score *score = &scores[part];
        double right = 100.0 * score->right / score->scenarios;
        double of_messages = 100 * (double)score->messages_right / (double)score->messages;
        double error = 100 * score_median(&score->errors);
        double quiet = 100.0 * score->quiet_right / score->quiet;
        printf("  %-8s top cause right %6.2f %% of %u, %6.2f %% of %llu messages; error %.2f %% "
               "median; nothing reported %.2f %% of %u without\n",
               name, right, score->scenarios, of_messages, (unsigned long long)score->messages,
               error, quiet, score->quiet);
        bench_add(metrics, "%", right, "%s_top_cause_right", name);
        bench_add(metrics, "%", of_messages, "%s_top_cause_right_of_messages", name);
        bench_add(metrics, "%", error, "%s_attribution_error_median", name);
        bench_add(metrics, "%", quiet, "%s_nothing_reported", name);
        score_free(score);
    }
}

struct speed {
    double tail_s, all_s; // processor time
    double spans;         // per message
    double peak_mib;
    double attributions;
};

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double time_slice(const struct synthetic *s, double low, double *attributions)
{
    const struct diagnosis_slice slice = {.low = low, .high = 1};
    struct diagnosis_input input = synthetic_input(s);
    struct diagnosis diagnosis;
    struct error err = {0};
    double begin = processor_seconds();
    if (diagnose(&input, &slice, &diagnosis, &err) < 0)
        bench_fail("%s", err.text);
    double seconds = processor_seconds() - begin;
    *attributions = (double)diagnosis.attributions.count;
    diagnosis_free(&diagnosis);
    return seconds;
}

static struct speed measure(unsigned messages)
{
    struct synthetic_options options = {.seed = 1,
                                        .messages = messages,
                                        .gap_ns = 60000,
                                        .noise = 0.1,
                                        .causes = UINT32_MAX >> (32 - SYNTHETIC_CHOSEN),
                                        .hits = messages / 2000,
                                        .leaves = SPANS_PER_MESSAGE - 41,
                                        .functions = true};
    struct synthetic s;
    struct speed speed;
    struct rusage usage;
    synthetic_build(&s, &options);
    synthetic_trim(&s);
    speed.spans = 0;
    for (size_t c = 0; c < s.server.cores.count; c++)
        speed.spans += (double)s.server.cores.items[c].spans.count / messages;
    speed.tail_s = time_slice(&s, 0.99, &speed.attributions);
    speed.all_s = time_slice(&s, 0, &speed.attributions);
    getrusage(RUSAGE_SELF, &usage);
    speed.peak_mib = (double)usage.ru_maxrss / 1024;
    synthetic_free(&s);
    return speed;
}

static struct speed measure_in_child(unsigned messages)
{
    struct speed speed;
    int ends[2], status = 1;
    if (pipe(ends) < 0)
        bench_fail("no pipe");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        speed = measure(messages);
        _exit(write(ends[1], &speed, sizeof speed) == sizeof speed ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &speed, sizeof speed);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || got != sizeof speed)
        bench_fail("diagnosing %u messages failed", messages);
    return speed;
}

static void speed_of(struct bench_metrics *metrics, unsigned messages)
{
    struct speed speed = measure_in_child(messages);
    printf("%10u messages, %.1f spans each: slowest 1 %% %6.2f s, all %6.2f s (%.2f us a message, "
           "%.0f attributions), peak %.0f MiB\n",
           messages, speed.spans, speed.tail_s, speed.all_s, speed.all_s / messages * 1e6,
           speed.attributions, speed.peak_mib);
    bench_add(metrics, "s", speed.tail_s, "slowest_hundredth_of_%u", messages);
    bench_add(metrics, "s", speed.all_s, "all_of_%u", messages);
    bench_add(metrics, "MiB", speed.peak_mib, "peak_memory_of_%u", messages);
    bench_add(metrics, "spans", speed.spans, "spans_per_message_of_%u", messages);
}

int main(void)
{
    static struct bench_metrics metrics;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("speed, processor time\n"); // first: what a child inherits counts in its peak
    speed_of(&metrics, 100000);
    speed_of(&metrics, 1000000);
    score_all(&metrics, false);
    score_lifetimes(&metrics);
    score_all(&metrics, true);
    bench_write(&metrics, "diagnosis");
    return 0;
}
