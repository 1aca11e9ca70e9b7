// SPDX-License-Identifier: MIT
//
// Servers of a child process answer each probe as a table says.
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/client/protocol_probe.h"
#include "workloads/protocols/protocols.h"

enum { RULES = 4 };

// What a request that begins so is answered with; nothing else is answered.
struct rule {
    const char *request, *answer;
};

static const struct rule redis[RULES] = {{"*1", "+PONG\r\n"}, {"", "-ERR unknown command\r\n"}},
                         closed_redis[RULES] = {{"", "-NOAUTH Authentication required.\r\n"}},
                         memcached[RULES] = {{"version", "VERSION 1.6.18\r\n"}, {"", "ERROR\r\n"}},
                         web[RULES] = {{"", "HTTP/1.1 405 Not Allowed\r\n\r\n"}},
                         secure_shell[RULES] = {{"", "SSH-2.0-OpenSSH\x07\r\n"}}, silent[RULES],
                         full_memcached[RULES] = {{"", "ERROR Too many open connections\r\n"}},
                         full_redis[RULES] = {{"", "-ERR max number of clients reached\r\n"}},
                         // to what is no handshake a reset, an alert, or HTTP's answer
    tls_redis[RULES] = {{"\x16\x03\x01", "\x16\x03\x03"}},
                         tls_alert[RULES] = {{"", "\x15\x03\x01"}},
                         tls_web[RULES] = {{"\x16\x03\x01", "\x15\x03\x03"},
                                           {"", "HTTP/1.1 400 Bad Request\r\n\r\nplain HTTP to an "
                                                "HTTPS port"}},
                         strict_web[RULES] = {{"", "HTTP/1.1 400 Bad Request\r\n\r\n"}},
                         deaf_redis[RULES] = {{"*1", "+PONG\r\n"}},
                         // takes two connections: who it is has to be clear from the first
    two_visits[RULES] = {{"*1", "+PONG\r\n"}, {"", "-ERR unknown command\r\n"}};

static void serve(int listener, const struct rule *rules)
{
    char request[200] = "";
    for (int visits = 0; rules != two_visits || visits < 2; visits++) {
        int fd = accept(listener, NULL, NULL);
        ssize_t got = read(fd, request, sizeof request);
        for (size_t i = 0; got > 0 && i < RULES && rules[i].request; i++)
            if (strncmp(request, rules[i].request, strlen(rules[i].request)) == 0) {
                got = write(fd, rules[i].answer, strlen(rules[i].answer));
                break;
            }
        if (rules == silent)
            pause();
        close(fd);
    }
    pause(); // the listening socket stays, and nobody is answered
}

static int probe(const struct rule *rules, const char *protocol, struct error *err)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof place;
    char text[40];
    struct server_address address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (void *)&place, bytes), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (void *)&place, &bytes), 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(place.sin_port));
    pid_t server = fork();
    if (server == 0)
        serve(listener, rules);
    close(listener);
    assert_int_equal(server_address_parse(text, &address, err), 0);
    assert_int_equal(server_address_resolve(&address, err), 0);
    int result = protocol_probe(&address, protocol_find(protocol), err);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    assert_true(result == 0 || strstr(err->text, text));
    return result;
}

static void what_it_speaks_is_found(void **state)
{
    (void)state;
    static const struct {
        const struct rule *rules;
        const char *protocol, *said; // NULL: nothing to say
    } cases[] = {
        {redis, "redis", NULL},
        {redis, "redis-resp3", NULL},
        {redis, "memcached", "try --protocol redis"},
        {two_visits, "memcached", "try --protocol redis"},
        {closed_redis, "redis", "wants a login (\"-NOAUTH Authentication"},
        {memcached, "memcached", NULL},
        {memcached, "memcached-meta", "(\"ERROR\"), but as memcached: try --protocol memcached"},
        {memcached, "redis", "try --protocol memcached"},
        {full_memcached, "memcached-meta", NULL}, // the load will be told the same, and quote it
        {full_memcached, "memcached-binary", NULL},
        {full_memcached, "redis", "try --protocol memcached"},
        {full_redis, "redis-resp3", NULL},
        {web, "http", NULL},
        {web, "memcached", "try --protocol http"},
        {secure_shell, "redis", "but: \"SSH-2.0-OpenSSH?\""},
        {deaf_redis, "memcached-binary",
         "answers nothing to what asks for memcached-binary, but speaks redis: try --protocol "
         "redis"},
        {tls_redis, "redis", "speaks TLS: give --tls"},
        {tls_redis, "memcached-binary", "speaks TLS: give --tls"},
        {tls_alert, "memcached", "speaks TLS: give --tls"},
        {tls_web, "http", "speaks TLS: give --tls"},
        {tls_web, "http2", "speaks TLS: give --tls"},
        {strict_web, "http", NULL},
        {silent, "redis", NULL},     // what it is nobody knows; the load will tell
        {secure_shell, "lab", NULL}, // has no probe
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        int result = probe(cases[i].rules, cases[i].protocol, &err);
        if (result != (cases[i].said ? -ERROR_INPUT : 0) ||
            (cases[i].said && !strstr(err.text, cases[i].said)))
            fail_msg("case %zu, %s: %d, %s", i, cases[i].protocol, result, err.text);
    }
}

// Answers with more than the probe reads, and says how the connection ended: 0, orderly.
static void *serve_at_length(void *opaque)
{
    char request[200], reply[4000];
    const int *listener = opaque;
    int fd = accept(*listener, NULL, NULL);
    memset(reply, 'x', sizeof reply);
    memcpy(reply, "HTTP/1.1 200 OK\r\n", 17);
    intptr_t end = read(fd, request, sizeof request);
    if (end > 0 && write(fd, reply, sizeof reply) == sizeof reply)
        end = read(fd, request, sizeof request);
    close(fd);
    return (void *)end;
}

// A server may not expect a reset, and end.
static void a_server_sees_an_end_and_no_reset(void **state)
{
    (void)state;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof place;
    char text[40];
    struct server_address address;
    struct error err = {0};
    pthread_t server;
    void *end = NULL;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (void *)&place, bytes), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (void *)&place, &bytes), 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(place.sin_port));
    assert_int_equal(server_address_parse(text, &address, &err), 0);
    assert_int_equal(server_address_resolve(&address, &err), 0);
    assert_int_equal(pthread_create(&server, NULL, serve_at_length, &listener), 0);
    assert_int_equal(protocol_probe(&address, protocol_find("http"), &err), 0);
    pthread_join(server, &end);
    close(listener);
    assert_int_equal((intptr_t)end, 0);
}

static void nobody_is_said_and_datagrams_are_left_to_the_load(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
    } places[] = {{"127.0.0.1:1", -ERROR_FAILED},
                  {"unix:/no/such/socket", -ERROR_FAILED},
                  {"udp:127.0.0.1:1", 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct server_address address;
        struct error err = {0};
        assert_int_equal(server_address_parse(places[i].text, &address, &err), 0);
        assert_int_equal(server_address_resolve(&address, &err), 0);
        assert_int_equal(protocol_probe(&address, protocol_find("memcached"), &err),
                         places[i].result);
        assert_true(places[i].result == 0 || strstr(err.text, "is a server running there?"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_speaks_is_found),
        cmocka_unit_test(a_server_sees_an_end_and_no_reset),
        cmocka_unit_test(nobody_is_said_and_datagrams_are_left_to_the_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
