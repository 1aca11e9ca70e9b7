// SPDX-License-Identifier: MIT
//
// How fast Intel PT becomes spans, in one run: of real captures (decode_captures.h), where they are
// there, and then on a long synthetic trace of four CPUs: a plain single-threaded libipt block walk
// (which only counts), everything into spans on all cores, and only the windows of 0.1 % of the
// messages into spans. The three take turns. Then the peak memory of decoding this trace, one ten
// times shorter and one ten times longer. Each measurement is a process of its own.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/pt_trace.h"
#include "base/quantile.h"
#include "tests/analysis/pt/pt_plain_walk.h"
#include "tests/analysis/pt/pt_round_trip.h"
#include "tests/bench/bench_json.h"
#include "tests/bench/decode_captures.h"

enum {
    CPUS = 4,
    ROUNDS = 5,
    MESSAGES = 10000,
    LONG_BYTES = 6 << 20, // of each CPU
    SHORT_BYTES = LONG_BYTES / 10,
    COPIES = 10, // of the long one make the longest
    LONGEST_BYTES = LONG_BYTES * COPIES,
    PSB_BYTES = 4096, // what Linux asks for by default is 4 KiB between PSBs or more
    SEED = 20260101,
    BUSY = 40, // some fifty instructions for each call, as real programs have
};

enum mode { PLAIN, FULL, WINDOWS, MODES };
static const char *const mode_names[MODES] = {"plain block walk", "all into spans",
                                              "windows into spans"};

struct outcome {
    double seconds, cpu_seconds;
    uint64_t instructions, spans, errors, walked;
    long peak_kib;
};

// What one CPU's trace came to.
struct decoded {
    struct pt_calls *calls;
    uint64_t spans, instructions, errors, walked;
};

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void file_name(char out[64], const char *dir, int cpu, size_t bytes)
{
    snprintf(out, 64, "%s/%zu.%d.pt", dir, bytes, cpu);
}

// Runs the work in a child, so that memory is its own, and reads its outcome.
static int in_child(int (*work)(const char *, size_t, enum mode, struct outcome *), const char *dir,
                    size_t bytes, enum mode mode, struct outcome *out)
{
    int ends[2], status;
    if (pipe(ends) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        struct outcome outcome = {0};
        int result = work(dir, bytes, mode, &outcome);
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        outcome.peak_kib = usage.ru_maxrss;
        outcome.cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                              (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        if (write(ends[1], &outcome, sizeof outcome) != sizeof outcome)
            result = -1;
        _exit(result < 0 ? 1 : 0);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], out, sizeof *out);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || got != sizeof *out)
        return -1;
    return 0;
}

// --- work ----------------------------------------------------------------------------------------

static int make_traces(const char *dir, size_t bytes, enum mode mode, struct outcome *out)
{
    static struct program program;
    static struct machine machine;
    (void)mode;
    program_make(&program, SEED, BUSY);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        struct scenario scenario = {
            .seed = SEED + (uint64_t)cpu, .bytes = bytes, .psb_bytes = PSB_BYTES};
        char path[64];
        file_name(path, dir, cpu, bytes);
        if (machine_run(&machine, &program, &scenario) < 0)
            return -1;
        FILE *file = fopen(path, "wb");
        size_t length = writer_offset(&machine.writer);
        bool wrote = file && fwrite(machine.writer.data, 1, length, file) == length;
        if (!file || fclose(file) != 0 || !wrote)
            return -1;
        out->instructions += machine.instructions;
        out->spans += machine.spans.count;
        machine_fini(&machine);
    }
    return 0;
}

static int map_trace(const char *dir, int cpu, size_t bytes, struct pt_bytes *out)
{
    char path[64];
    file_name(path, dir, cpu, bytes);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    off_t length = descriptor < 0 ? -1 : lseek(descriptor, 0, SEEK_END);
    void *data = length <= 0 ? MAP_FAILED
                             : mmap(NULL, (size_t)length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED)
        return -1;
    close(descriptor);
    *out = (struct pt_bytes){.bytes = (uint64_t)length, .data = data, .mapped = true};
    return 0;
}

