// SPDX-License-Identifier: MIT
//
// How much memory `taillight analyze` takes, by the kind of perf.data and its length: a file, the
// output of a pipe, compressed records, a directory, each 1, 10 and 100 times as long, with context
// switches and new processes in proportion. Then what one context switch and one new process cost,
// which is what grows. Every measurement is the command itself, in a process of its own.
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/perf_data_maker.h"
#include "tests/analysis/pt/pt_round_trip.h"
#include "tests/bench/bench_json.h"

enum {
    CPUS = 4,
    ONE_BYTES = 512 << 10, // of each CPU, in the shortest
    LENGTHS = 3,
    PIECE_BYTES = 64 << 10, // of one AUXTRACE record
    SEED = 20260102,
    BUSY = 40,
    SWITCHES = 1000000,
    PROCESSES = 100000,
};
static const unsigned lengths[LENGTHS] = {1, 10, 100};

enum mode { MODE_FILE, MODE_PIPE, MODE_COMPRESSED, MODE_DIRECTORY, MODES };
static const char *const mode_names[MODES] = {"file", "pipe", "compressed", "directory"};

// What goes with each piece of trace.
struct sideband {
    unsigned switches, processes;
};

struct writer_to {
    enum mode mode;
    FILE *file, *kernel[CPUS];
    ZSTD_CStream *squeezer;
    uint64_t first_ns, last_ns;
    uint32_t next_pid;
};

// --- traces ------------------------------------------------------------------------------------

static int save(const char *dir, const char *name, const void *bytes, size_t count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    bool wrote = file && fwrite(bytes, 1, count, file) == count;
    return file && fclose(file) == 0 && wrote ? 0 : -1;
}

static int make_traces(const char *dir)
{
    static struct program program;
    static struct machine machine;
    char name[16];
    program_make(&program, SEED, BUSY);
    int result = save(dir, "user", program.user[0], program.user_bytes[0]);
    if (result == 0)
        result = save(dir, "kernel", program.kernel, program.kernel_bytes);
    for (int cpu = 0; result == 0 && cpu < CPUS; cpu++) {
        struct scenario scenario = {
            .seed = SEED + (uint64_t)cpu, .bytes = ONE_BYTES, .psb_bytes = 4096};
        snprintf(name, sizeof name, "%d.pt", cpu);
        result = machine_run(&machine, &program, &scenario);
        if (result == 0)
            result = save(dir, name, machine.writer.data, writer_offset(&machine.writer));
        machine_fini(&machine);
    }
    return result;
}

static uint8_t *load(const char *dir, int cpu, size_t *bytes)
{
    char path[128];
    struct stat status;
    snprintf(path, sizeof path, "%s/%d.pt", dir, cpu);
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) < 0)
        return NULL;
    uint8_t *data = malloc((size_t)status.st_size);
    *bytes = data ? fread(data, 1, (size_t)status.st_size, file) : 0;
    fclose(file);
    return data;
}

// --- recordings --------------------------------------------------------------------------------

static void put(FILE *file, struct maker *maker)
{
    fwrite(maker->bytes, 1, maker->count, file);
    maker->count = 0;
}

// perf compresses what the kernel wrote, one stream cut into records.
static void put_compressed(struct writer_to *to, struct maker *records)
{
    static uint8_t squeezed[60000];
    ZSTD_inBuffer in = {records->bytes, records->count, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {squeezed, sizeof squeezed, 0};
        struct maker record = {0};
        left = ZSTD_compressStream2(to->squeezer, &out, &in, ZSTD_e_flush);
        make_record(&record, PERF_COMPRESSED, 0);
        make_bytes(&record, squeezed, out.pos);
        make_record_end(&record);
        put(to->file, &record);
        free(record.bytes);
    } while (left && !ZSTD_isError(left));
    records->count = 0;
}

