// SPDX-License-Identifier: MIT
//
// The same perf.data decoded by `perf script --itrace=b` and by `taillight analyze`, in turns: a
// synthetic trace of one process in user space, in a file as perf record writes it, with the code
// in an ELF file. Each is a process of its own with its output thrown away.
#include <fcntl.h>
#include <inttypes.h>
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

// Runs a program and throws away what it prints. Its exit code, -1 when it did not run.
static int run(char *const argv[], const char *dir, struct spent *out)
{
    int status;
    struct rusage usage;
    double begin = now_seconds();
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
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
    return run(link, dir, &spent) == 0 ? 0 : -1;
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

static void metric(struct bench_json *json, const char *name, const char *unit, double *values)
{
    quantile_sort(values, ROUNDS);
    bench_json_add(json, name, unit, values, ROUNDS);
    printf("  %-32s %8.3f %s  [%.3f, %.3f]\n", name, values[ROUNDS / 2], unit, values[0],
           values[ROUNDS - 1]);
}

static int measure(const char *dir, const char *build)
{
    char data[128], program[256];
    struct spent perf, ours;
    double theirs[ROUNDS], own[ROUNDS], faster[ROUNDS], cheaper[ROUNDS];
    snprintf(data, sizeof data, "%s/perf.data", dir);
    snprintf(program, sizeof program, "%s/taillight", build);
    char *script[] = {"perf", "script", "-i", data, "--itrace=b", NULL};
    char *analyze[] = {program, "analyze", data, "--symfs", "/", "--json", "-q", NULL};
    for (int i = 0; i < ROUNDS; i++) {
        if (run(script, NULL, &perf) != 0) {
            printf("perf script does not run here; it is in the Debian package linux-perf\n");
            return SKIP;
        }
        if (run(analyze, NULL, &ours) != 0)
            return 1;
        theirs[i] = perf.seconds;
        own[i] = ours.seconds;
        faster[i] = perf.seconds / ours.seconds;
        cheaper[i] = perf.cpu_seconds / ours.cpu_seconds;
    }
    struct bench_json json;
    if (bench_json_open(&json, "decode_perf") < 0)
        return 1;
    metric(&json, "perf_script", "s", theirs);
    metric(&json, "taillight_analyze", "s", own);
    metric(&json, "times_as_fast", "times", faster);
    printf("  times_as_fast: aim: at least 10\n");
    metric(&json, "times_less_processor_time", "times", cheaper);
    return bench_json_close(&json) == 0 ? 0 : 1;
}

int main(void)
{
    static const char *const names[] = {"code", "code.S", "program", "perf.data"};
    char dir[] = "/tmp/taillight-decode-XXXXXX", path[128];
    const char *build = getenv("BUILD");
    if (!mkdtemp(dir)) {
        perror("a folder for the trace");
        return 1;
    }
    int result = make_input(dir) < 0 ? 1 : measure(dir, build ? build : "build");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    if (result == 1)
        fprintf(stderr, "decoding failed\n");
    return result;
}