// For memory only: where two copies meet, the trace does not join.
static int make_longest(const char *dir, size_t bytes, enum mode mode, struct outcome *out)
{
    (void)mode;
    (void)out;
    for (int cpu = 0; cpu < CPUS; cpu++) {
        struct pt_bytes one;
        char path[64];
        file_name(path, dir, cpu, LONGEST_BYTES);
        FILE *file = fopen(path, "wb");
        if (!file || map_trace(dir, cpu, bytes, &one) < 0)
            return -1;
        for (int i = 0; i < COPIES; i++)
            if (fwrite(one.data, 1, one.bytes, file) != one.bytes)
                return -1;
        if (fclose(file) != 0)
            return -1;
    }
    return 0;
}

static int walk_plainly(const struct pt_memory *memory, const struct pt_bytes *bytes,
                        struct outcome *out)
{
    struct pt_recorder recorder = {.nominal_ratio = NOMINAL_RATIO};
    struct plain_walk walk = {0};
    struct pt_image *image;
    struct error err;
    struct pt_code_view *code = pt_code_view_alloc(memory, &err);
    int result = code ? pt_code_view_image(code, PT_SPACE_ALL, &image, &err) : -1;
    if (result == 0)
        result = plain_walk(image, &recorder, bytes->data, bytes->bytes, &walk);
    out->instructions += walk.instructions;
    out->errors += walk.errors;
    pt_code_view_free(code);
    return result;
}

static int count_span(void *context, const struct pt_span *span, struct error *err)
{
    (void)err;
    *(uint64_t *)context += span->end >= span->begin;
    return 0;
}

static int take_piece(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                      struct error *err)
{
    struct decoded *cpu = (struct decoded *)context + stream;
    cpu->instructions += piece->counts.instructions;
    cpu->errors += piece->errors.count;
    cpu->walked += piece->counts.walked_bytes;
    return pt_calls_take(cpu->calls, piece, contiguous, err);
}

