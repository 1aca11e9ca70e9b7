// SPDX-License-Identifier: MIT
//
// A server of any protocol that behaves in one of many bad ways: a row of BEHAVIOURS and a case of
// visit_behave() each. It is a process of its own, with a thread for each connection, until it is
// killed. It answers one operation only, and knows of each protocol (a row of speeches[]) where a
// request ends, a good reply, and some bad ones.
#ifndef TESTS_LOADGEN_HOSTILE_SERVER_H
#define TESTS_LOADGEN_HOSTILE_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// What a load of it can say: that nothing was answered, that everything was, or anything that adds
// up.
enum hostile_outcome { ANSWERS_NOTHING, ANSWERS_ALL, ANSWERS_SOME };

#define BEHAVIOURS(ROW)                                                                            \
    ROW(REFUSES, ANSWERS_NOTHING)       /* nobody listens */                                       \
    ROW(NEVER_ACCEPTS, ANSWERS_NOTHING) /* connections stay in the backlog */                      \
    ROW(CLOSES_AT_ACCEPT, ANSWERS_NOTHING)                                                         \
    ROW(RESETS_AT_ACCEPT, ANSWERS_NOTHING)                                                         \
    ROW(HALF_CLOSES_AT_ACCEPT, ANSWERS_NOTHING) /* its FIN first, then it reads on */              \
    ROW(BABBLES_AT_ACCEPT, ANSWERS_SOME)        /* nonsense before any request, then silence */    \
    ROW(REPLIES_UNASKED, ANSWERS_SOME)          /* good replies to nothing, then silence */        \
    ROW(STREAMS_UNASKED, ANSWERS_SOME)          /* the same for ever, and reads nothing */         \
    ROW(STREAMS_NONSENSE, ANSWERS_SOME)                                                            \
    ROW(NEVER_READS, ANSWERS_NOTHING)                                                              \
    ROW(SILENT, ANSWERS_NOTHING)                                                                   \
    ROW(GOES_AFTER_ONE, ANSWERS_SOME) /* one connection, closed; then nobody listens */            \
    ROW(DRIPS, ANSWERS_SOME)          /* good replies, a byte each 20 ms */                        \
    ROW(DRIPS_A_LINE, ANSWERS_SOME)   /* a line without an end, likewise */                        \
    ROW(ENDLESS_LINE, ANSWERS_SOME)                                                                \
    ROW(ENDLESS_ZEROS, ANSWERS_SOME)                                                               \
    ROW(ENDLESS_PARTS, ANSWERS_SOME) /* a reply of ever more well-formed parts */                  \
    ROW(SSH_BANNER, ANSWERS_SOME)    /* another protocol */                                        \
    ROW(TLS_ALERT, ANSWERS_SOME)                                                                   \
    ROW(HUGE_LENGTH, ANSWERS_SOME)    /* beyond any type */                                        \
    ROW(LONGEST_LENGTH, ANSWERS_SOME) /* the longest that is allowed, and then silence */          \
    ROW(NEGATIVE_LENGTH, ANSWERS_SOME)                                                             \
    ROW(NO_LENGTH, ANSWERS_SOME) /* letters where digits should be */                              \
    ROW(RANDOM_BYTES, ANSWERS_SOME)                                                                \
    ROW(ERROR_REPLIES, ANSWERS_SOME)                                                               \
    ROW(RESETS_AT_REQUEST, ANSWERS_NOTHING)                                                        \
    ROW(RESETS_IN_REPLY, ANSWERS_NOTHING)                                                          \
    ROW(HALF_REPLY_AND_CLOSE, ANSWERS_NOTHING)                                                     \
    ROW(HALF_REPLY_AND_SILENCE, ANSWERS_NOTHING)                                                   \
    ROW(FIN_WITH_DATA, ANSWERS_SOME) /* the last reply and the end in one segment */               \
    ROW(DOUBLED_REPLIES, ANSWERS_SOME)                                                             \
    ROW(OTHERS_REPLIES, ANSWERS_SOME) /* each bears the number of another request */               \
    ROW(BYTE_BEHIND_REPLY, ANSWERS_SOME)                                                           \
    ROW(STREAMS_REPLIES, ANSWERS_SOME) /* good ones for ever, after the first request */           \
    ROW(BYTEWISE, ANSWERS_ALL)         /* a segment for each byte */                               \
    ROW(IN_BURSTS, ANSWERS_ALL)        /* all that came within 50 ms at once */                    \
    ROW(URGENT_BYTES, ANSWERS_SOME)    /* out of band; the next makes one part of the stream */    \
    ROW(SLOW_READER, ANSWERS_SOME)     /* a byte each 10 ms, and nothing back */                   \
    ROW(TIRES, ANSWERS_SOME)           /* closes after three replies, each time */                 \
    ROW(FALLS_SILENT, ANSWERS_SOME)    /* after three replies */