static void put_kernel(struct writer_to *to, int cpu, struct maker *records)
{
    if (to->mode == MODE_COMPRESSED)
        put_compressed(to, records);
    else
        put(to->mode == MODE_DIRECTORY ? to->kernel[cpu] : to->file, records);
}

// The sideband of one piece of a CPU's trace that lies in [begin, end) of the whole, as fractions.
static void put_sideband(struct writer_to *to, int cpu, double begin, double end,
                         const struct sideband *sideband)
{
    struct maker records = {0};
    double span = (double)(to->last_ns - to->first_ns);
    for (unsigned i = 0; i < sideband->switches; i++) {
        double at = begin + (end - begin) * i / sideband->switches;
        uint64_t time = to->first_ns + (uint64_t)(span * at);
        make_switch(&records, true, 100 + i % 7, 100 + (i + 1) % 7, time, (uint32_t)cpu);
        make_switch(&records, false, 100 + (i + 1) % 7, 100 + i % 7, time, (uint32_t)cpu);
    }
    for (unsigned i = 0; i < sideband->processes; i++) {
        double at = begin + (end - begin) * i / sideband->processes;
        uint64_t time = to->first_ns + (uint64_t)(span * at);
        uint32_t pid = to->next_pid++;
        make_task(&records, PERF_FORK, pid, 100, time);
        make_comm(&records, pid, "a process", time, true);
        make_mmap2(&records, pid, 0x7f0000000000, 0x1000, 0, "/nowhere/to/be/found", time, 5);
        make_task(&records, PERF_EXIT, pid, 100, time);
    }
    put_kernel(to, cpu, &records);
    free(records.bytes);
}

static int put_trace(struct writer_to *to, const char *dir, unsigned length,
                     const struct sideband *sideband)
{
    struct maker record = {0};
    uint64_t offset[CPUS] = {0};
    size_t bytes[CPUS];
    uint8_t *data[CPUS];
    for (int cpu = 0; cpu < CPUS; cpu++)
        if (!(data[cpu] = load(dir, cpu, &bytes[cpu])))
            return -1;
    for (unsigned copy = 0; copy < length; copy++)
        for (size_t at = 0; at < ONE_BYTES; at += PIECE_BYTES)
            for (int cpu = 0; cpu < CPUS; cpu++) {
                size_t from = bytes[cpu] * (at / PIECE_BYTES) / (ONE_BYTES / PIECE_BYTES),
                       next = bytes[cpu] * (at / PIECE_BYTES + 1) / (ONE_BYTES / PIECE_BYTES);
                double begin = (copy + (double)at / ONE_BYTES) / length;
                double end = begin + (double)PIECE_BYTES / ONE_BYTES / length;
                put_sideband(to, cpu, begin, end, sideband);
                make_auxtrace(&record, (uint32_t)cpu, (uint32_t)cpu, offset[cpu], data[cpu] + from,
                              next - from);
                offset[cpu] += next - from;
                put(to->file, &record);
            }
    for (int cpu = 0; cpu < CPUS; cpu++)
        free(data[cpu]);
    free(record.bytes);
    return 0;
}

static void put_header(struct writer_to *to)
{
    struct maker header = {0};
    if (to->mode == MODE_PIPE) {
        make_bytes(&header, "PERFILE2", 8);
        make_u64(&header, 16);
        make_record(&header, PERF_HEADER_ATTR, 0);
        make_attr(&header, 8, 0x300e601, MAKER_SAMPLE_TYPE);
        make_u64(&header, 7);
        make_record_end(&header);
    } else {
        header = make_file();
    }
    make_pt_info(&header, false);
    put(to->file, &header);
    free(header.bytes);
}

static void recording_path(char out[128], const char *dir, enum mode mode)
{
    snprintf(out, 128, "%s/perf.data%s", dir, mode == MODE_DIRECTORY ? ".dir" : "");
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "wb");
}

