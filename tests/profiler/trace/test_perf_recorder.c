// SPDX-License-Identifier: MIT
//
// Driving `perf record`: its command line, and the conversation with it, against a script that
// speaks perf's part well or badly, and against the real one with a software event.
// Runs beside others: what comes in time has half a minute, and what does not never comes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/perf/perf_data.h"
#include "profiler/trace/perf_recorder.h"
#include "tests/skip.h"

// How much the clocks move between one reading and the next: where others have the core, much.
static int64_t a_reading_takes_ns;

int clock_gettime(clockid_t which, struct timespec *out)
{
    static int64_t taken_ns;
    int result = (int)syscall(SYS_clock_gettime, which, out);
    taken_ns += a_reading_takes_ns;
    out->tv_sec += taken_ns / 1000000000;
    out->tv_nsec += taken_ns % 1000000000;
    if (out->tv_nsec >= 1000000000) {
        out->tv_sec++;
        out->tv_nsec -= 1000000000;
    }
    return result;
}

static char folder[] = "/tmp/taillight-recorder-XXXXXX";
static char perf_path[64], log_path[64], output_path[64], words_path[64];

// Does as perf does, but for $MODE. Notes its arguments, its commands and its process number.
static const char script[] =
    "#!/bin/bash\n"
    "output=${@: -1}\n"
    "folder=${output%/*}\n"
    "printf '%s\\n' \"$@\" >\"$folder/arguments\"\n"
    "echo $$ >\"$folder/pid\"\n"
    "[ \"$MODE\" = refuses ] && { printf \"event syntax error: 'bogus'\\n   \\\\___ no such\\n\\n "
    "Usage: perf record\\n\" >&2; exit 129; }\n"
    "[ \"$MODE\" = old ] && [[ \" $* \" == *' --buildid-mmap '* ]] &&\n"
    "    { echo \"unknown option \\`buildid-mmap'\" >&2; exit 129; }\n"
    "echo 'Events disabled' >&2\n"
    "while read -r word; do\n"
    "    echo \"$word\" >>\"$folder/words\"\n"
    "    case \"$MODE:$word\" in\n"
    "        mute:enable | slow:ping) continue ;;\n"
    "        thinks:ping) sleep 0.3; printf 'ack\\n' ;;\n"
    "        dies:enable) echo 'No space left on device' >&2; exit 1 ;;\n"
    "        killed:enable) echo 'Events enabled' >&2; printf 'ack\\n'; kill -9 $$ ;;\n"
    "        waits:stop) printf 'ack\\n'; while [ ! -e \"$folder/go\" ]; do sleep 0.01; done; "
    "exit 0 ;;\n"
    "        lingers:stop) printf 'ack\\n'; exec sleep 60 ;;\n"
    "        spins:stop) printf 'ack\\n'; while :; do :; done ;;\n"
    "        naps:stop) echo '[ perf record: Captured and wrote 1 MB ]' >&2; printf 'ack\\n'; "
    "exec sleep 60 ;;\n"
    "        badly:stop) printf 'ack\\n'; echo 'cannot write' >&2; exit 3 ;;\n"
    "        *:stop) printf 'ack\\n\\0'; exit 0 ;;\n"
    "        *) printf 'ack\\n\\0' ;;\n"
    "    esac\n"
    "done\n"
    "[ \"$MODE\" = stays ] && exec sleep 600\n"; // ends neither with its driver nor by itself

static struct perf_recorder_settings settings_of(const char *mode)
{
    setenv("MODE", mode, 1);
    unlink(words_path);
    return (struct perf_recorder_settings){
        .perf = perf_path, .event = "intel_pt//", .output = output_path, .log = log_path};
}

static void read_file(const char *path, char *out, size_t out_bytes)
{
    FILE *file = fopen(path, "r");
    size_t got = file ? fread(out, 1, out_bytes - 1, file) : 0;
    out[got] = '\0';
    if (file)
        fclose(file);
}

static void expect_arguments(const struct perf_recorder_settings *settings, const char *wanted)
{
    struct perf_recorder_words words;
    const char *argv[PERF_RECORDER_ARGUMENTS];
    char text[512] = "";
    unsigned count = perf_recorder_arguments(settings, &words, argv);
    assert_null(argv[count]);
    for (unsigned i = 0; i < count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, argv[i]);
    }
    assert_string_equal(text, wanted);
}