enum hostile_behaviour {
#define ROW(name, outcome) name,
    BEHAVIOURS(ROW)
#undef ROW
        BEHAVIOUR_COUNT,
};

static const struct {
    const char *name;
    enum hostile_outcome outcome;
} behaviours[] = {
#define ROW(name, outcome) {#name, outcome},
    BEHAVIOURS(ROW)
#undef ROW
};

// --- what it knows of protocols ------------------------------------------------------------------

enum { REQUEST_BYTES = 512, REPLY_BYTES = 1024 };

struct text {
    const char *bytes;
    size_t count;
};
#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof literal - 1                                                                \
    }

struct speech {
    const char *protocol, *operation;
    size_t (*request_end)(const char *bytes,
                          size_t count); // of the first request; 0: not there yet
    size_t (*good)(const char *request, unsigned number, char *out);
    struct text part; // of a reply that goes on
    struct text huge, longest, negative, letters, error;
    const char *description; // of protocol custom: the workload's `custom`
};

static inline size_t end_of_line(const char *bytes, size_t count)
{
    const char *end = memchr(bytes, '\n', count);
    return end ? (size_t)(end - bytes) + 1 : 0;
}

static inline size_t end_of_five_lines(const char *bytes, size_t count)
{
    size_t at = 0;
    for (int line = 0; line < 5; line++) {
        size_t end = end_of_line(bytes + at, count - at);
        if (!end)
            return 0;
        at += end;
    }
    return at;
}

static inline size_t end_of_head(const char *bytes, size_t count)
{
    const char *end = memmem(bytes, count, "\r\n\r\n", 4);
    return end ? (size_t)(end - bytes) + 4 : 0;
}

static inline size_t end_of_binary(const char *bytes, size_t count)
{
    uint32_t body;
    if (count < 24)
        return 0;
    memcpy(&body, bytes + 8, 4);
    return count >= 24 + ntohl(body) ? 24 + ntohl(body) : 0;
}

static inline size_t end_of_lab(const char *bytes, size_t count)
{
    (void)bytes;
    return count >= 24 ? 24 : 0;
}

static inline size_t good_text(const char *request, unsigned number, char *out)
{
    (void)number;
    const char *key = memcmp(request, "get ", 4) == 0 ? request + 4 : "k";
    return (size_t)sprintf(out, "VALUE %.*s 0 3\r\nabc\r\nEND\r\n", (int)strcspn(key, "\r"), key);
}

static inline size_t good_multiget(const char *request, unsigned number, char *out)
{
    size_t used = 0, bytes;
    (void)number;
    for (const char *key = request; (key = strchr(key, ' ')) && (bytes = strcspn(++key, " \r"));)
        used += (size_t)sprintf(out + used, "VALUE %.*s 0 3\r\nabc\r\n", (int)bytes, key);
    return used + (size_t)sprintf(out + used, "END\r\n");
}

static inline size_t good_meta(const char *request, unsigned number, char *out)
{
    (void)request;
    return (size_t)sprintf(out, "VA 3 O%u\r\nabc\r\n", number);
}

static inline size_t good_binary(const char *request, unsigned number, char *out)
{
    static const char head[24] = {(char)0x81, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 7};
    uint32_t opaque = htonl(number);
    (void)request;
    memcpy(out, head, sizeof head);
    memcpy(out + 12, &opaque, 4);
    memcpy(out + 24, "\0\0\0\0abc", 7);
    return 31;
}