static int close_all(struct writer_to *to)
{
    int result = 0;
    if (to->mode != MODE_PIPE) { // how long the records are
        uint64_t bytes = (uint64_t)ftell(to->file) - MAKER_RECORDS_AT;
        fseek(to->file, 48, SEEK_SET);
        fwrite(&bytes, sizeof bytes, 1, to->file);
    }
    for (int cpu = 0; to->kernel[0] && cpu < CPUS; cpu++)
        result |= fclose(to->kernel[cpu]);
    ZSTD_freeCStream(to->squeezer);
    return result | fclose(to->file);
}

// TSC of the first CPU's trace, in the clock that make_pt_info describes.
static int find_times(struct writer_to *to, const char *dir)
{
    struct pt_packets packets;
    struct error err;
    size_t bytes;
    uint8_t *data = load(dir, 0, &bytes);
    struct pt_bytes source = {.bytes = bytes, .data = data};
    const struct perf_time_conversion clock = {
        .valid = true, .shift = 31, .mult = 1789569706, .zero = 1000};
    if (!data || pt_packets_scan(&source, &packets, &err) < 0)
        return -1;
    to->first_ns = perf_time_of_tsc(&clock, packets.first_tsc);
    to->last_ns = perf_time_of_tsc(&clock, packets.last_tsc);
    pt_packets_free(&packets);
    free(data);
    return 0;
}

static int make_recording(const char *dir, enum mode mode, unsigned length,
                          const struct sideband *sideband)
{
    struct writer_to to = {.mode = mode, .squeezer = ZSTD_createCStream(), .next_pid = 1000};
    char path[128], name[16];
    recording_path(path, dir, mode);
    if (mode == MODE_DIRECTORY) {
        mkdir(path, 0700);
        for (int cpu = 0; cpu < CPUS; cpu++) {
            snprintf(name, sizeof name, "data.%d", cpu);
            if (!(to.kernel[cpu] = open_in(path, name)))
                return -1;
        }
        to.file = open_in(path, "data");
    } else {
        to.file = fopen(path, "wb");
    }
    if (!to.file || !to.squeezer || find_times(&to, dir) < 0)
        return -1;
    put_header(&to);
    int result = put_trace(&to, dir, length, sideband);
    return close_all(&to) == 0 ? result : -1;
}

// --- measuring ---------------------------------------------------------------------------------

