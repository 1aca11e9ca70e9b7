// SPDX-License-Identifier: MIT
//
// A Python and a Node.js program collect garbage a known number of times, one after the other,
// while they are captured: each collection is recorded, of that process's thread, and none of
// another process of the same program's that was not watched. So is what Redis does for itself,
// some ten times a second. Go's collections are, in whichever threads, and when it stops all
// others. Waits for a Python interpreter's lock are told from others, and those of Erlang's
// machine.
// Runs beside others: it counts.
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
#include "profiler/events/events_capture.h"
#include "tests/skip.h"

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
        rmdir(folder);
        skip_case("there is no %s", argv[0]);
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
        skip_case("there is no such function or probe in this program, or there are no uprobes");
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

// Whether a thread is one of the process's.
static bool is_of(const struct log_reader *reader, uint32_t thread, pid_t process)
{
    const struct event *events = reader->records;
    if (thread == (uint32_t)process)
        return true;
    for (size_t i = 0; i < reader->count; i++)
        if (events[i].kind == EVENT_MEMBER && events[i].id == thread &&
            events[i].payload.a == (uint64_t)process)
            return true;
    return false;
}

struct seen {
    int interpreter, parked, others; // waits in futex
    int collections, stops;
};

// What was recorded of a process's threads.
static struct seen count_seen(const struct log_reader *reader, pid_t process)
{
    const struct event *events = reader->records;
    struct seen seen = {0};
    for (size_t i = 0; i < reader->count; i++) {
        bool waits = events[i].kind == EVENT_BLOCKED && events[i].payload.a == SYS_futex;
        if ((!waits && events[i].kind != EVENT_DETOUR) || !is_of(reader, events[i].id, process))
            continue;
        seen.collections += !waits && events[i].flags == DETOUR_COLLECTION;
        seen.stops += !waits && events[i].flags == DETOUR_WORLD;
        seen.interpreter += waits && events[i].flags & BLOCKED_INTERPRETER;
        seen.parked += waits && events[i].flags & BLOCKED_PARKED;
        seen.others += waits && !(events[i].flags & (BLOCKED_INTERPRETER | BLOCKED_PARKED));
    }
    return seen;
}

// Two processes of a program each do so many times what they are told to, while one of them is
// watched: what was recorded of that one, and of the other. False: there is no such program.
static bool capture_two(char *const *argv, int times, struct seen *watched, struct seen *other)
{
    const struct events_capture_settings settings = {
        .groups = EVENT_GROUP_SCHEDULER | EVENT_GROUP_COLLECTIONS, .ring_bytes = 16 << 20};
    char folder[] = "/tmp/taillight-runtime-XXXXXX", path[128];
    struct program programs[2];
    struct events_capture *capture;
    struct log_reader reader;
    struct error err = {0};
    assert_non_null(mkdtemp(folder));
    bool here = program_start(&programs[0], argv) & program_start(&programs[1], argv);
    if (here) {
        if (events_capture_open(&settings, &capture, &err) < 0)
            fail_msg("%s", err.text);
        events_capture_watch_process(capture, (uint32_t)programs[0].process, 0);
        for (int i = 0; i < 2 * times; i++)
            program_collect(&programs[i % 2]);
        assert_int_equal(events_capture_stop(capture, folder, NULL, &err), 0);
        events_capture_free(capture);
        snprintf(path, sizeof path, "%s/events.tlog", folder);
        assert_int_equal(log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION,
                                         sizeof(struct event), &err),
                         0);
        *watched = count_seen(&reader, programs[0].process);
        *other = count_seen(&reader, programs[1].process);
        log_reader_close(&reader);
        unlink(path);
        snprintf(path, sizeof path, "%s/sockets.tlog", folder);
        unlink(path);
    }
    program_end(&programs[0]);
    program_end(&programs[1]);
    rmdir(folder);
    return here;
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
    struct seen watched, other;
    if (!capture_two(argv, 1, &watched, &other))
        skip();
    print_message("waits for the interpreter's lock: %d, others: %d; not watched: %d, %d\n",
                  watched.interpreter, watched.others, other.interpreter, other.others);
    if (watched.others == 0) // kernels before 5.15 do not say the call
        skip_case("this kernel does not say in which call a thread sleeps");
    assert_true(watched.interpreter > 0);
    assert_true(other.others > 0);
    assert_int_equal(other.interpreter, 0);
    assert_int_equal(watched.parked + other.parked, 0);
}

