// SPDX-License-Identifier: MIT
//
// labserver's misbehaviour: what it may be asked for, and that the log says when it happened.
// Needs the machine to itself: its faults last microseconds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "workloads/lab/lab_fault.h"

static void texts_are_understood_or_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct lab_fault fault = {0};
    assert_int_equal(lab_fault_parse("slow,1ms,20ms", &fault, &err), 0);
    assert_int_equal(fault.kind, LAB_FAULT_SLOW);
    assert_int_equal(fault.length_ns, 1000000);
    assert_int_equal(fault.every_ns, 20000000);
    assert_int_equal(lab_fault_parse("lock,10us,1s", &fault, &err), 0);
    assert_int_equal(fault.kind, LAB_FAULT_LOCK);
    assert_int_equal(lab_fault_parse("deaf,20ms,1s", &fault, &err), 0);
    assert_int_equal(fault.kind, LAB_FAULT_DEAF);
    assert_int_equal(lab_fault_parse("syn,20ms,1s", &fault, &err), 0);
    assert_int_equal(fault.kind, LAB_FAULT_SYN);
    const char *const refused[] = {"",
                                   "slow",
                                   "slow,1ms",
                                   "slow,1,20ms",
                                   "none,1ms,2ms",
                                   "fast,1ms,2ms",
                                   "slow,2ms,2ms",
                                   "slow,0,2ms",
                                   "slow,1ms,2ms,3ms",
                                   ",,",
                                   "aaaaaaaaaaaaaaaaaaaaaaaa,1ms,2ms"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        err.kind = ERROR_NONE;
        assert_true(lab_fault_parse(refused[i], &fault, &err) < 0);
        assert_int_equal(err.kind, ERROR_INPUT);
    }
}

// Serves one request when a fault is due, and gives what the log says of it.
static void one_fault(const char *text, char kind[32], int64_t *begin_ns, int64_t *end_ns)
{
    struct error err = {0};
    struct lab_fault fault = {0};
    char path[] = "/tmp/taillight-fault-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    // Not due before 2 ms: whoever takes the core away for so long is found by the clock.
    for (int64_t elapsed_ns = 0;;
         print_message("%lld ns passed: once more\n", (long long)elapsed_ns)) {
        assert_int_equal(lab_fault_parse(text, &fault, &err), 0);
        int64_t started_ns = fault_log_now();
        assert_int_equal(lab_fault_start(&fault, path, &err), 0);
        lab_fault_begin_service(&fault);
        lab_fault_end_service(&fault);
        elapsed_ns = fault_log_now() - started_ns;
        if (fault.log.used == 0)
            break;
        assert_true(elapsed_ns >= 2000000);
        fault = (struct lab_fault){0};
    }
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    lab_fault_begin_service(&fault);
    lab_fault_end_service(&fault);
    assert_int_equal(fault.log.used, 1);
    FILE *log = fopen(path, "r");
    long long begin, end;
    assert_non_null(log);
    assert_int_equal(fscanf(log, "%lld %lld %31s", &begin, &end, kind), 3);
    fclose(log);
    unlink(path);
    *begin_ns = begin;
    *end_ns = end;
}

static void faults_are_logged(void **state)
{
    (void)state;
    const char *const texts[] = {"slow,100us,2ms", "calls,100us,2ms", "pages,100us,2ms"};
    const char *const kinds[] = {"slow", "calls", "pages"};
    for (size_t i = 0; i < 3; i++) {
        char kind[32];
        int64_t before = fault_log_now(), begin, end;
        one_fault(texts[i], kind, &begin, &end);
        assert_string_equal(kind, kinds[i]);
        assert_true(begin > before && end - begin >= 100000 && end <= fault_log_now());
    }
}

static void a_log_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct error err = {0};
    struct lab_fault fault = {0};
    assert_int_equal(lab_fault_parse("slow,1ms,20ms", &fault, &err), 0);
    assert_true(lab_fault_start(&fault, "/nonexistent/faults", &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/faults"));
}

// Reads all, after it has let the sender wait.
static void *read_late(void *socket)
{
    char bytes[4096];
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    while (read(*(int *)socket, bytes, sizeof bytes) > 0)
        ;
    return NULL;
}

// A send call that finds room is none; one that waits is what it slept, and no more.
static void waits_for_room_are_logged(void **state)
{
    (void)state;
    static char reply[1 << 20];
    struct error err = {0};
    struct lab_fault fault = {0};
    char path[] = "/tmp/taillight-fault-XXXXXX", kind[32];
    int fd = mkstemp(path), sockets[2];
    pthread_t reader;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(lab_fault_parse("room,1us,2us", &fault, &err), 0);
    assert_int_equal(lab_fault_start(&fault, path, &err), 0);
    lab_fault_begin_send(&fault);
    if (!fault.ready) // it takes root
        skip();
    assert_int_equal(send(sockets[0], reply, 1, 0), 1);
    lab_fault_end_send(&fault);
    const uint32_t before = fault.log.used; // it may have been put aside for another program
    assert_int_equal(pthread_create(&reader, NULL, read_late, &sockets[1]), 0);
    const int64_t from_ns = fault_log_now();
    lab_fault_begin_send(&fault);
    assert_int_equal(send(sockets[0], reply, sizeof reply, 0), sizeof reply);
    lab_fault_end_send(&fault);
    const int64_t until_ns = fault_log_now();
    close(sockets[0]);
    pthread_join(reader, NULL);
    close(sockets[1]);

    long long begin, end, waited = 0, fault_begin = 0, fault_end = 0;
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    for (uint32_t i = 0; fscanf(log, "%lld %lld %31s", &begin, &end, kind) == 3; i++) {
        assert_true(i >= before || strcmp(kind, FAULT_LOG_READY) == 0);
        assert_true(i < before || (begin >= from_ns && begin <= end && end <= until_ns));
        if (strcmp(kind, FAULT_LOG_WAITS) == 0)
            waited += end - begin;
        if (strcmp(kind, "room") == 0) {
            fault_begin = begin;
            fault_end = end;
        }
    }
    fclose(log);
    unlink(path);
    assert_true(waited > 0 && waited <= fault_end - fault_begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_understood_or_refused),
        cmocka_unit_test(faults_are_logged),
        cmocka_unit_test(waits_for_room_are_logged),
        cmocka_unit_test(a_log_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