static void command_lines(void **state)
{
    (void)state;
    struct perf_recorder_settings settings = {
        .event = "intel_pt//", .output = "o", .log = "l", .switches = true};
    expect_arguments(&settings, "perf record --event intel_pt// --all-cpus --switch-events "
                                "--delay=-1 --control=fd:0,1 --no-buildid-cache --output o");
    CPU_SET(0, &settings.cores);
    CPU_SET(1, &settings.cores);
    CPU_SET(3, &settings.cores);
    settings.kcore = settings.snapshot = true;
    settings.aux_bytes = 64 << 20;
    settings.perf = "/opt/perf";
    expect_arguments(&settings, "/opt/perf record --event intel_pt// --cpu 0-1,3 --switch-events "
                                "--delay=-1 --control=fd:0,1 --no-buildid-cache --kcore "
                                "--mmap-pages=,65536K --snapshot --output o");
    settings = (struct perf_recorder_settings){.event = "e",
                                               .output = "o",
                                               .log = "l",
                                               .pids = "12,13",
                                               .switches = true,
                                               .per_thread = true};
    expect_arguments(&settings, "perf record --event e --pid 12,13 --per-thread --switch-events "
                                "--delay=-1 --control=fd:0,1 --no-buildid-cache --output o");
    settings = (struct perf_recorder_settings){
        .event = "cycles", .output = "o", .log = "l", .frequency = 3989, .host_time = true};
    expect_arguments(&settings, "perf record --event cycles --all-cpus --freq=3989 --call-graph=fp "
                                "--clockid=CLOCK_MONOTONIC_RAW --delay=-1 --control=fd:0,1 "
                                "--no-buildid-cache --output o");
    settings.mapped_ids = true;
    expect_arguments(&settings, "perf record --event cycles --all-cpus --freq=3989 --call-graph=fp "
                                "--clockid=CLOCK_MONOTONIC_RAW --delay=-1 --control=fd:0,1 "
                                "--no-buildid-cache --buildid-mmap --no-bpf-event --output o");
}

