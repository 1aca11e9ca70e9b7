// SPDX-License-Identifier: MIT
//
// The same perf.data decoded by `perf script` and by `taillight analyze`, in turns: a synthetic
// trace of one process in user space, in a file as perf record writes it, with the code in an ELF
// file; and a real one, which CAPTURE names: a perf.data whose code is in the folder `symfs` beside
// it, as `taillight run` leaves it, or in this machine. perf is asked for all branches, and for an
// instruction each millisecond, for which it decodes as much and prints little. Each is a process
// of its own with its output thrown away.
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/quantile.h"
#include "tests/analysis/perf/perf_data_maker.h"
#include "tests/analysis/pt/pt_machine.h"
#include "tests/bench/bench_json.h"

enum {
    ROUNDS = 5,
    CAPTURE_ROUNDS = 3, // perf takes minutes
    TRACE_BYTES = 4 << 20,
    PSB_BYTES = 4096,
    BUSY = 40,
    PROCESS = 100,
    CODE_OFFSET = 0x1000, // where the linker puts it in the file
    SKIP = 77,
};

struct spent {
    double seconds, cpu_seconds;
};

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

// Runs a program, in `dir` unless NULL, with what it prints in the file `to`. Its exit code, -1
// when it did not run.
static int run(char *const argv[], const char *dir, const char *to, struct spent *out)
{
    int status;
    struct rusage usage;
    double begin = now_seconds();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        dup2(open("/dev/null", O_WRONLY), 2);
        if (!dir || chdir(dir) == 0)
            execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status))
        return -1;
    out->seconds = now_seconds() - begin;
    out->cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    return WEXITSTATUS(status);
}

static int write_file(const char *dir, const char *name, const void *bytes, size_t count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    bool wrote = file && fwrite(bytes, 1, count, file) == count;
    return file && fclose(file) == 0 && wrote ? 0 : -1;
}

// The program's code as an executable that perf can read.
static int make_elf(const char *dir, const struct program *program)
{
    static const char source[] = ".text\n.globl _start\n_start:\n.incbin \"code\"\n";
    char *link[] = {"cc", "-nostdlib", "-static", "-Wl,-Ttext=0x400000,--build-id=none",
                    "-o", "program",   "code.S",  NULL};
    struct spent spent;
    if (write_file(dir, "code", program->user[0], program->user_bytes[0]) < 0 ||
        write_file(dir, "code.S", source, sizeof source - 1) < 0)
        return -1;
    return run(link, dir, "/dev/null", &spent) == 0 ? 0 : -1;
}

