// SPDX-License-Identifier: MIT
//
// A Python and a Node.js program collect garbage a known number of times, one after the other,
// while they are captured: each collection is recorded, of that process's thread, and none of
// another process of the same program's that was not watched. So is what Redis does for itself,
// some ten times a second. Waits for a Python interpreter's lock are told from others. Runs beside
// others: it counts.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_file.h"
#include "profiler/bpf/event_log.h"
#include "profiler/events_capture.h"

enum { COLLECTIONS = 20 };

// A program that says so when it is there, collects when it reads a byte, and says that it has.
struct program {
    pid_t process;
    int to, from;
};

static bool program_start(struct program *program, char *const *argv)
{
    int to[2], from[2];
    char byte;
    assert_true(pipe(to) == 0 && pipe(from) == 0);
    program->process = fork();
    if (program->process == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    program->to = to[1];
    program->from = from[0];
    return read(program->from, &byte, 1) == 1;
}

static void program_collect(const struct program *program)
{
    char byte = 'c';
    assert_int_equal(write(program->to, &byte, 1), 1);
    assert_int_equal(read(program->from, &byte, 1), 1);
}

static void program_end(struct program *program)
{
    kill(program->process, SIGKILL);
    waitpid(program->process, NULL, 0);
    close(program->to);
    close(program->from);
}

// How many detours of that kind were recorded of a thread; -1: something else was that should not
// be.
static int count_detours(const char *folder, pid_t watched, enum event_detour kind)
{
    char path[128];
    struct log_reader reader;
    struct error err = {0};
    int count = 0;
    snprintf(path, sizeof path, "%s/events.tlog", folder);
    assert_int_equal(
        log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    const struct event *events = reader.records;
    for (size_t i = 0; i < reader.count && count >= 0; i++) {
        if (events[i].kind != EVENT_DETOUR || events[i].flags != kind)
            continue;
        bool sound = events[i].id == (uint32_t)watched && events[i].payload.a < events[i].time;
        count = sound ? count + 1 : -1;
    }
    log_reader_close(&reader);
    unlink(path);
    snprintf(path, sizeof path, "%s/sockets.tlog", folder);
    unlink(path);
    rmdir(folder);
    return count;
}

static void collections_are_recorded(char *const *argv)
{
    const struct events_capture_settings settings = {
        .groups = EVENT_GROUP_SCHEDULER | EVENT_GROUP_COLLECTIONS, .ring_bytes = 4 << 20};
    char folder[] = "/tmp/taillight-collections-XXXXXX";
    struct program program, other;
    struct events_capture *capture;
    struct error err = {0};
    json_t *stats = NULL;
    assert_non_null(mkdtemp(folder));
    if (!program_start(&program, argv) || !program_start(&other, argv)) {
        print_message("there is no %s\n", argv[0]);
        rmdir(folder);
        skip();
    }
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    events_capture_watch_process(capture, (uint32_t)program.process, 0);
    events_capture_watch_process(capture, (uint32_t)program.process, 0);
    for (int i = 0; i < COLLECTIONS; i++) {
        program_collect(&program);
        program_collect(&other);
    }
    assert_int_equal(events_capture_stop(capture, folder, &stats, &err), 0);
    program_collect(&program); // nothing is left in it that would hurt
    events_capture_free(capture);
    program_end(&program);
    program_end(&other);
    const json_t *told = json_object_get(stats, "collections");
    json_int_t probed = json_integer_value(json_object_get(told, "probed"));
    json_int_t refused = json_integer_value(json_object_get(told, "refused"));
    const char *why = json_string_value(json_object_get(told, "why"));
    int count = count_detours(folder, program.process, DETOUR_COLLECTION);
    print_message("%s: %d of %d collections; probed %d, refused %d %s\n", argv[0], count,
                  COLLECTIONS, (int)probed, (int)refused, why ? why : "");
    bool here = probed == 1 && refused == 0;
    json_decref(stats);
    if (!here) { // no static probes in this Python, no such function in this Node.js, no uprobes
        assert_int_equal(count, 0);
        skip();
    }
    assert_int_equal(count, COLLECTIONS);
}

static void pythons_are(void **state)
{
    (void)state;
    collections_are_recorded((char *[]){"/usr/bin/python3", "-c",
                                        "import gc, os\n"
                                        "gc.disable()\n"
                                        "os.write(1, b'r')\n"
                                        "while os.read(0, 1):\n"
                                        "    gc.collect()\n"
                                        "    os.write(1, b'd')\n",
                                        NULL});
}

// Of the waits in futex of a process's threads: those for their interpreter's lock, and others.
static void count_lock_waits(const struct event *events, size_t count, pid_t process, int waits[2])
{
    waits[0] = waits[1] = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_its = events[i].kind == EVENT_BLOCKED && events[i].payload.a == SYS_futex &&
                      events[i].id == (uint32_t)process;
        for (size_t k = 0; k < i && !is_its && events[i].kind == EVENT_BLOCKED; k++)
            is_its = events[k].kind == EVENT_MEMBER && events[k].id == events[i].id &&
                     events[k].payload.a == (uint64_t)process;
        if (is_its && events[i].payload.a == SYS_futex)
            waits[events[i].flags & BLOCKED_INTERPRETER ? 1 : 0]++;
    }
}

// Two threads count at once; a third waits for one of theirs to end. All of Python's waits are
// waits for conditions: whether for its interpreter's lock only the address says.
static void waits_for_the_interpreter_are(void **state)
{
    (void)state;
    static char *const argv[] = {
        "/usr/bin/python3", "-c",
        "import os, threading\n"
        "def count():\n"
        "    for i in range(3000000): pass\n"
        "os.write(1, b'r')\n"
        "while os.read(0, 1):\n"
        "    for thread in [threading.Thread(target=count) for i in range(2)]: thread.start()\n"
        "    for thread in threading.enumerate()[1:]: thread.join()\n"
        "    os.write(1, b'd')\n",
        NULL};
    const struct events_capture_settings settings = {
        .groups = EVENT_GROUP_SCHEDULER | EVENT_GROUP_COLLECTIONS, .ring_bytes = 16 << 20};
    char folder[] = "/tmp/taillight-interpreter-XXXXXX", path[128];
    struct program program, other;
    struct events_capture *capture;
    struct log_reader reader;
    struct error err = {0};
    json_t *stats = NULL;
    int waits[2], others[2];
    assert_non_null(mkdtemp(folder));
    bool here = program_start(&program, argv) & program_start(&other, argv);
    if (here) {
        if (events_capture_open(&settings, &capture, &err) < 0)
            fail_msg("%s", err.text);
        events_capture_watch_process(capture, (uint32_t)program.process, 0);
        program_collect(&program);
        program_collect(&other);
        assert_int_equal(events_capture_stop(capture, folder, &stats, &err), 0);
        events_capture_free(capture);
    }
    program_end(&program);
    program_end(&other);
    snprintf(path, sizeof path, "%s/events.tlog", folder);
    if (!here || log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event),
                                 &err) < 0) {
        rmdir(folder);
        skip();
    }
    count_lock_waits(reader.records, reader.count, program.process, waits);
    count_lock_waits(reader.records, reader.count, other.process, others);
    log_reader_close(&reader);
    json_decref(stats);
    unlink(path);
    snprintf(path, sizeof path, "%s/sockets.tlog", folder);
    unlink(path);
    rmdir(folder);
    print_message("waits for the interpreter's lock: %d, others: %d; not watched: %d, %d\n",
                  waits[1], waits[0], others[1], others[0]);
    if (waits[0] == 0) // kernels before 5.15 do not say the call
        skip();
    assert_true(waits[1] > 0);
    assert_true(others[0] > 0);
    assert_int_equal(others[1], 0);
}

