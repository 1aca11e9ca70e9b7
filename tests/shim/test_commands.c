// SPDX-License-Identifier: MIT
//
// With which command begins what a server receives: by every call that receives, only where the
// collector asks for it, only on connections that were accepted, and nothing of what is no command.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/command_words.h"
#include "base/process.h"

static const char request[] = "*2\r\n$6\r\nLRANGE\r\n$6\r\nsecret\r\n";

// What the server's calls see, in this order, and which command it is: these, then what is cut off
// from nowhere.
enum { CALLS = 12, EACH_BYTES = sizeof request - 1 };
static const bool known[CALLS] = {true, true, true, true, true, true, true, true, true};

static ssize_t receive(int fd, int how, char *into, size_t bytes)
{
    struct iovec parts[2] = {{into, 20}, {into + 20, bytes - 20}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    struct mmsghdr messages[1] = {{.msg_hdr = message}};
    switch (how) {
    case 0:
        return read(fd, into, bytes);
    case 1:
        return recv(fd, into, bytes, 0);
    case 2:
        return recvfrom(fd, into, bytes, 0, NULL, NULL);
    case 3:
        return readv(fd, parts, 2);
    case 4:
        return recvmsg(fd, &message, 0);
    case 5:
        return recvmmsg(fd, messages, 1, 0, NULL) == 1 ? (ssize_t)messages[0].msg_len : -1;
    case 6:
        return syscall(SYS_read, fd, into, bytes);
    case 7:
        return syscall(SYS_recvfrom, fd, into, bytes, 0, NULL, NULL);
    case 8:
        return syscall(SYS_readv, fd, parts, 2);
    case 9: // thrown away by the kernel: there is nothing to look at
        return recv(fd, NULL, bytes, MSG_TRUNC);
    case 10:
        message.msg_iov[0].iov_base = NULL;
        return recvmsg(fd, &message, MSG_TRUNC);
    default:
        return recv(fd, into, 14, 0) + recv(fd, into + 14, bytes, 0);
    }
}

static int serve(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, bytes) < 0 || listen(listening, 4) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &bytes) < 0 ||
        connect(client, (struct sockaddr *)&address, bytes) < 0)
        return 90;
    int server = accept(listening, NULL, NULL);
    for (int how = 0; how < CALLS; how++) {
        char into[256];
        if (send(client, request, EACH_BYTES, 0) != EACH_BYTES ||
            receive(server, how, into, sizeof into) != EACH_BYTES)
            return 91;
    }
    // The other way round it is an answer, whatever it looks like.
    char answer[256];
    return send(server, request, EACH_BYTES, 0) == EACH_BYTES &&
                   recv(client, answer, sizeof answer, MSG_WAITALL | MSG_DONTWAIT) == EACH_BYTES
               ? 0
               : 92;
}

static void record(struct places *places, bool commands, struct logs *logs)
{
    struct message_collector *collector;
    struct message_stats stats = {0};
    struct process server = {0};
    struct error err = {0};
    char self[PATH_MAX] = {0};
    places_init(places, "commands");
    if (message_collector_create(places->rings, 0, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_watch_peers(collector);
    if (commands)
        message_collector_watch_commands(collector);
    message_collector_enable(collector);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    const char *argv[] = {self, "--serve", NULL};
    const char *environment[] = {places->preload, places->environment,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", NULL};
    struct process_place place = {.environment = environment, .pipe_output = true};
    if (process_start(&server, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
    char line[64];
    assert_int_equal(process_read_line(&server, line, sizeof line, 20000, &err), 1);
    assert_string_equal(line, "0");
    process_close_pipes(&server);
    process_stop(&server, 2000);
    if (message_collector_finish(collector, places->out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    message_stats_free(&stats);
    message_collector_free(collector);
    logs_open(logs, places);
    logs_check(logs);
}

static void commands_are_named_where_asked_for(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct places places;
        struct logs logs;
        record(&places, asked, &logs);
        const struct call *calls = logs.calls.records;
        const struct connection *ends = logs.connections.records;
        size_t received = 0, named = 0;
        assert_int_equal(logs.connections.count, 2);
        uint32_t accepted = ends[ends[0].outgoing].id;
        for (size_t i = 0; i < logs.calls.count; i++) {
            if (calls[i].kind != CALL_RECEIVE || calls[i].connection != accepted) {
                assert_int_equal(calls[i].command, 0);
                continue;
            }
            const char *name = command_word_name(calls[i].command);
            assert_int_equal(name != NULL, asked && received < CALLS && known[received]);
            if (name)
                assert_string_equal(name, "lrange");
            named += name != NULL;
            received++;
        }
        assert_int_equal(received, CALLS + 1); // the last one needed two
        assert_int_equal(named, asked ? 9 : 0);
        logs_close(&logs);
        places_clear(&places);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
        printf("%d\n", serve());
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(commands_are_named_where_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
