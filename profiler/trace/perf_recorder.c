// SPDX-License-Identifier: MIT
#include "profiler/trace/perf_recorder.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input_file.h"
#include "base/text.h"
#include "base/units.h"
#include "profiler/host/host_facts.h"

// --- whether cores can be sampled ----------------------------------------------------------------

// Whether the event can be opened for the current core, for any thread that runs there.
static bool event_opens(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof attr,
        .config = config,
        .sample_freq = SAMPLING_FREQUENCY,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
        .freq = 1,
        .disabled = 1,
    };
    unsigned core;
    if (syscall(SYS_getcpu, &core, NULL, NULL) < 0)
        core = 0;
    long fd = syscall(SYS_perf_event_open, &attr, -1, (int)core, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

void sampling_find(const char *perf, struct sampling *out)
{
    char paranoid[16];
    *out = (struct sampling){0};
    if (perf)
        snprintf(out->perf, sizeof out->perf, "%s", perf);
    else if (!host_find_program("perf", out->perf, sizeof out->perf))
        out->perf[0] = '\0';
    if (event_opens(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES))
        out->event = "cycles";
    else if (event_opens(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK))
        out->event = "cpu-clock";
    int reason = errno;
    if (!out->event && (reason == EACCES || reason == EPERM)) {
        host_read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        snprintf(out->reason, sizeof out->reason,
                 "sampling every core takes CAP_PERFMON (perf_event_paranoid is %s)",
                 paranoid[0] ? paranoid : "unknown");
        out->how = "run as root, or sysctl kernel.perf_event_paranoid=-1";
    } else if (!out->event) {
        snprintf(out->reason, sizeof out->reason,
                 "the kernel opens neither cycles nor cpu-clock: %s", strerror(reason));
        out->how = "a kernel with CONFIG_PERF_EVENTS";
    } else if (!out->perf[0]) {
        snprintf(out->reason, sizeof out->reason, "perf, which takes the samples, is not there");
        out->how = "apt-get install linux-perf";
    }
    out->ready = out->how == NULL;
}

unsigned sampling_most_allowed(void)
{
    char text[16];
    host_read_line("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof text);
    return (unsigned)strtoul(text, NULL, 10);
}

enum {
    ANSWER_MS = 30 * 1000, // the first answer waits for the copy of kcore
    END_MS = 120 * 1000,   // all buffers are written out, and the build-ids read
    KILL_GRACE_MS = 2000,
    LOOK_MS = 50,    // for a person who interrupts
    HANGS_MS = 500,  // who then has done nothing for so long will not
    SPINS_MS = 2000, // nor who has run for so long without reading or writing
};

// --- the command line ----------------------------------------------------------------------------

unsigned perf_recorder_arguments(const struct perf_recorder_settings *settings,
                                 struct perf_recorder_words *words,
                                 const char *argv[PERF_RECORDER_ARGUMENTS])
{
    unsigned n = 0;
    argv[n++] = settings->perf ? settings->perf : "perf";
    argv[n++] = "record";
    argv[n++] = "--event";
    argv[n++] = settings->event;
    if (settings->pids) {
        argv[n++] = "--pid";
        argv[n++] = settings->pids;
        if (settings->per_thread)
            argv[n++] = "--per-thread";
    } else if (CPU_COUNT(&settings->cores)) {
        argv[n++] = "--cpu";
        argv[n++] = units_format_cores(&settings->cores, words->cores, sizeof words->cores);
    } else {
        argv[n++] = "--all-cpus";
    }
    if (settings->switches)
        argv[n++] = "--switch-events";
    if (settings->frequency) {
        snprintf(words->frequency, sizeof words->frequency, "--freq=%u", settings->frequency);
        argv[n++] = words->frequency;
        argv[n++] = "--call-graph=fp";
    }
    if (settings->host_time)
        argv[n++] = "--clockid=CLOCK_MONOTONIC_RAW";
    argv[n++] = "--delay=-1"; // begins disabled
    argv[n++] = "--control=fd:0,1";
    argv[n++] = "--no-buildid-cache"; // leaves the user's ~/.debug alone
    if (settings->mapped_ids)
        argv[n++] = "--buildid-mmap";
    // A thread of perf's, which waits for BPF programs in naps of a second and is waited for at the
    // end. Which came the kernel's KSYMBOL records say all the same; a trace needs their code, too.
    if (settings->mapped_ids && settings->frequency)
        argv[n++] = "--no-bpf-event";
    if (settings->kcore)
        argv[n++] = "--kcore";
    if (settings->aux_bytes) {
        snprintf(words->aux, sizeof words->aux, "--mmap-pages=,%lluK",
                 (unsigned long long)(settings->aux_bytes >> 10));
        argv[n++] = words->aux;
    }
    if (settings->snapshot)
        argv[n++] = "--snapshot";
    argv[n++] = "--output";
    argv[n++] = settings->output;
    argv[n] = NULL;
    return n;
}

// --- when it fails -------------------------------------------------------------------------------

// Not where it is but what it is called: a capture on another host is fetched, and removed there.
static const char *log_name(const struct perf_recorder *recorder)
{
    const char *slash = strrchr(recorder->log, '/');
    return slash ? slash + 1 : recorder->log;
}

// perf's complaint on one line: the complaint comes first, then its usage text. That it obeyed is
// none.
static void read_complaint(const char *log, char *out, size_t out_bytes)
{
    static const char *const obeyed[] = {"Events enabled", "Events disabled"};
    char text[1024];
    size_t used = 0, got = 0;
    FILE *file = input_stream(log, NULL);
    if (file) {
        got = fread(text, 1, sizeof text - 1, file);
        fclose(file);
    }
    text[got] = '\0';
    char *usage = strstr(text, "Usage: ");
    if (usage)
        *usage = '\0';
    for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++)
        for (char *at; (at = strstr(text, obeyed[i]));)
            memset(at, ' ', strlen(obeyed[i]));
    for (const char *at = text; *at && used + 2 < out_bytes; at++) {
        bool space = isspace((unsigned char)*at);
        if (space && (used == 0 || out[used - 1] == ' '))
            continue;
        out[used++] = space ? ' ' : *at;
    }
    while (used && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}

static int ended_error(const struct perf_recorder *recorder, const char *when, int status,
                       struct error *err)
{
    char complaint[400];
    read_complaint(recorder->log, complaint, sizeof complaint);
    bool killed = WIFSIGNALED(status);
    error_set(err, ERROR_FAILED, "perf record ended %s (%s %d)", when,
              killed ? "signal" : "exit code", killed ? WTERMSIG(status) : WEXITSTATUS(status));
    if (complaint[0])
        text_append(err->text, sizeof err->text, ": %s; all of it is in the capture's %s",
                    complaint, log_name(recorder));
    return -ERROR_FAILED;
}

static bool log_says(const char *log, const char *words)
{
    char line[1024];
    bool found = false;
    FILE *file = input_stream(log, NULL);
    while (file && !found && fgets(line, sizeof line, file))
        found = strstr(line, words) != NULL;
    if (file)
        fclose(file);
    return found;
}

// --- one that hangs ------------------------------------------------------------------------------

// Since when perf has come no further.
struct halt {
    int64_t rests_since_ms;
    uint64_t ran_ns, spins_since_ns; // how long it has run, and had when it last moved anything
    uint64_t moved;
    bool spins;
};

// Whether somebody has interrupted and perf comes no further: it is stopped, waits for what does
// not come, or runs and neither reads nor writes. One that works is left to its work.
static bool hangs(const struct perf_recorder *recorder, struct halt *halt)
{
    const int64_t now_ms = monotonic_ms(); // once: between two readings others may have the core
    bool hurries = (recorder->interrupted && *recorder->interrupted) || process_is_interrupted();
    if (!process_rests(&recorder->process, &halt->ran_ns) || !hurries)
        halt->rests_since_ms = now_ms;
    if (process_moves(&recorder->process, &halt->moved) || !hurries)
        halt->spins_since_ns = halt->ran_ns;
    halt->spins = halt->ran_ns - halt->spins_since_ns >= SPINS_MS * 1000000ull;
    return halt->spins || now_ms - halt->rests_since_ms >= HANGS_MS;
}

static int hang_error(struct perf_recorder *recorder, const struct halt *halt, const char *where,
                      struct error *err)
{
    process_stop(&recorder->process, 0);
    return error_set(err, ERROR_FAILED,
                     "perf record %s for %d ms %s, and was killed when the capture was "
                     "interrupted; what it said is in the capture's %s",
                     halt->spins ? "ran without reading or writing" : "did nothing",
                     halt->spins ? SPINS_MS : HANGS_MS, where, log_name(recorder));
}

// --- the conversation ----------------------------------------------------------------------------

enum answer {
    ANSWER_TAKES_LONG,
    ANSWER_IS_THERE,
    ANSWER_NEVER,      // perf closed its end, so it is about to exit
    ANSWER_NOT_WANTED, // somebody interrupts, before anything was recorded
    ANSWER_HANGS,      // somebody interrupts, and perf comes no further
};

// Waits for "ack" (newer versions send a NUL after it).
static enum answer await_answer(struct perf_recorder *recorder, struct halt *halt)
{
    static const char answer[] = "ack\n";
    size_t matched = 0;
    *halt = (struct halt){.rests_since_ms = monotonic_ms()};
    for (long deadline = monotonic_ms() + recorder->answer_ms;;) {
        long left = deadline - monotonic_ms();
        struct pollfd ready = {.fd = recorder->process.output, .events = POLLIN};
        if (!recorder->ready && process_is_interrupted())
            return ANSWER_NOT_WANTED;
        int polled = poll(&ready, 1, left <= 0 ? 0 : left < LOOK_MS ? (int)left : LOOK_MS);
        if (polled == 0 && hangs(recorder, halt))
            return ANSWER_HANGS;
        if ((polled < 0 && errno == EINTR) || (polled == 0 && left > 0))
            continue;
        char byte;
        if (polled <= 0)
            return ANSWER_TAKES_LONG;
        ssize_t got = read(recorder->process.output, &byte, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ANSWER_NEVER;
        matched = byte == answer[matched] ? matched + 1 : byte == answer[0];
        if (matched == sizeof answer - 1)
            return ANSWER_IS_THERE;
    }
}

// Sends perf a command and waits for its answer. On failure perf is ended.
static int perf_command(struct perf_recorder *recorder, const char *word, const char *when,
                        struct error *err)
{
    char line[32];
    struct halt halt;
    int status = 0, length = snprintf(line, sizeof line, "%s\n", word);
    struct process *process = &recorder->process;
    if (process->pid <= 0)
        return error_set(err, ERROR_FAILED, "perf record does not run, so it cannot %s", word);
    ssize_t written = write(process->input, line, (size_t)length);
    enum answer answer = written == length ? await_answer(recorder, &halt) : ANSWER_NEVER;
    if (answer == ANSWER_IS_THERE)
        return 0;
    if (answer == ANSWER_HANGS)
        return hang_error(recorder, &halt, when, err);
    if (answer == ANSWER_NOT_WANTED) {
        process_stop(process, 0);
        return error_set(err, ERROR_FAILED, "interrupted before perf record was ready");
    }
    int ended = process_wait(process, answer == ANSWER_NEVER ? KILL_GRACE_MS : 0, &status, err);
    if (ended > 0)
        ended_error(recorder, when, status, err);
    else if (ended == 0)
        error_set(
            err, ERROR_FAILED,
            "perf record does not answer `%s` within %d ms; what it said is in the capture's %s",
            word, recorder->answer_ms, log_name(recorder));
    process_stop(process, KILL_GRACE_MS);
    return -ERROR_FAILED;
}

static int start_once(struct perf_recorder *recorder, const struct perf_recorder_settings *settings,
                      struct error *err)
{
    struct perf_recorder_words words;
    const char *argv[PERF_RECORDER_ARGUMENTS];
    const struct process_place place = {.cores = settings->place,
                                        .log_path = settings->log,
                                        .pipe_input = true,
                                        .pipe_output = true};
    *recorder = (struct perf_recorder){
        .process = {.input = -1, .output = -1},
        .interrupted = settings->interrupted,
        .answer_ms = settings->answer_ms ? settings->answer_ms : ANSWER_MS,
        .end_ms = settings->end_ms ? settings->end_ms : END_MS,
    };
    if (strlen(settings->log) >= sizeof recorder->log)
        return error_set(err, ERROR_INPUT, "%s: the path is too long", settings->log);
    snprintf(recorder->log, sizeof recorder->log, "%s", settings->log);
    perf_recorder_arguments(settings, &words, argv);
    process_describe(argv, recorder->command, sizeof recorder->command);
    unlink(settings->log); // left by an earlier capture
    int result = process_start(&recorder->process, argv, &place, err);
    if (result == 0)
        result = perf_command(recorder, "ping", "before it was ready", err);
    recorder->ready = result == 0;
    return result;
}

int perf_recorder_start(struct perf_recorder *recorder,
                        const struct perf_recorder_settings *settings, struct error *err)
{
    struct perf_recorder_settings without = *settings;
    int result = start_once(recorder, settings, err);
    // "unknown option `buildid-mmap'"; "no support to record build id in mmap events"
    if (result == 0 || !settings->mapped_ids || !strstr(err->text, "build"))
        return result;
    without.mapped_ids = false;
    return start_once(recorder, &without, err);
}

int perf_recorder_enable(struct perf_recorder *recorder, struct error *err)
{
    return perf_command(recorder, "enable", "when its events were enabled", err);
}

int perf_recorder_disable(struct perf_recorder *recorder, struct error *err)
{
    return perf_command(recorder, "disable", "before it was stopped", err);
}

// perf answers before it reads the buffers, and answers the next command only after it has.
int perf_recorder_snapshot(struct perf_recorder *recorder, struct error *err)
{
    int result = perf_command(recorder, "snapshot", "at a snapshot", err);
    if (result == 0)
        result = perf_command(recorder, "ping", "while it wrote a snapshot", err);
    recorder->snapshots += result == 0;
    return result;
}

int perf_recorder_check(struct perf_recorder *recorder, struct error *err)
{
    int status;
    int ended = process_wait(&recorder->process, 0, &status, err);
    return ended > 0 ? ended_error(recorder, "while it was recording", status, err) : ended;
}

int perf_recorder_end(struct perf_recorder *recorder, struct error *err)
{
    int result = perf_command(recorder, "stop", "before it was stopped", err);
    recorder->ending = result == 0;
    return result;
}

// Returns 1 when it has ended, 0 when it has not within its time, or hangs.
static int await_end(struct perf_recorder *recorder, int *status, bool *hung, struct halt *halt,
                     struct error *err)
{
    *halt = (struct halt){.rests_since_ms = monotonic_ms()};
    const int64_t deadline_ms = monotonic_ms() + recorder->end_ms;
    int ended;
    while ((ended = process_wait(&recorder->process, LOOK_MS, status, err)) == 0 &&
           monotonic_ms() < deadline_ms && !*hung)
        *hung = hangs(recorder, halt);
    return ended;
}

int perf_recorder_stop(struct perf_recorder *recorder, struct error *err)
{
    int status = 0;
    bool hung = false;
    struct halt halt;
    int result = recorder->ending ? 0 : perf_recorder_end(recorder, err);
    if (result < 0)
        return result;
    int ended = await_end(recorder, &status, &hung, &halt, err);
    if (ended > 0)
        process_close_pipes(&recorder->process);
    if (ended == 0 && hung) {
        hang_error(recorder, &halt, "after it was stopped", err);
        // A thread of its own is waited for, for up to a second, when all is written.
        return log_says(recorder->log, "Captured and wrote") ? 0 : -ERROR_FAILED;
    }
    if (ended == 0) {
        process_stop(&recorder->process, KILL_GRACE_MS);
        return error_set(err, ERROR_FAILED,
                         "perf record had not written its recording %d ms after it was stopped; "
                         "what it said is in the capture's %s",
                         recorder->end_ms, log_name(recorder));
    }
    if (ended < 0)
        return ended;
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return well ? 0 : ended_error(recorder, "badly", status, err);
}

void perf_recorder_fini(struct perf_recorder *recorder)
{
    if (recorder->process.pid > 0)
        process_stop(&recorder->process, KILL_GRACE_MS);
}