// Of Erlang's machine all are its scheduler's.
static void waits_of_erlang_are(void **state)
{
    (void)state;
    static char *const argv[] = {
        "erl",
        "-noinput",
        "+S",
        "2:2",
        "-eval",
        ("P = open_port({fd, 0, 1}, [stream, binary]), port_command(P, <<\"r\">>),"
         "F = fun(Loop) -> receive {P, {data, _}} -> timer:sleep(20), port_command(P, <<\"d\">>),"
         "Loop(Loop) end end, F(F)."),
        NULL};
    struct seen watched, other;
    if (!capture_two(argv, 3, &watched, &other))
        skip_case("there is no erl");
    print_message("parked: %d, others: %d; not watched: %d, %d\n", watched.parked, watched.others,
                  other.parked, other.others);
    if (watched.parked + watched.others == 0) // kernels before 5.15 do not say the call
        skip_case("this kernel does not say in which call a thread sleeps");
    assert_true(watched.parked > 0);
    assert_int_equal(watched.others + watched.interpreter, 0);
    assert_int_equal(other.parked, 0);
}

// Collects when it is told to. Each time the world is stopped twice.
static const char go_program[] = "package main\n"
                                 "import (\"os\"; \"runtime\")\n"
                                 "type object struct { next *object }\n"
                                 "var alive *object\n"
                                 "func main() {\n"
                                 "    for i := 0; i < 100000; i++ { alive = &object{alive} }\n"
                                 "    one := make([]byte, 1)\n"
                                 "    os.Stdout.Write([]byte(\"r\"))\n"
                                 "    for {\n"
                                 "        if n, _ := os.Stdin.Read(one); n < 1 { return }\n"
                                 "        runtime.GC()\n"
                                 "        os.Stdout.Write([]byte(\"d\"))\n"
                                 "    }\n"
                                 "}\n";

static void collections_are(const char *options)
{
    char folder[] = "/tmp/taillight-go-XXXXXX", path[64], command[512];
    struct seen watched, other;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/collects.go", folder);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(go_program, file) >= 0 && fclose(file) == 0);
    snprintf(
        command, sizeof command,
        "cd %s && GOCACHE=%s/cache GOPATH=%s GO111MODULE=off go build %s collects.go 2>/dev/null",
        folder, folder, folder, options);
    bool here = system(command) == 0;
    snprintf(path, sizeof path, "%s/collects", folder);
    here = here && capture_two((char *[]){path, NULL}, COLLECTIONS, &watched, &other);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    if (!here)
        skip_case("no program of Go (%s) could be built and run here", options);
    print_message(
        "Go %s: %d collections, world stopped %d times, parked %d; not watched: %d, %d, %d\n",
        options, watched.collections, watched.stops, watched.parked, other.collections, other.stops,
        other.parked);
    assert_true(watched.collections >= COLLECTIONS); // by however many threads at once
    assert_true(watched.stops >= 2 * COLLECTIONS);
    assert_int_equal(other.collections + other.stops + other.parked, 0);
}

static void collections_of_go_are(void **state)
{
    (void)state;
    collections_are("");
}

// As most programs in containers are: without symbols; and where they may lie anywhere in memory.
static void collections_of_stripped_go_are(void **state)
{
    (void)state;
    collections_are("-ldflags '-s -w'");
    collections_are("-ldflags '-s -w' -buildmode=pie");
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
        program_end(&program);
        program_end(&other);
        rmdir(folder);
        skip_case("there is no %s", argv[0]);
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
        skip_case("this program exports no functions, or there are no uprobes");
    }
    assert_true(count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pythons_are),
        cmocka_unit_test(waits_for_the_interpreter_are),
        cmocka_unit_test(waits_of_erlang_are),
        cmocka_unit_test(nodes_are),
        cmocka_unit_test(collections_of_go_are),
        cmocka_unit_test(collections_of_stripped_go_are),
        cmocka_unit_test(the_own_work_of_redis_is),
    };
    if (getuid() != 0) {
        print_message("kernel events take root\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