static int compare_windows(const void *a, const void *b)
{
    const struct pt_window *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

// One of every thousand messages of this CPU; a message is a ten-thousandth of its trace's time.
static size_t choose_windows(const struct pt_packets *packets, struct pt_window *windows)
{
    struct random_source random = {SEED};
    uint64_t begin = packets->first_tsc, end = packets->last_tsc;
    uint64_t length = (end - begin) / MESSAGES;
    size_t count = MESSAGES / 1000;
    for (size_t i = 0; i < count; i++) {
        uint64_t from = begin + length * random_below(&random, MESSAGES);
        windows[i] = (struct pt_window){from, from + length};
    }
    qsort(windows, count, sizeof *windows, compare_windows);
    size_t kept = 0;
    for (size_t i = 1; i < count; i++)
        if (windows[i].from > windows[kept].to)
            windows[++kept] = windows[i];
    return kept + 1;
}

static int decode_spans(struct pt_trace *trace, enum mode mode, struct outcome *out)
{
    struct pt_stream streams[CPUS];
    struct decoded decoded[CPUS] = {0};
    struct pt_window windows[CPUS][MESSAGES / 1000];
    struct pt_windows chosen[CPUS];
    struct pt_decode_options options = {0};
    struct error err;
    int result = pt_trace_scan(trace, &err);
    for (int i = 0; result == 0 && mode == WINDOWS && i < CPUS; i++) {
        struct pt_trace_stream *from = trace->streams.items[i];
        chosen[i] = (struct pt_windows){.items = windows[i],
                                        .count = choose_windows(&from->packets, windows[i])};
        from->stream.windows = &chosen[i];
    }
    if (result == 0 && mode == WINDOWS)
        result = pt_trace_refine(trace, NULL, &err);
    for (int i = 0; result == 0 && i < CPUS; i++) {
        streams[i] = trace->streams.items[i]->stream;
        decoded[i].calls = pt_calls_alloc(NULL, true, count_span, &decoded[i].spans, &err);
        result = decoded[i].calls ? 0 : -1;
    }
    if (result == 0)
        result = pt_decode(&trace->memory, trace->symbols, streams, CPUS, &options, take_piece,
                           decoded, &err);
    for (int i = 0; result == 0 && i < CPUS; i++) {
        result = pt_calls_finish(decoded[i].calls, &err);
        out->spans += decoded[i].spans;
        out->instructions += decoded[i].instructions;
        out->errors += decoded[i].errors;
        out->walked += decoded[i].walked;
    }
    return result;
}

// Scanning is part of the work, mapping is not.
static int open_trace(struct pt_trace *trace, const struct program *program, const char *dir,
                      size_t bytes)
{
    struct pt_recorder recorder = {.nominal_ratio = NOMINAL_RATIO};
    struct error err;
    int result = pt_trace_init(trace, &err);
    if (result == 0)
        result = memory_of(program, &trace->memory, &err);
    for (int i = 0; result == 0 && i < CPUS; i++) {
        char path[64];
        file_name(path, dir, i, bytes);
        result = pt_trace_add_file(trace, path, (uint32_t)i, &recorder, &err);
    }
    return result;
}

static int decode(const char *dir, size_t bytes, enum mode mode, struct outcome *out)
{
    static struct program program;
    struct pt_symbols symbols = {.context = &program, .find = program_find};
    struct pt_trace trace;
    program_make(&program, SEED, BUSY);
    if (open_trace(&trace, &program, dir, bytes) < 0)
        return -1;
    trace.symbols = &symbols;
    trace.windows_only = mode == WINDOWS;
    double begin = now_seconds();
    int result = 0;
    if (mode == PLAIN)
        for (int i = 0; result == 0 && i < CPUS; i++)
            result = walk_plainly(&trace.memory, &trace.streams.items[i]->stream.bytes, out);
    else
        result = decode_spans(&trace, mode, out);
    out->seconds = now_seconds() - begin;
    return result;
}

// --- the bench -----------------------------------------------------------------------------------

struct measured {
    double seconds[MODES][ROUNDS], cpu_seconds[MODES][ROUNDS];
    double speedup[ROUNDS], cpu_share[ROUNDS], window_share[ROUNDS];
    double megabytes_per_second[ROUNDS];
    double peak_longest, peak_long, peak_short;
    double windows_walked, windows_walked_longest; // share of the bytes
};

static int measure(const char *dir, struct measured *out)
{
    struct outcome made, one;
    if (in_child(make_traces, dir, LONG_BYTES, FULL, &made) < 0)
        return -1;
    uint64_t truth = made.instructions;
    if (in_child(make_traces, dir, SHORT_BYTES, FULL, &made) < 0)
        return -1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int mode = 0; mode < MODES; mode++) {
            if (in_child(decode, dir, LONG_BYTES, (enum mode)mode, &one) < 0 || one.errors)
                return -1;
            if (mode != WINDOWS && one.instructions != truth) {
                fprintf(stderr, "%s: %" PRIu64 " instructions, not %" PRIu64 "\n", mode_names[mode],
                        one.instructions, truth);
                return -1;
            }
            out->seconds[mode][round] = one.seconds;
            out->cpu_seconds[mode][round] = one.cpu_seconds;
            if (mode == WINDOWS)
                out->windows_walked = (double)one.walked / (CPUS * (double)LONG_BYTES);
            if (mode == FULL)
                out->peak_long = (double)one.peak_kib / 1024;
        }
        out->speedup[round] = out->seconds[PLAIN][round] / out->seconds[FULL][round];
        out->cpu_share[round] = out->cpu_seconds[FULL][round] / out->cpu_seconds[PLAIN][round];
        out->window_share[round] = out->seconds[WINDOWS][round] / out->seconds[FULL][round];
        out->megabytes_per_second[round] = CPUS * LONG_BYTES / 1e6 / out->seconds[FULL][round];
    }
    if (in_child(decode, dir, SHORT_BYTES, FULL, &one) < 0)
        return -1;
    out->peak_short = (double)one.peak_kib / 1024;
    if (in_child(make_longest, dir, LONG_BYTES, FULL, &one) < 0 ||
        in_child(decode, dir, LONGEST_BYTES, FULL, &one) < 0)
        return -1;
    out->peak_longest = (double)one.peak_kib / 1024;
    // Its copies have the same times: each window is in all of them, ten times as many messages.
    if (in_child(decode, dir, LONGEST_BYTES, WINDOWS, &one) < 0)
        return -1;
    out->windows_walked_longest = (double)one.walked / (CPUS * (double)LONGEST_BYTES);
    return 0;
}