static inline size_t good_redis(const char *request, unsigned number, char *out)
{
    (void)number;
    if (memcmp(request + 8, "HELLO", 5) == 0)
        return (size_t)sprintf(out, "%%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
    return (size_t)sprintf(out, "$3\r\nabc\r\n");
}

static inline size_t end_of_transaction(const char *bytes, size_t count)
{
    const char *end = memmem(bytes, count, "EXEC\r\n", 6);
    return end ? (size_t)(end - bytes) + 6 : 0;
}

static inline size_t good_transaction(const char *request, unsigned number, char *out)
{
    (void)request, (void)number;
    return (size_t)sprintf(out, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$3\r\nabc\r\n+OK\r\n");
}

static inline size_t good_http(const char *request, unsigned number, char *out)
{
    (void)request, (void)number;
    return (size_t)sprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
}

static inline size_t end_of_frame(const char *bytes, size_t count)
{
    uint32_t length;
    if (count < 4)
        return 0;
    memcpy(&length, bytes, 4);
    return count >= 4 + ntohl(length) ? 4 + ntohl(length) : 0;
}

static inline size_t good_line(const char *request, unsigned number, char *out)
{
    (void)request, (void)number;
    return (size_t)sprintf(out, "VALUE abc\r\n");
}

static inline size_t good_frame(const char *request, unsigned number, char *out)
{
    memcpy(out, "\0\0\0\x8__\0VALU", 11);
    out[4] = (char)(number >> 8);
    out[5] = (char)number;
    (void)request;
    out[11] = 'E';
    return 12;
}

static inline size_t good_lab(const char *request, unsigned number, char *out)
{
    uint32_t low = htonl(number);
    (void)request;
    memcpy(out, "LABR\0\0\0\3\0\0\0\0\0\0\0\0abc", 19);
    memcpy(out + 12, &low, 4);
    return 19;
}

#define BINARY(length, status)                                                                     \
    "\x81\0\0\0\4\0" status length "\0\0\0\0"                                                      \
    "\0\0\0\0\0\0\0\0"
#define HTTP(rest) "HTTP/1.1 200 OK\r\n" rest
static const struct speech speeches[] = {
    {"memcached", "get", end_of_line, good_text, TEXT("VALUE k 0 3\r\nabc\r\n"),
     TEXT("VALUE k 0 99999999999999999999\r\n"), TEXT("VALUE k 0 1073741824\r\nab"),
     TEXT("VALUE k 0 -1\r\n"), TEXT("VALUE k 0 abc\r\n"), TEXT("SERVER_ERROR no\r\n"), NULL},
    {"memcached", "multiget", end_of_line, good_multiget, TEXT("VALUE k 0 3\r\nabc\r\n"),
     TEXT("VALUE k 0 99999999999999999999\r\n"), TEXT("VALUE k 0 1073741824\r\nab"),
     TEXT("VALUE k 0 -1\r\n"), TEXT("VALUE k 0 abc\r\n"), TEXT("SERVER_ERROR no\r\n"), NULL},
    {"memcached-binary", "get", end_of_binary, good_binary, TEXT(BINARY("\0\0\0\4", "\0\0")),
     TEXT(BINARY("\xff\xff\xff\xff", "\0\0")), TEXT(BINARY("\x40\0\0\0", "\0\0")),
     TEXT(BINARY("\x80\0\0\0", "\0\0")), TEXT(BINARY("\0\0\0\0", "\0\0")),
     TEXT(BINARY("\0\0\0\4", "\0\x82") "\0\0\0\0"), NULL},
    {"memcached-meta", "get", end_of_line, good_meta, TEXT("VA 99999999 "),
     TEXT("VA 99999999999999999999\r\n"), TEXT("VA 1073741824\r\nab"), TEXT("VA -1\r\n"),
     TEXT("VA abc\r\n"), TEXT("SERVER_ERROR no\r\n"), NULL},
    {"redis", "get", end_of_five_lines, good_redis, TEXT("*2\r\n$1\r\na\r\n"),
     TEXT("$99999999999999999999\r\n"), TEXT("$536870912\r\nab"), TEXT("$-2\r\n"), TEXT("*x\r\n"),
     TEXT("-ERR no\r\n"), NULL},
    {"redis", "transaction", end_of_transaction, good_transaction,
     TEXT("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\na\r\n"),
     TEXT("+OK\r\n+QUEUED\r\n+QUEUED\r\n*99999999999999999999\r\n"),
     TEXT("+OK\r\n+QUEUED\r\n+QUEUED\r\n*1073741824\r\n+OK\r\n"),
     TEXT("+OK\r\n+QUEUED\r\n+QUEUED\r\n*-2\r\n"), TEXT("+OK\r\n$3\r\nabc\r\n"),
     TEXT("-ERR no\r\n-ERR no\r\n-ERR no\r\n-EXECABORT no\r\n"), NULL},
    {"redis-resp3", "get", end_of_five_lines, good_redis, TEXT(">1\r\n|1\r\n+a\r\n:1\r\n+b\r\n"),
     TEXT("%99999999999999999999\r\n"), TEXT("%1000000000\r\n"), TEXT("=-5\r\n"), TEXT("~x\r\n"),
     TEXT("!5\r\nERR x\r\n"), NULL},
    {"http", "get", end_of_head, good_http, TEXT("HTTP/1.1 100 Continue\r\nA: b\r\n\r\n"),
     TEXT(HTTP("Content-Length: 99999999999999999999\r\n\r\n")),
     TEXT(HTTP("Content-Length: 1099511627776\r\n\r\nab")),
     TEXT(HTTP("Content-Length: -1\r\n\r\n")),
     TEXT(HTTP("Transfer-Encoding: chunked\r\n\r\nxyz\r\n")),
     TEXT("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), NULL},
    {"lab", "call", end_of_lab, good_lab, TEXT("LABR\0\0\0\0\0\0\0\0\0\0\0\0"),
     TEXT("LABR\xff\xff\xff\xff\0\0\0\0\0\0\0\0"), TEXT("LABR\0\x10\0\0\0\0\0\0\0\0\0\0"),
     TEXT("LABR\x80\0\0\0\0\0\0\0\0\0\0\0"), TEXT("LABX\0\0\0\3\0\0\0\0\0\0\0\0"),
     TEXT("ERR!\0\0\0\0\0\0\0\0\0\0\0\0"), NULL},
    {"custom", "get", end_of_line, good_line, TEXT("VALUE "),
     TEXT("VALUE 99999999999999999999\r\n"), TEXT("VALUE 1073741824"), TEXT("-1\r\n"),
     TEXT("abc\r\n"), TEXT("ERR no\r\n"),
     "{requests: {get: \"get {key}\\r\\n\"}, reply: {until: \"\\r\\n\", most: 1MiB, ok: [VALUE], "
     "error: [ERR]}}"},
    {"custom", "get", end_of_frame, good_frame, TEXT("\0\0\0\x8"), TEXT("\xff\xff\xff\xff"),
     TEXT("\x4\0\0\0"), TEXT("\x80\0\0\0"), TEXT("abcdefghi"), TEXT("\0\0\0\5\0\0\1no"),
     "{requests: {get: \"{rest_size:u32}{number:u16}{key}\"}, reply: {length: {bytes: 4}, "
     "number: {at: 4, bytes: 2}, status_at: 6, ok: [\"{hex:00}\"]}}"},
};
enum { SPEECHES = sizeof speeches / sizeof *speeches };

// --- a connection --------------------------------------------------------------------------------

struct hostile_server {
    const struct speech *speech;
    enum hostile_behaviour behaviour;
    int listener;
};

struct visit {
    const struct hostile_server *server;
    int fd;
    unsigned number; // of the request under way, from 0
    size_t used;
    char input[65536];
    bool greeted;
};

static inline void hostile_pause(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static inline bool visit_say(struct visit *visit, const char *bytes, size_t count)
{
    return send(visit->fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count;
}

static inline bool visit_say_text(struct visit *visit, struct text text)
{
    return visit_say(visit, text.bytes, text.count);
}

// Until nobody takes it any more.
static inline void visit_repeat(struct visit *visit, const char *bytes, size_t count)
{
    char block[8192];
    size_t used = 0;
    for (; used + count <= sizeof block; used += count)
        memcpy(block + used, bytes, count);
    while (visit_say(visit, block, used))
        ;
}

static inline void visit_reset(struct visit *visit)
{
    const struct linger at_once = {1, 0};
    setsockopt(visit->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// The next whole request. False: the client has gone.
static inline bool visit_request(struct visit *visit, char request[REQUEST_BYTES])
{
    for (;;) {
        size_t end = visit->server->speech->request_end(visit->input, visit->used);
        if (end && end <= REQUEST_BYTES) {
            memcpy(request, visit->input, end);
            memmove(visit->input, visit->input + end, visit->used -= end);
            return true;
        }
        ssize_t got =
            read(visit->fd, visit->input + visit->used, sizeof visit->input - visit->used);
        if (got <= 0)
            return false;
        visit->used += (size_t)got;
    }
}

// The good reply to a request, which may be a greeting.
static inline size_t visit_good(struct visit *visit, const char *request, char *out)
{
    bool greeting = memcmp(request, "*2\r\n$5\r\nHELLO", 13) == 0;
    return visit->server->speech->good(request, greeting ? 0 : visit->number++, out);
}

static inline void visit_read_all(struct visit *visit)
{
    while (read(visit->fd, visit->input, sizeof visit->input) > 0)
        ;
}

static inline void visit_drip(struct visit *visit, const char *bytes, size_t count, long ms)
{
    for (size_t i = 0; i < count && visit_say(visit, bytes + i, 1); i++)
        hostile_pause(ms);
}

// Answers a request whose good reply is given. False: the connection is done with.
static inline bool visit_answer(struct visit *visit, const char *request, char *good, size_t count)
{
    const struct speech *speech = visit->server->speech;
    const int one = 1;
    switch (visit->server->behaviour) {
    case DRIPS:
        visit_drip(visit, good, count, 20);
        return true;
    case DRIPS_A_LINE:
        for (int i = 0; i < 200; i++)
            visit_drip(visit, "A", 1, 20);
        return true;
    case ENDLESS_LINE:
        visit_repeat(visit, "A", 1);
        return false;
    case ENDLESS_ZEROS:
        visit_repeat(visit, "", 1);
        return false;
    case ENDLESS_PARTS:
        visit_repeat(visit, speech->part.bytes, speech->part.count);
        return false;
    case STREAMS_REPLIES:
        visit_repeat(visit, good, count);
        return false;
    case SSH_BANNER:
        return visit_say(visit, "SSH-2.0-OpenSSH_9.2p1\r\n", 23);
    case TLS_ALERT:
        return visit_say(visit, "\x15\3\1\0\2\2\x46", 7);
    case HUGE_LENGTH:
        return visit_say_text(visit, speech->huge);
    case LONGEST_LENGTH:
        visit_say_text(visit, speech->longest);
        visit_read_all(visit);
        return false;
    case NEGATIVE_LENGTH:
        return visit_say_text(visit, speech->negative);
    case NO_LENGTH:
        return visit_say_text(visit, speech->letters);
    case ERROR_REPLIES:
        return visit_say_text(visit, speech->error);
    case RANDOM_BYTES:
        for (size_t i = 0; i < REPLY_BYTES; i++)
            good[i] = (char)random();
        return visit_say(visit, good, REPLY_BYTES);
    case RESETS_AT_REQUEST:
        visit_reset(visit);
        return false;
    case RESETS_IN_REPLY:
        visit_say(visit, good, count / 2);
        visit_reset(visit);
        return false;
    case HALF_REPLY_AND_CLOSE:
        visit_say(visit, good, count / 2);
        return false;
    case HALF_REPLY_AND_SILENCE:
        visit_say(visit, good, count / 2);
        visit_read_all(visit);
        return false;
    case FIN_WITH_DATA:
        send(visit->fd, good, count, MSG_NOSIGNAL | MSG_MORE);
        shutdown(visit->fd, SHUT_WR);
        visit_read_all(visit);
        return false;
    case DOUBLED_REPLIES:
        for (int twice = 0; twice < 2; twice++)
            if (!visit_say(visit, good, count))
                return false;
        return true;
    case OTHERS_REPLIES:
        return visit_say(visit, good, speech->good(request, visit->number ^ 1, good));
    case BYTE_BEHIND_REPLY:
        return visit_say(visit, good, count) && visit_say(visit, "x", 1);
    case BYTEWISE:
        setsockopt(visit->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        for (size_t i = 0; i < count; i++)
            if (!visit_say(visit, good + i, 1))
                return false;
        return true;
    case IN_BURSTS:
        hostile_pause(visit->used ? 0 : 50);
        return visit_say(visit, good, count);
    case URGENT_BYTES:
        return visit_say(visit, good, count) &&
               send(visit->fd, "!", 1, MSG_NOSIGNAL | MSG_OOB) == 1;
    case TIRES:
        return visit_say(visit, good, count) && visit->number < 3;
    case FALLS_SILENT:
        if (visit->number <= 3)
            return visit_say(visit, good, count);
        visit_read_all(visit);
        return false;
    case GOES_AFTER_ONE:
        shutdown(visit->server->listener, SHUT_RDWR);
        return false;
    default: // says nothing
        return true;
    }
}

static inline void *visit_serve(void *argument)
{
    struct visit *visit = argument;
    char request[REQUEST_BYTES] = "", reply[REPLY_BYTES];
    const struct speech *speech = visit->server->speech;
    switch (visit->server->behaviour) {
    case RESETS_AT_ACCEPT:
        visit_reset(visit);
        goto end;
    case CLOSES_AT_ACCEPT:
        goto end;
    case HALF_CLOSES_AT_ACCEPT:
        shutdown(visit->fd, SHUT_WR);
        visit_read_all(visit);
        goto end;
    case BABBLES_AT_ACCEPT:
        visit_say(visit, "what do you want?\r\n", 19);
        break;
    case REPLIES_UNASKED:
        for (int i = 0; i < 3; i++)
            visit_say(visit, reply, speech->good(request, visit->number++, reply));
        break;
    case STREAMS_UNASKED:
        visit_repeat(visit, reply, speech->good(request, 0, reply));
        goto end;
    case STREAMS_NONSENSE:
        visit_repeat(visit, "\x81what\r\n", 7);
        goto end;
    case NEVER_READS:
        hostile_pause(60000);
        goto end;
    case SLOW_READER:
        while (read(visit->fd, request, 1) == 1)
            hostile_pause(10);
        goto end;
    default:
        break;
    }
    while (visit_request(visit, request)) {
        size_t count = visit_good(visit, request, reply);
        if (!visit_answer(visit, request, reply, count))
            break;
    }
end:
    close(visit->fd);
    free(visit);
    return NULL;
}

// --- the server ----------------------------------------------------------------------------------

static inline _Noreturn void hostile_serve(const struct hostile_server *server)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (server->behaviour == NEVER_ACCEPTS)
        pause();
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 65536);
    for (;;) {
        struct visit *visit = calloc(1, sizeof *visit);
        pthread_t thread;
        if (!visit)
            abort();
        visit->server = server;
        visit->fd = accept(server->listener, NULL, NULL);
        if (visit->fd < 0 || pthread_create(&thread, &detached, visit_serve, visit) != 0) {
            free(visit);
            for (;;) // GOES_AFTER_ONE: the port is nobody's now
                pause();
        }
    }
}

// Starts it; *port is where. Its listening socket is here too, and the caller's to close, so that
// no other gets the port.
static inline pid_t hostile_start(struct hostile_server *server, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server->listener, (struct sockaddr *)&address, bytes) < 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &bytes) < 0 ||
        (server->behaviour != REFUSES && listen(server->listener, 64) < 0))
        return -1;
    *port = ntohs(address.sin_port);
    if (server->behaviour == REFUSES)
        return 0;
    pid_t pid = fork();
    if (pid == 0)
        hostile_serve(server);
    return pid;
}

#endif
