// SPDX-License-Identifier: MIT
#include "loadgen/client/protocol_probe.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/protocols.h"

// The second for what answers nothing to the first probe, and maybe nothing to any.
enum { PATIENCE_MS = 500, LITTLE_PATIENCE_MS = 100, QUOTED_BYTES = 100 };

// From ANSWER_RIGHT on it speaks the protocol.
enum answer { ANSWER_REFUSED, ANSWER_NONE, ANSWER_WRONG, ANSWER_RIGHT, ANSWER_WANTS_LOGIN };

static bool wait_for(int socket_fd, short events, int64_t until_ms)
{
    struct pollfd poll_fd = {.fd = socket_fd, .events = events};
    int64_t left_ms = until_ms - monotonic_ms();
    return left_ms > 0 && poll(&poll_fd, 1, (int)left_ms) == 1;
}

static bool begins(const char *bytes, size_t count, const char *beginning)
{
    size_t length = strlen(beginning);
    return count >= length && memcmp(bytes, beginning, length) == 0;
}

static enum answer judge(const struct protocol *protocol, const char *bytes, size_t count)
{
    if (protocol->wants_login && count >= protocol->wants_login_bytes &&
        memcmp(bytes, protocol->wants_login, protocol->wants_login_bytes) == 0)
        return ANSWER_WANTS_LOGIN;
    for (size_t i = 0; i < PROBE_ANSWERS && protocol->probe_answers[i]; i++)
        if (begins(bytes, count, protocol->probe_answers[i]))
            return ANSWER_RIGHT;
    return protocol->probe_begins && protocol->probe_begins(bytes, count) ? ANSWER_RIGHT
                                                                          : ANSWER_WRONG;
}

// Lets the server see an end, not a reset, which is what it sees where what it sent was not read.
static void end_orderly(int socket_fd)
{
    const int64_t until_ms = monotonic_ms() + LITTLE_PATIENCE_MS;
    char rest[4096];
    shutdown(socket_fd, SHUT_WR);
    while (wait_for(socket_fd, POLLIN, until_ms) && recv(socket_fd, rest, sizeof rest, 0) > 0)
        continue;
}

// 0, or why there is no connection.
static int connect_until(int socket_fd, const struct server_address *server, int64_t until_ms)
{
    int failure = 0;
    socklen_t bytes = sizeof failure;
    const struct sockaddr *place = (const void *)&server->socket_address;
    if (connect(socket_fd, place, server->socket_address_bytes) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (!wait_for(socket_fd, POLLOUT, until_ms))
        return ETIMEDOUT;
    return getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &failure, &bytes) < 0 ? errno : failure;
}

// Whether the load cannot be had either, now: what is in the way of one connection may not be in
// the way of the next.
static bool is_final(int failure)
{
    return failure == ECONNREFUSED || failure == ENOENT || failure == EHOSTUNREACH ||
           failure == ENETUNREACH;
}

