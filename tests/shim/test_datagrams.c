// SPDX-License-Identifier: MIT
//
// A server's UDP socket under the shim: each call has the name of the datagram that it moved,
// whichever call it was; what nobody can name is counted.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/datagram_key.h"
#include "base/process.h"

// Of the server's calls, in this order: those that say whose datagram it is, then those that do
// not.
enum { NAMED = 6, UNNAMED = 4, CALLS = NAMED + UNNAMED };

static ssize_t receive(int fd, int how, char *into, size_t bytes, struct sockaddr_in *from)
{
    struct iovec part = {into, bytes};
    struct msghdr message = {
        .msg_name = from, .msg_namelen = sizeof *from, .msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr messages[1] = {{.msg_hdr = message}};
    socklen_t from_bytes = sizeof *from;
    struct sockaddr_in six[2];
    switch (how) {
    case 0:
        return recvfrom(fd, into, bytes, 0, (struct sockaddr *)from, &from_bytes);
    case 1:
        return recvmsg(fd, &message, 0);
    case 2:
        return recvmmsg(fd, messages, 1, 0, NULL) == 1 ? (ssize_t)messages[0].msg_len : -1;
    case 3:
        return syscall(SYS_recvfrom, fd, into, bytes, 0, from, &from_bytes);
    case 4:
        return syscall(SYS_recvmsg, fd, &message, 0);
    case 5:
        return syscall(SYS_recvmmsg, fd, messages, 1, 0, NULL) == 1 ? (ssize_t)messages[0].msg_len
                                                                    : -1;
    case 6:
        return recv(fd, into, bytes, 0);
    case 7:
        return read(fd, into, bytes);
    case 8: // nowhere for the address, and so an address nobody may look at
        return recvfrom(fd, into, bytes, 0, NULL, (socklen_t *)1);
    default: // room for half of it
        from_bytes = 4;
        return recvfrom(fd, into, bytes, 0, (struct sockaddr *)six, &from_bytes);
    }
}

static ssize_t answer(int fd, int how, char *text, size_t bytes, struct sockaddr_in *to)
{
    struct iovec parts[2] = {{text, 8}, {text + 8, bytes - 8}};
    struct msghdr message = {
        .msg_name = to, .msg_namelen = sizeof *to, .msg_iov = parts, .msg_iovlen = 2};
    struct mmsghdr messages[1] = {{.msg_hdr = message}};
    switch (how) {
    case 0:
        return sendto(fd, text, bytes, 0, (struct sockaddr *)to, sizeof *to);
    case 1:
        return sendmsg(fd, &message, 0);
    case 2:
        return sendmmsg(fd, messages, 1, 0) == 1 ? (ssize_t)messages[0].msg_len : -1;
    case 3:
        return syscall(SYS_sendto, fd, text, bytes, 0, to, sizeof *to);
    case 4:
        return syscall(SYS_sendmsg, fd, &message, 0);
    default:
        return syscall(SYS_sendmmsg, fd, messages, 1, 0) == 1 ? (ssize_t)messages[0].msg_len : -1;
    }
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int udp_socket(uint16_t *port)
{
    struct sockaddr_in address = loopback(*port);
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr *)&address, bytes) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) < 0)
        return -1;
    *port = ntohs(address.sin_port);
    return fd;
}

// The server, and its client, whose socket is none of the capture's. Prints the client's port.
static int serve(uint16_t port)
{
    uint16_t client_port = 0;
    int server = udp_socket(&port), client = udp_socket(&client_port);
    int other = dup(server); // as memcached's threads have one each
    struct sockaddr_in to = loopback(port), from;
    char text[64];
    if (server < 0 || client < 0)
        return -1;
    for (int how = 0; how < CALLS; how++) {
        const char request[] = {(char)0xab, (char)how, 0, 0, 0, 1, 0, 0, 'g', 'e', 't'};
        int fd = how % 2 ? other : server;
        if (sendto(client, request, sizeof request, 0, (struct sockaddr *)&to, sizeof to) !=
                sizeof request ||
            receive(fd, how, text, sizeof text, &from) != sizeof request)
            return -2;
        if (how < NAMED && answer(fd, how, text, sizeof request, &from) != sizeof request)
            return -3;
        if (how < NAMED && recv(client, text, sizeof text, MSG_DONTWAIT) != sizeof request)
            return -4;
    }
    // One that moves nothing leaves no record.
    return recvfrom(server, text, sizeof text, MSG_DONTWAIT, NULL, NULL) < 0 ? client_port : -5;
}

static uint16_t free_port(void)
{
    uint16_t port = 0;
    int fd = udp_socket(&port);
    close(fd);
    return port;
}

static void calls_have_their_datagrams_name(void **state)
{
    (void)state;
    struct places places;
    struct logs logs;
    struct message_collector *collector;
    struct message_stats stats = {0};
    struct process server = {0};
    struct error err = {0};
    char self[PATH_MAX] = {0}, port_text[16], line[64];
    uint16_t port = free_port();
    places_init(&places, "datagrams");
    if (message_collector_create(places.rings, 0, &port, 1, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(collector);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(port_text, sizeof port_text, "%u", port);
    const char *argv[] = {self, "--serve", port_text, NULL};
    const char *environment[] = {places.preload, places.environment,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", NULL};
    struct process_place place = {.environment = environment, .pipe_output = true};
    if (process_start(&server, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(process_read_line(&server, line, sizeof line, 20000, &err), 1);
    int client_port = atoi(line);
    assert_true(client_port > 0);
    process_close_pipes(&server);
    process_stop(&server, 2000);
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stats.dropped_unnamed, UNNAMED);
    assert_int_equal(stats.dropped, UNNAMED);
    assert_int_equal(stats.incomplete_connections, 0);
    assert_int_equal(stats.checks, 0);
    assert_non_null(strstr(stats.warning, "4 datagrams not recorded"));

    logs_open(&logs, &places);
    logs_check(&logs);
    assert_int_equal(logs.connections.count, 1);
    const struct connection *socket = logs.connections.records;
    assert_int_equal(socket->protocol, CONNECTION_UDP);
    assert_int_equal(socket->local_port, port);
    assert_int_equal(socket->peer_port, 0);
    const uint8_t address[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
    const struct call *calls = logs.calls.records;
    size_t moved[2] = {0};
    for (size_t i = 0; i < logs.calls.count; i++) {
        if (calls[i].kind != CALL_RECEIVE && calls[i].kind != CALL_SEND)
            continue;
        size_t *nth = &moved[calls[i].kind == CALL_SEND];
        const uint8_t begin[2] = {0xab, (uint8_t)(*nth)++};
        assert_int_equal(calls[i].offset,
                         datagram_key(datagram_client(address, (uint16_t)client_port), begin));
        assert_int_equal(calls[i].length, 11);
    }
    assert_int_equal(moved[0], NAMED);
    assert_int_equal(moved[1], NAMED);
    logs_close(&logs);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        printf("%d\n", serve((uint16_t)atoi(argv[2])));
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_have_their_datagrams_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