// Runs work in a child, so that this process stays small: a child's peak begins with its parent's.
static int in_child(int (*work)(const char *, enum mode, unsigned, const struct sideband *),
                    const char *dir, enum mode mode, unsigned length,
                    const struct sideband *sideband)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(work(dir, mode, length, sideband) < 0 ? 1 : 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static int make_traces_in_child(const char *dir, enum mode mode, unsigned length,
                                const struct sideband *sideband)
{
    (void)mode, (void)length, (void)sideband;
    return make_traces(dir);
}

static void analyze(const char *dir, enum mode mode)
{
    const char *build = getenv("BUILD");
    char path[128], program[256], user[160], kernel[160];
    recording_path(path, dir, mode);
    snprintf(program, sizeof program, "%s/taillight", build ? build : "build");
    snprintf(user, sizeof user, "0x%" PRIx64 "=%s/user", (uint64_t)USER_BASE, dir);
    snprintf(kernel, sizeof kernel, "0x%" PRIx64 "=%s/kernel", (uint64_t)KERNEL_BASE, dir);
    int silence = open("/dev/null", O_WRONLY | O_CLOEXEC), ends[2];
    dup2(silence, STDOUT_FILENO);
    if (mode == MODE_PIPE && pipe(ends) == 0) {
        if (fork() == 0) {
            dup2(open(path, O_RDONLY | O_CLOEXEC), STDIN_FILENO);
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            close(ends[1]);
            execlp("cat", "cat", (char *)NULL);
            _exit(1);
        }
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
    }
    execl(program, "taillight", "analyze", "--json", "-q", mode == MODE_PIPE ? "-" : path, "--page",
          user, "--page", kernel, (char *)NULL);
    _exit(1);
}

// The peak of the command, MiB; negative: it failed.
static double peak_of(const char *dir, enum mode mode)
{
    struct rusage usage;
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        analyze(dir, mode);
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
        return -1;
    return (double)usage.ru_maxrss / 1024;
}

static double measure(const char *dir, enum mode mode, unsigned length,
                      const struct sideband *sideband)
{
    if (in_child(make_recording, dir, mode, length, sideband) < 0)
        return -1;
    return peak_of(dir, mode);
}

struct measured {
    double peak[MODES][LENGTHS];
    double switch_bytes, process_bytes;
};

// What one of `count` costs, over a recording without.
static double cost_of(const char *dir, unsigned length, const struct sideband *sideband,
                      unsigned count)
{
    const struct sideband none = {0};
    double without = measure(dir, MODE_FILE, length, &none);
    double with = measure(dir, MODE_FILE, length, sideband);
    return without < 0 || with < 0 ? -1 : (with - without) * 1048576 / count;
}

static int measure_all(const char *dir, struct measured *out)
{
    const struct sideband usual = {.switches = 8, .processes = 1};
    const unsigned pieces = CPUS * ONE_BYTES / PIECE_BYTES;
    const struct sideband switches = {.switches = SWITCHES / pieces},
                          processes = {.processes = PROCESSES / pieces};
    if (in_child(make_traces_in_child, dir, MODE_FILE, 0, NULL) < 0)
        return -1;
    for (int mode = 0; mode < MODES; mode++)
        for (int i = 0; i < LENGTHS; i++) {
            out->peak[mode][i] = measure(dir, (enum mode)mode, lengths[i], &usual);
            if (out->peak[mode][i] < 0)
                return -1;
        }
    out->switch_bytes = cost_of(dir, 1, &switches, switches.switches * pieces);
    out->process_bytes = cost_of(dir, 1, &processes, processes.processes * pieces);
    return out->switch_bytes < 0 || out->process_bytes < 0 ? -1 : 0;
}

// --- reports -----------------------------------------------------------------------------------

static int report(const struct measured *all)
{
    struct bench_json json;
    if (bench_json_open(&json, "decode_memory") < 0)
        return -1;
    printf("peak memory of taillight analyze, MiB; %d CPUs, %d KiB of trace each, times ...\n",
           CPUS, ONE_BYTES >> 10);
    printf("  %-12s %8u %8u %8u\n", "", lengths[0], lengths[1], lengths[2]);
    for (int mode = 0; mode < MODES; mode++) {
        printf("  %-12s %8.1f %8.1f %8.1f\n", mode_names[mode], all->peak[mode][0],
               all->peak[mode][1], all->peak[mode][2]);
        for (int i = 0; i < LENGTHS; i++) {
            char name[32];
            snprintf(name, sizeof name, "%s_peak_%u", mode_names[mode], lengths[i]);
            bench_json_add(&json, name, "MiB", &all->peak[mode][i], 1);
        }
    }
    printf("  a context switch (in and out) costs %.0f bytes, a process (fork, exec, a mapping, "
           "exit) %.0f bytes\n",
           all->switch_bytes, all->process_bytes);
    bench_json_add(&json, "switch", "bytes", &all->switch_bytes, 1);
    bench_json_add(&json, "process", "bytes", &all->process_bytes, 1);
    return bench_json_close(&json);
}

static void remove_all(const char *dir)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "%s is left behind\n", dir);
}

int main(void)
{
    struct measured all = {0};
    char dir[] = "/var/tmp/taillight-memory-XXXXXX";
    if (!mkdtemp(dir)) {
        perror("a folder for the recordings");
        return 1;
    }
    int result = measure_all(dir, &all);
    remove_all(dir);
    if (result == 0)
        result = report(&all);
    else
        fprintf(stderr, "a recording could not be made or analysed\n");
    return result == 0 ? 0 : 1;
}