static void make_info(struct maker *maker)
{
    // As struct intel_pt's private words: type of PMU, clock (shift, multiplier, zero, valid), bits
    // of TSC and no-return-compression, no switches, no snapshot, one process, MTC, CTC, CYC,
    // ratio.
    const uint64_t values[] = {8, 0,     1,       0, 1, 0x400, 0x800,         0, 0,
                               0, 0x200, 0x3c000, 0, 0, 0x2,   NOMINAL_RATIO, 0};
    make_record(maker, PERF_AUXTRACE_INFO, 0);
    make_u32(maker, PERF_AUXTRACE_INTEL_PT);
    make_u32(maker, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        make_u64(maker, values[i]);
    make_record_end(maker);
}

static int make_perf_data(const char *dir, const uint8_t *trace, size_t bytes)
{
    char elf[128];
    struct maker maker = make_file();
    snprintf(elf, sizeof elf, "%s/program", dir);
    make_info(&maker);
    make_comm(&maker, PROCESS, "program", 1, true);
    make_mmap2(&maker, PROCESS, USER_BASE, 1 << 16, CODE_OFFSET, elf, 2, 5);
    make_record(&maker, PERF_AUXTRACE, 0);
    make_u64(&maker, bytes);
    make_u64(&maker, 0);
    make_u64(&maker, 1);
    make_u32(&maker, 0);
    make_u32(&maker, PROCESS);
    make_u32(&maker, UINT32_MAX); // of a process, not of a CPU
    make_u32(&maker, 0);
    make_record_end(&maker);
    make_bytes(&maker, trace, bytes);
    make_file_end(&maker);
    int result = write_file(dir, "perf.data", maker.bytes, maker.count);
    free(maker.bytes);
    return result;
}

// The first scenario whose kernel is not traced.
static int make_input(const char *dir)
{
    static struct program program;
    static struct machine machine;
    int result = -1;
    program_make(&program, 1, BUSY);
    for (uint64_t seed = 1; result < 0; seed++) {
        struct scenario scenario = {.seed = seed, .bytes = TRACE_BYTES, .psb_bytes = PSB_BYTES};
        if (machine_run(&machine, &program, &scenario) < 0)
            break;
        if (!machine.traces_kernel)
            result = make_perf_data(dir, machine.writer.data, writer_offset(&machine.writer));
        machine_fini(&machine);
    }
    return result == 0 ? make_elf(dir, &program) : -1;
}

// --- measuring -----------------------------------------------------------------------------------

enum { BRANCHES, SAMPLES, OURS, PROGRAMS };
static const char *const program_names[PROGRAMS] = {"perf_script_b", "perf_script_i1ms",
                                                    "taillight_analyze"};

struct compared {
    const char *name; // begins the names of its metrics
    const char *data, *symfs;
    int rounds;
};

static void metric(struct bench_json *json, const struct compared *compared, const char *what,
                   const char *unit, double *values)
{
    char name[128];
    int middle = compared->rounds / 2;
    snprintf(name, sizeof name, "%s%s", compared->name, what);
    quantile_sort(values, (size_t)compared->rounds);
    bench_json_add(json, name, unit, values, (size_t)compared->rounds);
    printf("  %-44s %8.3f %s  [%.3f, %.3f]\n", name, values[middle], unit, values[0],
           values[compared->rounds - 1]);
}

static void report(struct bench_json *json, const struct compared *compared,
                   struct spent spent[PROGRAMS][ROUNDS])
{
    double values[ROUNDS];
    char name[64];
    for (int i = 0; i < PROGRAMS; i++) {
        for (int round = 0; round < compared->rounds; round++)
            values[round] = spent[i][round].seconds;
        metric(json, compared, program_names[i], "s", values);
    }
    for (int i = 0; i < OURS; i++) {
        for (int round = 0; round < compared->rounds; round++)
            values[round] = spent[i][round].seconds / spent[OURS][round].seconds;
        snprintf(name, sizeof name, "as_fast_as_%s", program_names[i]);
        metric(json, compared, name, "times", values);
        for (int round = 0; round < compared->rounds; round++)
            values[round] = spent[i][round].cpu_seconds / spent[OURS][round].cpu_seconds;
        snprintf(name, sizeof name, "less_processor_time_than_%s", program_names[i]);
        metric(json, compared, name, "times", values);
    }
}

static char *const *command_of(const struct compared *compared, int program, char *command[16])
{
    static char perf[256], taillight[256];
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    snprintf(taillight, sizeof taillight, "%s/taillight", build);
    snprintf(perf, sizeof perf, "%s/newer_perf/usr/bin/perf", build); // tests/lab/fetch_perf.sh
    if (access(perf, X_OK) < 0)
        snprintf(perf, sizeof perf, "perf");
    if (getenv("PERF"))
        snprintf(perf, sizeof perf, "%s", getenv("PERF"));
    char *data = (char *)(uintptr_t)compared->data, *symfs = (char *)(uintptr_t)compared->symfs;
    char *script[] = {perf,
                      "script",
                      "-i",
                      data,
                      "--symfs",
                      symfs,
                      program == BRANCHES ? "--itrace=b" : "--itrace=i1ms",
                      NULL};
    char *analyze[] = {taillight, "analyze", data, "--symfs", symfs, "--json", "-q", NULL};
    return program == OURS ? memcpy(command, analyze, sizeof analyze)
                           : memcpy(command, script, sizeof script);
}

static int measure(const struct compared *compared, struct bench_json *json)
{
    struct spent spent[PROGRAMS][ROUNDS];
    char *command[16];
    for (int round = 0; round < compared->rounds; round++)
        for (int i = 0; i < PROGRAMS; i++) {
            if (run(command_of(compared, i, command), NULL, "/dev/null", &spent[i][round]) == 0)
                continue;
            if (i == OURS)
                return 1;
            printf("%s script does not run here; it is in the Debian package linux-perf\n",
                   command[0]);
            return SKIP;
        }
    report(json, compared, spent);
    return 0;
}

// --- the real one --------------------------------------------------------------------------------

struct counts {
    json_int_t bytes, instructions, errors;
};

// What all streams together came to, with `how` as an option more.
static int count(const struct compared *compared, const char *to, char *how, struct counts *out)
{
    char *command[16];
    struct spent spent;
    size_t index;
    json_t *stream;
    command_of(compared, OURS, command);
    command[6] = how; // in place of -q
    if (run(command, NULL, to, &spent) != 0)
        return -1;
    json_t *all = json_load_file(to, 0, NULL);
    json_array_foreach(json_object_get(all, "streams"), index, stream)
    {
        out->bytes += json_integer_value(json_object_get(stream, "bytes"));
        out->instructions += json_integer_value(json_object_get(stream, "instructions"));
        out->errors += json_integer_value(json_object_get(stream, "error_count"));
    }
    json_decref(all);
    return all ? 0 : -1;
}

// Both ways of decoding, ours and libipt's, must count the same.
static int compare_capture(const char *data, const char *dir, struct bench_json *json)
{
    char beside[4096], to[128];
    struct counts ours = {0}, by_libipt = {0};
    snprintf(beside, sizeof beside, "%s", data);
    char *slash = strrchr(beside, '/');
    snprintf(slash ? slash + 1 : beside, 16, "symfs");
    struct compared compared = {.name = "capture_",
                                .data = data,
                                .symfs = access(beside, R_OK) == 0 ? beside : "/",
                                .rounds = CAPTURE_ROUNDS};
    snprintf(to, sizeof to, "%s/counts", dir);
    int result = count(&compared, to, "-q", &ours);
    result = result < 0 ? result : count(&compared, to, "--careful", &by_libipt);
    unlink(to);
    if (result < 0) {
        fprintf(stderr, "%s cannot be decoded; CAPTURE names a perf.data with Intel PT\n", data);
        return 1;
    }
    printf("%s: %.1f MB, %lld instructions, %lld errors; by libipt %lld and %lld\n", data,
           (double)ours.bytes / 1e6, ours.instructions, ours.errors, by_libipt.instructions,
           by_libipt.errors);
    if (ours.instructions != by_libipt.instructions || ours.errors != by_libipt.errors)
        return 1;
    return measure(&compared, json);
}

static int compare(const char *dir)
{
    char path[128];
    struct bench_json json;
    const char *capture = getenv("CAPTURE");
    struct compared synthetic = {.name = "", .data = path, .symfs = "/", .rounds = ROUNDS};
    if (make_input(dir) < 0 || bench_json_open(&json, "decode_perf") < 0)
        return 1;
    snprintf(path, sizeof path, "%s/perf.data", dir);
    printf("synthetic, %d MiB\n", TRACE_BYTES >> 20);
    int result = measure(&synthetic, &json);
    if (result == 0 && capture)
        result = compare_capture(capture, dir, &json);
    else if (result == 0)
        printf("no real trace: CAPTURE=FILE names a perf.data, as tests/lab records them "
               "(docs/lab.md)\n");
    return bench_json_close(&json) == 0 ? result : 1;
}

int main(void)
{
    static const char *const names[] = {"code", "code.S", "program", "perf.data"};
    char dir[] = "/tmp/taillight-decode-XXXXXX", path[128];
    if (!mkdtemp(dir)) {
        perror("a folder for the trace");
        return 1;
    }
    int result = compare(dir);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    if (result == 1)
        fprintf(stderr, "decoding failed\n");
    return result;
}