// Between being told and having ended others do their own.
static void it_ends_while_others_do(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    char words[256], go[80];
    siginfo_t info = {0};
    struct perf_recorder_settings settings = settings_of("waits");
    snprintf(go, sizeof go, "%s/go", folder);
    assert_int_equal(perf_recorder_start(&recorder, &settings, &err), 0);
    assert_int_equal(perf_recorder_end(&recorder, &err), 0);
    assert_int_equal(waitid(P_PID, (id_t)recorder.process.pid, &info, WEXITED | WNOHANG | WNOWAIT),
                     0);
    assert_int_equal(info.si_pid, 0); // it is still at it
    FILE *file = fopen(go, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(perf_recorder_stop(&recorder, &err), 0);
    read_file(words_path, words, sizeof words);
    assert_string_equal(words, "ping\nstop\n");
    perf_recorder_fini(&recorder);
    unlink(go);
}

static void an_old_one_does_without_build_ids(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    char path[80], arguments[1024];
    struct perf_recorder_settings settings = settings_of("old");
    settings.mapped_ids = true;
    if (perf_recorder_start(&recorder, &settings, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(perf_recorder_stop(&recorder, &err), 0);
    snprintf(path, sizeof path, "%s/arguments", folder);
    read_file(path, arguments, sizeof arguments);
    assert_null(strstr(arguments, "--buildid-mmap"));
    perf_recorder_fini(&recorder);
}

static void a_conversation(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    char words[256];
    struct perf_recorder_settings settings = settings_of("well");
    if (perf_recorder_start(&recorder, &settings, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(perf_recorder_enable(&recorder, &err), 0);
    assert_int_equal(perf_recorder_check(&recorder, &err), 0);
    assert_int_equal(perf_recorder_snapshot(&recorder, &err), 0);
    assert_int_equal(recorder.snapshots, 1);
    assert_int_equal(perf_recorder_disable(&recorder, &err), 0);
    assert_int_equal(perf_recorder_stop(&recorder, &err), 0);
    assert_int_equal(recorder.process.pid, 0);
    read_file(words_path, words, sizeof words);
    assert_string_equal(words, "ping\nenable\nsnapshot\nping\ndisable\nstop\n");
    perf_recorder_fini(&recorder);
}

// What fails names what perf said, and leaves no process behind.
static void fails(const char *mode, const char *why)
{
    struct perf_recorder recorder;
    struct error err = {0};
    struct perf_recorder_settings settings = settings_of(mode);
    int result = perf_recorder_start(&recorder, &settings, &err);
    if (strcmp(mode, "mute") == 0)
        recorder.answer_ms = 400; // only now: a shell may take longer to begin
    if (strcmp(mode, "lingers") == 0)
        recorder.end_ms = 400;
    if (result == 0)
        result = perf_recorder_enable(&recorder, &err);
    for (int i = 0; result == 0 && i < 100 && strcmp(mode, "killed") == 0; i++) {
        result = perf_recorder_check(&recorder, &err);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (result == 0)
        result = perf_recorder_stop(&recorder, &err);
    assert_int_equal(result, -ERROR_FAILED);
    if (!strstr(err.text, why))
        fail_msg("%s: \"%s\" is not in: %s", mode, why, err.text);
    assert_null(strstr(err.text, "Events enabled")); // no reason
    assert_int_equal(recorder.process.pid, 0);
    perf_recorder_fini(&recorder);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // no child is left
}

static void it_refuses(void **state)
{
    (void)state;
    fails("refuses", "before it was ready (exit code 129): event syntax error: 'bogus' \\___ no "
                     "such; all of it is in the capture's perf.log");
}

static void it_does_not_answer(void **state)
{
    (void)state;
    fails("mute", "perf record does not answer `enable` within 400 ms");
}

// A person who interrupts does not wait for its first answer, which may take half a minute.
static void it_is_not_waited_for(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    struct perf_recorder_settings settings = settings_of("slow");
    sigset_t interruption, before;
    sigemptyset(&interruption);
    sigaddset(&interruption, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &interruption, &before), 0);
    raise(SIGTERM);
    assert_int_equal(perf_recorder_start(&recorder, &settings, &err), -ERROR_FAILED);
    assert_string_equal(err.text, "interrupted before perf record was ready");
    assert_int_equal(recorder.process.pid, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // no child is left
    // What it has begun to record, it completes.
    settings = settings_of("well");
    assert_int_equal(sigtimedwait(&interruption, NULL, &(struct timespec){0}), SIGTERM);
    if (perf_recorder_start(&recorder, &settings, &err) < 0)
        fail_msg("%s", err.text);
    raise(SIGTERM);
    assert_int_equal(perf_recorder_enable(&recorder, &err), 0);
    assert_int_equal(perf_recorder_stop(&recorder, &err), 0);
    perf_recorder_fini(&recorder);
    assert_int_equal(sigtimedwait(&interruption, NULL, &(struct timespec){0}), SIGTERM);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

// Who interrupts does not wait for one that does nothing; of one that had written all, nothing is
// lost.
static void one_that_hangs_is_not_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *wanted;
    } cases[] = {
        {"mute", "perf record did nothing for 500 ms when its events were enabled, and was killed"},
        {"lingers", "perf record did nothing for 500 ms after it was stopped, and was killed"},
        {"spins", "perf record ran without reading or writing for 2000 ms after it was stopped, "
                  "and was killed"},
        {"naps", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_recorder recorder;
        struct error err = {0};
        bool interrupted = false;
        struct perf_recorder_settings settings = settings_of(cases[i].mode);
        settings.interrupted = &interrupted;
        int result = perf_recorder_start(&recorder, &settings, &err);
        interrupted = true;
        if (result == 0)
            result = perf_recorder_enable(&recorder, &err);
        if (result == 0)
            result = perf_recorder_stop(&recorder, &err);
        assert_int_equal(result, cases[i].wanted[0] ? -ERROR_FAILED : 0);
        if (!strstr(result ? err.text : "", cases[i].wanted))
            fail_msg("%s: %s", cases[i].mode, err.text);
        assert_int_equal(recorder.process.pid, 0);
        perf_recorder_fini(&recorder);
    }
}

// Where we do not have a core for half a second, it has not done nothing for so long.
static void it_is_left_to_work_on_a_crowded_machine(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    struct perf_recorder_settings settings = settings_of("thinks");
    settings.answer_ms = 1000000;
    a_reading_takes_ns = 600000000;
    int result = perf_recorder_start(&recorder, &settings, &err);
    a_reading_takes_ns = 0;
    if (result < 0)
        fail_msg("%s", err.text);
    perf_recorder_fini(&recorder);
}

static void it_dies(void **state)
{
    (void)state;
    fails("dies", "No space left on device");
}

static void it_is_killed(void **state)
{
    (void)state;
    fails("killed", "while it was recording (signal 9)");
}

static void it_does_not_end(void **state)
{
    (void)state;
    fails("lingers", "had not written its recording 400 ms after it was stopped");
}

static void it_ends_badly(void **state)
{
    (void)state;
    fails("badly", "ended badly (exit code 3): cannot write; ");
}

static void there_is_none(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    struct perf_recorder_settings settings = settings_of("well");
    settings.perf = "/nowhere/perf";
    assert_int_equal(perf_recorder_start(&recorder, &settings, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "is it installed?"));
    perf_recorder_fini(&recorder);
}

// perf dies with the one who drives it, however that one ends.
static void it_dies_with_us(void **state)
{
    (void)state;
    struct perf_recorder_settings settings = settings_of("stays");
    pid_t driver = fork();
    if (driver == 0) {
        struct perf_recorder recorder;
        struct error err;
        _exit(perf_recorder_start(&recorder, &settings, &err) == 0 ? kill(getpid(), SIGKILL) : 1);
    }
    int status;
    assert_int_equal(waitpid(driver, &status, 0), driver);
    assert_true(WIFSIGNALED(status));
    char path[80], text[32];
    snprintf(path, sizeof path, "%s/pid", folder);
    read_file(path, text, sizeof text);
    pid_t perf = (pid_t)strtol(text, NULL, 10);
    assert_true(perf > 1);
    // This process is the subreaper, so the orphan is ours to reap.
    assert_int_equal(waitpid(perf, &status, 0), perf);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void the_real_one(void **state)
{
    (void)state;
    struct perf_recorder recorder;
    struct error err = {0};
    struct perf_recorder_settings settings = {
        .event = "cpu-clock", .output = output_path, .log = log_path, .switches = true};
    if (system("perf record -e cpu-clock -a -o /dev/null -- true >/dev/null 2>&1") != 0)
        skip_case("perf record does not work here");
    if (perf_recorder_start(&recorder, &settings, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(perf_recorder_enable(&recorder, &err), 0);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(perf_recorder_check(&recorder, &err), 0);
    assert_int_equal(perf_recorder_disable(&recorder, &err), 0);
    if (perf_recorder_stop(&recorder, &err) < 0)
        fail_msg("%s", err.text);
    struct perf_data data;
    if (perf_data_open(output_path, NULL, &data, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(data.complaint_count, 0);
    assert_true(data.counts[PERF_SAMPLE] > 0);
    assert_true(data.counts[PERF_SWITCH_CPU_WIDE] > 0);
    perf_data_free(&data);
    perf_recorder_fini(&recorder);
    settings.event = "no-such-event";
    assert_int_equal(perf_recorder_start(&recorder, &settings, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "event syntax error"));
    assert_null(strstr(err.text, "Usage"));
}

int main(void)
{
    if (!mkdtemp(folder) || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    snprintf(perf_path, sizeof perf_path, "%s/perf", folder);
    snprintf(log_path, sizeof log_path, "%s/perf.log", folder);
    snprintf(output_path, sizeof output_path, "%s/perf.data", folder);
    snprintf(words_path, sizeof words_path, "%s/words", folder);
    FILE *file = fopen(perf_path, "w");
    if (!file || fputs(script, file) == EOF || fclose(file) != 0 || chmod(perf_path, 0755) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines),
        cmocka_unit_test(a_conversation),
        cmocka_unit_test(it_refuses),
        cmocka_unit_test(it_does_not_answer),
        cmocka_unit_test(it_dies),
        cmocka_unit_test(it_is_killed),
        cmocka_unit_test(it_does_not_end),
        cmocka_unit_test(it_ends_badly),
        cmocka_unit_test(there_is_none),
        cmocka_unit_test(it_dies_with_us),
        cmocka_unit_test(the_real_one),
        cmocka_unit_test(it_is_not_waited_for),
        cmocka_unit_test(one_that_hangs_is_not_waited_for),
        cmocka_unit_test(it_is_left_to_work_on_a_crowded_machine),
        cmocka_unit_test(it_ends_while_others_do),
        cmocka_unit_test(an_old_one_does_without_build_ids),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[80];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 ? 1 : failed;
}