static int report(struct measured *all, struct bench_json *json)
{
    printf("%d CPUs, %d MiB of trace each\n", CPUS, LONG_BYTES >> 20);
    for (int mode = 0; mode < MODES; mode++) {
        quantile_sort(all->seconds[mode], ROUNDS);
        printf("  %-20s %8.3f s  [%.3f, %.3f]\n", mode_names[mode], all->seconds[mode][ROUNDS / 2],
               all->seconds[mode][0], all->seconds[mode][ROUNDS - 1]);
    }
    quantile_sort(all->speedup, ROUNDS);
    quantile_sort(all->cpu_share, ROUNDS);
    quantile_sort(all->window_share, ROUNDS);
    quantile_sort(all->megabytes_per_second, ROUNDS);
    printf(
        "  all into spans / plain: %.2f times as fast (aim: at least 1.6, on 2 cores)\n"
        "  all into spans / plain: %.2f of the processor time\n"
        "  windows / all: %.3f of the time (aim: at most 0.1)\n"
        "  windows: %.4f of the bytes decoded, %.4f where the trace is ten times longer and its "
        "index of PSBs coarser\n"
        "  peak memory: %.1f MiB; of a trace ten times shorter: %.1f MiB, ten times longer: %.1f "
        "MiB (aim: the same)\n",
        all->speedup[ROUNDS / 2], all->cpu_share[ROUNDS / 2], all->window_share[ROUNDS / 2],
        all->windows_walked, all->windows_walked_longest, all->peak_long, all->peak_short,
        all->peak_longest);
    bench_json_add(json, "plain_walk", "s", all->seconds[PLAIN], ROUNDS);
    bench_json_add(json, "full_decode", "s", all->seconds[FULL], ROUNDS);
    bench_json_add(json, "window_decode", "s", all->seconds[WINDOWS], ROUNDS);
    bench_json_add(json, "full_speedup_over_plain_walk", "times", all->speedup, ROUNDS);
    bench_json_add(json, "full_processor_time_of_plain_walk", "fraction", all->cpu_share, ROUNDS);
    bench_json_add(json, "window_share_of_full", "fraction", all->window_share, ROUNDS);
    bench_json_add(json, "window_bytes", "fraction", &all->windows_walked, 1);
    bench_json_add(json, "window_bytes_of_tenfold", "fraction", &all->windows_walked_longest, 1);
    bench_json_add(json, "full_decode_rate", "MB/s", all->megabytes_per_second, ROUNDS);
    bench_json_add(json, "peak_memory", "MiB", &all->peak_long, 1);
    bench_json_add(json, "peak_memory_of_a_tenth", "MiB", &all->peak_short, 1);
    bench_json_add(json, "peak_memory_of_tenfold", "MiB", &all->peak_longest, 1);
    return bench_json_close(json);
}

int main(void)
{
    struct measured all = {0};
    struct bench_json json;
    if (bench_json_open(&json, "decode") < 0)
        return 1;
    if (captures_compare(&json) < 0) {
        fprintf(stderr, "the captures could not be decoded\n");
        return 1;
    }
    char dir[] = "/tmp/taillight-decode-XXXXXX", path[64];
    if (!mkdtemp(dir)) {
        perror("a folder for the trace");
        return 1;
    }
    int result = measure(dir, &all);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        file_name(path, dir, cpu, LONG_BYTES);
        unlink(path);
        file_name(path, dir, cpu, SHORT_BYTES);
        unlink(path);
        file_name(path, dir, cpu, LONGEST_BYTES);
        unlink(path);
    }
    rmdir(dir);
    if (result < 0) {
        fprintf(stderr, "decoding failed\n");
        return 1;
    }
    return report(&all, &json) == 0 ? 0 : 1;
}