// A connection on which the protocol's probe was sent, to be closed; -1: there is none, why is in
// errno, 0 where only the probe did not go out.
static int open_and_ask(const struct server_address *server, const struct protocol *protocol,
                        int64_t until_ms)
{
    const struct sockaddr *place = (const void *)&server->socket_address;
    int fd = socket(place->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const int failure = connect_until(fd, server, until_ms);
    if (failure == 0 && send(fd, protocol->probe, protocol->probe_bytes, MSG_NOSIGNAL) ==
                            (ssize_t)protocol->probe_bytes)
        return fd;
    close(fd);
    errno = failure;
    return -1;
}

// `said` gets what came, as text. ANSWER_REFUSED: why is in errno.
static enum answer ask(const struct server_address *server, const struct protocol *protocol,
                       int patience_ms, char said[QUOTED_BYTES])
{
    const int64_t until_ms = monotonic_ms() + patience_ms;
    size_t count = 0;
    enum answer answer = ANSWER_NONE;
    const int fd = open_and_ask(server, protocol, until_ms);
    said[0] = '\0';
    if (fd < 0)
        return is_final(errno) ? ANSWER_REFUSED : ANSWER_NONE;
    // One line, or what the peer says before it closes.
    while (answer != ANSWER_RIGHT && count < QUOTED_BYTES - 1 && !memchr(said, '\n', count) &&
           wait_for(fd, POLLIN, until_ms)) {
        ssize_t got = recv(fd, said + count, QUOTED_BYTES - 1 - count, 0);
        if (got <= 0)
            break;
        count += (size_t)got;
        answer = judge(protocol, said, count);
    }
    if (count)
        end_orderly(fd);
    close(fd);
    said[count] = '\0';
    return answer;
}

// Its first line, without what a terminal would not print.
static void quote(char *said)
{
    said[strcspn(said, "\r\n")] = '\0';
    for (; *said; said++)
        if (!isprint((unsigned char)*said))
            *said = '?';
}

// What the server answers to instead, or NULL. What it said to another's probe hints at whom to ask
// first, so that no protocol is waited for in vain.
static const struct protocol *identify(const struct server_address *server,
                                       const struct protocol *asked, const char *hint,
                                       int patience_ms)
{
    char said[QUOTED_BYTES];
    for (int hinted = 1; hinted >= 0; hinted--)
        for (size_t i = 0; i < PROTOCOLS; i++) {
            const struct protocol *other = protocols[i];
            if (other != asked && other->probe_bytes > 0 &&
                (judge(other, hint, strlen(hint)) >= ANSWER_RIGHT) == hinted &&
                ask(server, other, patience_ms, said) >= ANSWER_RIGHT)
                return other;
        }
    return NULL;
}

// --- TLS -----------------------------------------------------------------------------------------

// The least that TLS begins with (RFC 5246, 7.4.1.2): whoever speaks any version answers it with a
// record, be it an alert.
#define TLS_RANDOM "taillight asks whether it is TLS"
static const char client_hello[] = "\x16\x03\x01\x00\x2f"       // a record of a handshake
                                   "\x01\x00\x00\x2b"           // ClientHello
                                   "\x03\x03" TLS_RANDOM "\x00" // TLS 1.2, no session
                                   "\x00\x04\xc0\x2f\xc0\x2b"   // two suites
                                   "\x01\x00";                  // without compression

static bool is_tls_record(const char *bytes, size_t count)
{
    return count >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3;
}

static const struct protocol tls_handshake = {
    .name = "TLS", PROTOCOL_PROBE(client_hello), .probe_begins = is_tls_record};

// What is asked of all is no request to nginx before it has looked at that.
static const char options[] = "OPTIONS / HTTP/1.1\r\nHost: taillight\r\nConnection: close\r\n\r\n";
static const struct protocol plain_page = {.name = "HTTP", PROTOCOL_PROBE(options)};

// Whether the server's page says that it was a plain request to TLS ("The plain HTTP request was
// sent to HTTPS port", "You're speaking plain HTTP to an SSL-enabled server port"): to others a
// handshake is a request that cannot be read, and stands in their log.
static bool page_names_tls(const struct server_address *server)
{
    char page[2048] = "";
    const int64_t until_ms = monotonic_ms() + LITTLE_PATIENCE_MS;
    size_t count = 0;
    const int fd = open_and_ask(server, &plain_page, until_ms);
    while (fd >= 0 && count < sizeof page - 1 && wait_for(fd, POLLIN, until_ms)) {
        const ssize_t got = recv(fd, page + count, sizeof page - 1 - count, 0);
        if (got <= 0)
            break;
        count += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return memmem(page, count, "HTTPS", 5) || memmem(page, count, "SSL", 3);
}

// Whether it speaks TLS, by what it said to something else: nothing, as those that reset what is no
// handshake; an alert; or, of HTTP's servers, that this was a bad request.
static bool speaks_tls(const struct server_address *server, enum answer answer, const char *said)
{
    char hello[QUOTED_BYTES];
    const bool bad = strncmp(said, "HTTP/1.", 7) == 0 && strncmp(said + 8, " 400", 4) == 0;
    if (server->transport != SERVER_TCP) // also where what is asked goes through TLS already
        return false;
    return is_tls_record(said, strlen(said)) ||
           ((answer == ANSWER_NONE || (bad && page_names_tls(server))) &&
            ask(server, &tls_handshake, LITTLE_PATIENCE_MS, hello) == ANSWER_RIGHT);
}

int protocol_probe(const struct server_address *resolved, const struct protocol *protocol,
                   struct error *err)
{
    char said[QUOTED_BYTES] = "";
    if (resolved->transport == SERVER_UDP || protocol->probe_bytes == 0)
        return 0;
    enum answer answer = ask(resolved, protocol, PATIENCE_MS, said);
    if (answer != ANSWER_REFUSED && speaks_tls(resolved, answer, said))
        return error_set(
            err, ERROR_INPUT,
            "%s speaks TLS: give --tls, and --tls-ca FILE or --tls-insecure where this "
            "machine does not believe its certificate; in an experiment "
            "`load: {tls: true}`",
            resolved->text);
    if (answer == ANSWER_RIGHT)
        return 0;
    if (answer == ANSWER_REFUSED)
        return error_set_errno(err, ERROR_FAILED,
                               "cannot connect to %s (is a server running there?)", resolved->text);
    if (answer == ANSWER_WANTS_LOGIN) {
        char *words = said + protocol->header_bytes;
        quote(words);
        return error_set(err, ERROR_INPUT,
                         "%s wants a login (\"%s\"): give --user, and the password by "
                         "--password-file or " LOGIN_PASSWORD_VARIABLE
                         "; in an experiment `load: {user: ..., password_file: ...}`",
                         resolved->text, words);
    }
    bool silent = answer == ANSWER_NONE;
    const struct protocol *other =
        identify(resolved, protocol, said, silent ? LITTLE_PATIENCE_MS : PATIENCE_MS);
    // Silent, it may have been busy; it may speak several.
    if (silent && (!other || ask(resolved, protocol, PATIENCE_MS, said) == ANSWER_RIGHT))
        return 0;
    quote(said);
    if (other && !said[0])
        return error_set(err, ERROR_INPUT,
                         "%s answers nothing to what asks for %s, but speaks %s: try --protocol "
                         "%s, or `protocol: %s` in the workload",
                         resolved->text, protocol->name, other->name, other->name, other->name);
    return other
               ? error_set(err, ERROR_INPUT,
                           "%s does not answer as %s does (\"%s\"), but as %s: try --protocol %s, "
                           "or `protocol: %s` in the workload",
                           resolved->text, protocol->name, said, other->name, other->name,
                           other->name)
               : error_set(err, ERROR_INPUT, "%s does not answer as %s does, but: \"%s\"",
                           resolved->text, protocol->name, said);
}