static void nodes_are(void **state)
{
    (void)state;
    static char script[] = "const fs = require('fs'), byte = Buffer.alloc(1);\n"
                           "fs.writeSync(1, 'r');\n"
                           "while (fs.readSync(0, byte, 0, 1)) { gc(); fs.writeSync(1, 'd'); }\n";
    collections_are_recorded((char *[]){"node", "--expose-gc", "-e", script, NULL});
}

// Both log something as soon as they are there, and work for themselves ten times a second.
static void the_own_work_of_redis_is(void **state)
{
    (void)state;
    const struct events_capture_settings settings = {
        .groups = EVENT_GROUP_SCHEDULER | EVENT_GROUP_COLLECTIONS, .ring_bytes = 4 << 20};
    char folder[] = "/tmp/taillight-own-work-XXXXXX", listens[64];
    char *const argv[] = {"redis-server", "--port", "0", "--unixsocket",
                          listens,        "--save", "",  NULL};
    struct program program, other;
    struct events_capture *capture;
    struct error err = {0};
    json_t *stats = NULL;
    assert_non_null(mkdtemp(folder));
    snprintf(listens, sizeof listens, "%s/socket", folder); // the second takes it from the first
    bool here = program_start(&program, argv) & program_start(&other, argv);
    if (!here) {
        print_message("there is no %s\n", argv[0]);
        program_end(&program);
        program_end(&other);
        rmdir(folder);
        skip();
    }
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    events_capture_watch_process(capture, (uint32_t)program.process, 0);
    sleep(2);
    assert_int_equal(events_capture_stop(capture, folder, &stats, &err), 0);
    events_capture_free(capture);
    program_end(&program);
    program_end(&other);
    unlink(listens);
    const json_t *told = json_object_get(stats, "collections");
    here = json_integer_value(json_object_get(told, "probed")) == 1;
    int count = count_detours(folder, program.process, DETOUR_OWN_WORK);
    print_message("%s: %d times in 2 s; probed %d, refused %d\n", argv[0], count,
                  (int)json_integer_value(json_object_get(told, "probed")),
                  (int)json_integer_value(json_object_get(told, "refused")));
    json_decref(stats);
    if (!here) { // it exports no functions, or there are no uprobes
        assert_int_equal(count, 0);
        skip();
    }
    assert_true(count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pythons_are),
        cmocka_unit_test(waits_for_the_interpreter_are),
        cmocka_unit_test(nodes_are),
        cmocka_unit_test(the_own_work_of_redis_is),
    };
    if (getuid() != 0) {
        print_message("kernel events take root\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
