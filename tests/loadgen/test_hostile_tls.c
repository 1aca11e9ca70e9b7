// SPDX-License-Identifier: MIT
//
// `taillight load` over TLS against a server that answers some requests and then says what TLS
// allows it to say besides data, without end: new keys, tickets, wishes to begin anew. And against
// one that never comes to the end of its handshake. The load ends by itself and says so. And
// against servers that close the connection behind some answers, with close_notify and without.
// Runs beside others: requests are counted, not timed.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loadgen/tls_context.h"

enum { ANSWERS = 10, PATIENCE_S = 60 };

static bool says_new_keys(SSL *tls)
{
    return SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(tls) == 1;
}

static bool asks_for_new_keys(SSL *tls)
{
    return SSL_key_update(tls, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(tls) == 1;
}

static bool gives_ticket(SSL *tls)
{
    return SSL_new_session_ticket(tls) == 1 && SSL_do_handshake(tls) == 1;
}

// HelloRequest, which the client declines each time (RFC 5246, 7.4.1.1).
static bool begins_anew(SSL *tls)
{
    return SSL_renegotiate(tls) == 1 && SSL_do_handshake(tls) == 1;
}

// Then the stream's end, and all that the client still says is read: else it would be a reset.
static bool closes_in_order(SSL *tls)
{
    char text[4096];
    SSL_shutdown(tls);
    shutdown(SSL_get_fd(tls), SHUT_WR);
    while (recv(SSL_get_fd(tls), text, sizeof text, 0) > 0)
        ;
    return false;
}

static bool closes_without_a_word(SSL *tls)
{
    SSL_set_quiet_shutdown(tls, 1);
    return closes_in_order(tls);
}

static const struct manner {
    const char *name;
    bool (*says)(SSL *tls); // NULL: HelloRequests in place of a handshake
    int version;
} endless[] =
    {
        {"new keys", says_new_keys, TLS1_3_VERSION},
        {"new keys, of both", asks_for_new_keys, TLS1_3_VERSION},
        {"tickets", gives_ticket, TLS1_3_VERSION},
        {"begins anew", begins_anew, TLS1_2_VERSION},
        {"no handshake", NULL, TLS1_2_VERSION},
},
  ending[] = {
      {"close_notify", closes_in_order, TLS1_3_VERSION},
      {"no close_notify", closes_without_a_word, TLS1_3_VERSION},
      {"no close_notify in TLS 1.2", closes_without_a_word, TLS1_2_VERSION},
};

// --- the server ----------------------------------------------------------------------------------

static const struct manner *manner;
static SSL_CTX *context;

static void make_context(void)
{
    context = certified_context();
    SSL_CTX_set_max_proto_version(context, manner->version);
}

// As a memcached that stores nothing. Until so many requests are answered, or the client has gone.
static void answer(SSL *tls, int requests)
{
    static const struct {
        const char *words, *reply;
    } replies[] = {{"get ", "END\r\n"}, {"set ", "STORED\r\n"}, {"version", "VERSION 1.6.18\r\n"}};
    char text[4096];
    int count;
    while (requests > 0 && (count = SSL_read(tls, text, sizeof text - 1)) > 0) {
        text[count] = '\0';
        for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
            if (strncmp(text, replies[i].words, strlen(replies[i].words)) == 0)
                SSL_write(tls, replies[i].reply, (int)strlen(replies[i].reply));
        requests--;
    }
}

static void no_handshake(int fd)
{
    static const char hello_request[9] = "\x16\3\3\0\4\0\0\0";
    char block[9 * 1000];
    for (size_t i = 0; i < sizeof block; i += sizeof hello_request)
        memcpy(block + i, hello_request, sizeof hello_request);
    while (send(fd, block, sizeof block, MSG_NOSIGNAL) > 0)
        ;
}

static void *serve(void *argument)
{
    const int fd = (int)(intptr_t)argument;
    SSL *tls = SSL_new(context);
    SSL_set_fd(tls, fd);
    if (!manner->says) {
        no_handshake(fd);
    } else if (SSL_accept(tls) == 1) {
        answer(tls, ANSWERS);
        while (manner->says(tls))
            ;
    }
    SSL_free(tls);
    close(fd);
    return NULL;
}

static _Noreturn void serve_all(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    make_context();
    for (;;) {
        pthread_t thread;
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            abort();
        pthread_detach(thread);
    }
}

static pid_t start_server(int *listener, unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(*listener, (struct sockaddr *)&address, &bytes), 0);
    assert_int_equal(listen(*listener, 64), 0);
    *port = ntohs(address.sin_port);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        serve_all(*listener);
    return pid;
}

// --- the load ------------------------------------------------------------------------------------

// Returns its exit code; what it said is in `text`.
static int load(unsigned port, char *text, size_t room)
{
    const char *build = getenv("BUILD");
    char command[1000];
    snprintf(command, sizeof command,
             "timeout %d %s/taillight load --server memcached://127.0.0.1:%u --tls-insecure --rate "
             "1k --duration 200ms --timeout 1s --reconnect 300ms --connections 2 --sleep --json "
             "--quiet 2>&1",
             PATIENCE_S, build ? build : "build", port);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    text[fread(text, 1, room - 1, output)] = '\0';
    return WEXITSTATUS(pclose(output));
}

static int load_met_so(const struct manner *how, char *text, size_t room)
{
    int listener;
    unsigned port;
    manner = how;
    const pid_t server = start_server(&listener, &port);
    const int code = load(port, text, room);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    close(listener);
    print_message("%s: exit %d\n", how->name, code);
    return code;
}

static void records_without_end_break_it_off(void **state)
{
    static char text[1 << 17];
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        const int code = load_met_so(&endless[i], text, sizeof text);
        if (!strstr(text, "1,000 records of TLS in a row without data"))
            fail_msg("%s: exit %d, not told: %s", endless[i].name, code, text);
        assert_int_equal(code, endless[i].says ? 4 : 2);
    }
}

static void an_end_without_close_notify_is_told(void **state)
{
    static char text[1 << 17];
    (void)state;
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        const int code = load_met_so(&ending[i], text, sizeof text);
        const bool cut = ending[i].says == closes_without_a_word;
        if (!strstr(text, "the server closed it") ||
            cut != !!strstr(text, "the server closed it without TLS's close_notify"))
            fail_msg("%s: exit %d, not told so: %s", ending[i].name, code, text);
        assert_int_equal(code, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_without_end_break_it_off),
                                       cmocka_unit_test(an_end_without_close_notify_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
