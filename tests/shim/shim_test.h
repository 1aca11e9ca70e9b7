// SPDX-License-Identifier: MIT
//
// What the tests of the shim share: where the library is, a directory for rings, a way to run this
// very program again under the shim, and the checks that hold for every message log.
#ifndef TESTS_SHIM_SHIM_TEST_H
#define TESTS_SHIM_SHIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/log_file.h"
#include "shim/message_collector.h"
#include "shim/message_log.h"

struct places {
    char library[PATH_MAX]; // libtaillight-shim.so
    char preload[PATH_MAX]; // LD_PRELOAD=...
    char rings[128];        // a directory that does not exist yet, on a tmpfs
    char environment[160];  // TAILLIGHT_SHIM_DIR=...
    char out[128];          // a directory for the logs, made
};

// Removes both directories, whatever is in them (one level).
static inline void places_clear(const struct places *places)
{
    const char *dirs[] = {places->rings, places->out};
    for (int i = 0; i < 2; i++) {
        DIR *list = opendir(dirs[i]);
        if (!list)
            continue;
        for (struct dirent *entry; (entry = readdir(list));)
            unlinkat(dirfd(list), entry->d_name, 0);
        closedir(list);
        rmdir(dirs[i]);
    }
}

static inline void places_init(struct places *places, const char *name)
{
    static int number; // a failed test leaves its directories to be looked at
    number++;
    memset(places, 0, sizeof *places);
    const char *build = getenv("BUILD");
    char relative[PATH_MAX - 64];
    if (build) {
        snprintf(relative, sizeof relative, "%s", build);
    } else { // <build>/tests/shim/<this>
        ssize_t length = readlink("/proc/self/exe", relative, sizeof relative - 1);
        assert_true(length > 0);
        relative[length] = '\0';
        for (int up = 0; up < 3; up++)
            *strrchr(relative, '/') = '\0';
    }
    char absolute[PATH_MAX];
    assert_non_null(realpath(relative, absolute));
    assert_true((size_t)snprintf(places->library, sizeof places->library,
                                 "%.4000s/libtaillight-shim.so",
                                 absolute) < sizeof places->library);
    assert_int_equal(access(places->library, R_OK), 0);
    snprintf(places->preload, sizeof places->preload, "LD_PRELOAD=%.4000s", places->library);
    snprintf(places->rings, sizeof places->rings, "/dev/shm/shim-%s-%d-%d", name, (int)getpid(),
             number);
    snprintf(places->environment, sizeof places->environment, "TAILLIGHT_SHIM_DIR=%s",
             places->rings);
    snprintf(places->out, sizeof places->out, "/tmp/shim-%s-%d-%d", name, (int)getpid(), number);
    places_clear(places); // of a test that failed, whose number the kernel has given out again
    assert_int_equal(mkdir(places->out, 0700), 0);
}

struct logs {
    struct log_reader calls, connections;
};

static inline void logs_open(struct logs *logs, const struct places *places)
{
    char path[256];
    struct error err = {0};
    snprintf(path, sizeof path, "%s/calls.tlog", places->out);
    if (log_reader_open(&logs->calls, path, LOG_CALLS, MESSAGE_LOG_VERSION, sizeof(struct call),
                        &err) < 0)
        fail_msg("%s", err.text);
    snprintf(path, sizeof path, "%s/connections.tlog", places->out);
    if (log_reader_open(&logs->connections, path, LOG_CONNECTIONS, 1, sizeof(struct connection),
                        &err) < 0)
        fail_msg("%s", err.text);
}

static inline void logs_close(struct logs *logs)
{
    log_reader_close(&logs->calls);
    log_reader_close(&logs->connections);
}

// The server's side of the connection whose client has this port, or NULL.
static inline const struct connection *logs_connection(const struct logs *logs, uint16_t peer_port)
{
    const struct connection *all = logs->connections.records;
    for (size_t i = 0; i < logs->connections.count; i++)
        if (all[i].peer_port == peer_port)
            return &all[i];
    return NULL;
}

// What must hold of any log: time goes forward within a call and from call to call of a thread,
// nothing unknown, nothing of a connection that is not listed.
static inline void logs_check(const struct logs *logs)
{
    const struct call *calls = logs->calls.records;
    const struct connection *connections = logs->connections.records;
    for (size_t i = 0; i < logs->calls.count; i++) {
        assert_true(calls[i].entry_tsc <= calls[i].exit_tsc);
        assert_true(i == 0 || calls[i - 1].entry_tsc <= calls[i].entry_tsc);
        assert_in_range(calls[i].kind, CALL_RECEIVE, CALL_CONNECT);
        assert_true(calls[i].command == 0 || calls[i].kind == CALL_RECEIVE);
        assert_int_equal(calls[i].padding, 0);
        assert_true(calls[i].thread != 0 && calls[i].process != 0);
        if (calls[i].kind == CALL_WAIT) {
            assert_int_equal(calls[i].connection, 0);
            assert_true(calls[i].length > 0 && calls[i].batch > 0);
            continue;
        }
        bool listed = false;
        for (size_t c = 0; c < logs->connections.count && !listed; c++)
            listed = connections[c].id == calls[i].connection &&
                     connections[c].process == calls[i].process;
        assert_true(listed);
        if (calls[i].kind == CALL_RECEIVE || calls[i].kind == CALL_SEND)
            assert_true(calls[i].length > 0);
    }
}

// Follows one direction of a connection: every byte once, in order. Returns where it ends.
static inline uint64_t logs_follow(const struct logs *logs, uint32_t connection,
                                   enum call_kind kind, uint64_t from)
{
    const struct call *calls = logs->calls.records;
    uint64_t at = from;
    for (size_t i = 0; i < logs->calls.count; i++) {
        if (calls[i].connection != connection || calls[i].kind != (uint8_t)kind)
            continue;
        assert_int_equal(calls[i].offset, at);
        at += calls[i].length;
    }
    return at;
}

static inline size_t logs_count(const struct logs *logs, uint32_t connection, enum call_kind kind)
{
    const struct call *calls = logs->calls.records;
    size_t count = 0;
    for (size_t i = 0; i < logs->calls.count; i++)
        count += calls[i].connection == connection && calls[i].kind == (uint8_t)kind;
    return count;
}

// A thread that polls a collector until it is told to stop.
struct poller {
    struct message_collector *collector;
    _Atomic bool stop;
    bool failed;
};

static inline void *poller_run(void *argument)
{
    struct poller *poller = argument;
    struct error err;
    while (!poller->stop) {
        poller->failed |= message_collector_poll(poller->collector, &err) < 0;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return NULL;
}

#endif
