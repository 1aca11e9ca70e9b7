// SPDX-License-Identifier: MIT
//
// Requests that leave together over TLS leave as one record, which is the place of each of them:
// the server writes down which record brought which request, and the samples are held against that.
// Runs beside others: records are counted, nothing is timed.
#include "tests/loadgen/engine/engine_test.h"

#include "loadgen/client/tls_settings.h"
#include "tests/loadgen/tls_context.h"
#include "workloads/protocols/protocols.h"

#include <netinet/tcp.h>
#include <pthread.h>

enum { CONNECTIONS = 2, DEPTH = 8, REQUESTS_MOST = 4000, RATE = 8000, LARGE_BYTES = 40000 };

// Where on the wire a request lay, by the server.
struct place {
    uint64_t begin, end;
};

// A connection, as its server sees it.
struct visit {
    int fd;
    SSL *tls;
    uint64_t wire; // bytes of records so far
    struct place record;
    uint64_t records; // with requests
    char text[1 << 18];
    struct place of[1 << 18]; // of each byte of the text
    size_t used;
    struct place requests[REQUESTS_MOST + 2 * DEPTH];
    size_t count;
};

struct speech {
    const char *protocol, *alpn;
    // Bytes of the first request; 0: it is not whole. *stream: of HTTP/2, that is answered; 0: it
    // is no request.
    size_t (*request)(const char *text, size_t count, uint32_t *stream);
    size_t (*answer)(const char *request, uint32_t stream, char *out);
};

// --- what is spoken ------------------------------------------------------------------------------

static size_t line_request(const char *text, size_t count, uint32_t *stream)
{
    const char *end = memmem(text, count, "\r\n", 2);
    size_t bytes = end ? (size_t)(end - text) + 2 : 0, value = 0;
    *stream = 1;
    if (bytes && memcmp(text, "set ", 4) == 0) {
        assert_int_equal(sscanf(text, "set %*s %*u %*u %zu", &value), 1);
        bytes += value + 2;
    }
    return bytes <= count ? bytes : 0;
}

static size_t line_answer(const char *request, uint32_t stream, char *out)
{
    (void)stream;
    return (size_t)sprintf(out, memcmp(request, "set ", 4) == 0 ? "STORED\r\n" : "END\r\n");
}

static size_t head_request(const char *text, size_t count, uint32_t *stream)
{
    const char *end = memmem(text, count, "\r\n\r\n", 4);
    *stream = 1;
    return end ? (size_t)(end - text) + 4 : 0;
}

static size_t head_answer(const char *request, uint32_t stream, char *out)
{
    (void)request, (void)stream;
    return (size_t)sprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { HEADERS = 1, SETTINGS = 4, ACK = 1, END_STREAM = 1, FRAME_BYTES = 9 };

static size_t frame_request(const char *text, size_t count, uint32_t *stream)
{
    const unsigned char *at = (const unsigned char *)text;
    *stream = 0;
    if (count >= strlen(preface) && memcmp(text, preface, strlen(preface)) == 0)
        return strlen(preface);
    if (count < FRAME_BYTES || *text == 'P')
        return 0;
    size_t bytes = FRAME_BYTES + ((size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2]);
    if (at[3] == HEADERS) {
        assert_true(at[4] & END_STREAM);
        *stream = (uint32_t)at[7] << 8 | at[8] | (uint32_t)at[6] << 16;
    }
    return bytes <= count ? bytes : 0;
}

static size_t frame_answer(const char *request, uint32_t stream, char *out)
{
    if (memcmp(request, preface, 3) == 0) { // SETTINGS, of nothing
        memcpy(out, "\0\0\0\4\0\0\0\0", FRAME_BYTES);
        return FRAME_BYTES;
    }
    if (request[3] == SETTINGS && !(request[4] & ACK)) {
        memcpy(out, "\0\0\0\4\1\0\0\0", FRAME_BYTES);
        return FRAME_BYTES;
    }
    if (!stream)
        return 0;
    memcpy(out, "\0\0\1\1\5\0\0\0\0\x88", FRAME_BYTES + 1); // ":status: 200", and its end
    out[6] = (char)(stream >> 16);
    out[7] = (char)(stream >> 8);
    out[8] = (char)stream;
    return FRAME_BYTES + 1;
}

static const struct speech speeches[] = {
    {"memcached", NULL, line_request, line_answer},
    {"http", NULL, head_request, head_answer},
    {"http2", "h2", frame_request, frame_answer},
};

// --- the server ----------------------------------------------------------------------------------

struct server {
    const struct speech *speech;
    int listener;
    uint16_t port;
    SSL_CTX *context;
    struct visit *visits; // one for each connection, in the order in which they were opened
    pthread_t thread;
};

static int choose_alpn(SSL *tls, const unsigned char **out, unsigned char *out_bytes,
                       const unsigned char *in, unsigned in_bytes, void *server)
{
    const char *alpn = ((struct server *)server)->speech->alpn;
    (void)tls, (void)in, (void)in_bytes;
    if (!alpn)
        return SSL_TLSEXT_ERR_NOACK;
    *out = (const unsigned char *)alpn;
    *out_bytes = (unsigned char)strlen(alpn);
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_context(struct server *server)
{
    SSL_CTX *context = certified_context();
    SSL_CTX_set_alpn_select_cb(context, choose_alpn, server);
    return context;
}

static void note_record(int is_sent, int version, int type, const void *bytes, size_t count,
                        SSL *tls, void *argument)
{
    struct visit *visit = argument;
    const unsigned char *header = bytes;
    (void)version, (void)tls;
    if (is_sent || type != SSL3_RT_HEADER || count != 5)
        return;
    visit->record.begin = visit->wire;
    visit->record.end = visit->wire += 5 + ((size_t)header[3] << 8 | header[4]);
}

static void take_requests(const struct speech *speech, struct visit *visit)
{
    static _Thread_local char answers[1 << 16];
    size_t said = 0, at = 0, bytes;
    uint32_t stream;
    bool any = false;
    while ((bytes = speech->request(visit->text + at, visit->used - at, &stream))) {
        if (stream) {
            any = true;
            assert_true(visit->count < sizeof visit->requests / sizeof *visit->requests);
            visit->requests[visit->count++] =
                (struct place){visit->of[at].begin, visit->of[at + bytes - 1].end};
        }
        said += speech->answer(visit->text + at, stream, answers + said);
        at += bytes;
    }
    visit->records += any;
    visit->used -= at;
    memmove(visit->text, visit->text + at, visit->used);
    memmove(visit->of, visit->of + at, visit->used * sizeof *visit->of);
    if (said)
        SSL_write(visit->tls, answers, (int)said);
}

static void *serve(void *argument)
{
    struct server *server = argument;
    for (int i = 0; i < CONNECTIONS; i++) {
        struct visit *visit = &server->visits[i];
        visit->fd = accept(server->listener, NULL, NULL);
        // Else a reply waits for the client to acknowledge the one before, which takes its time.
        const int on = 1;
        setsockopt(visit->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        visit->tls = SSL_new(server->context);
        SSL_set_fd(visit->tls, visit->fd);
        SSL_set_msg_callback(visit->tls, note_record);
        SSL_set_msg_callback_arg(visit->tls, visit);
    }
    // One after the other, the last first: the load must not wait for another before it.
    for (int i = CONNECTIONS - 1; i >= 0; i--)
        if (SSL_accept(server->visits[i].tls) != 1)
            return NULL;
    for (bool open = true; open;) {
        fd_set ready;
        int most = 0;
        FD_ZERO(&ready);
        open = false;
        for (int i = 0; i < CONNECTIONS; i++) {
            struct visit *visit = &server->visits[i];
            if (visit->fd < 0)
                continue;
            FD_SET(visit->fd, &ready);
            most = visit->fd > most ? visit->fd : most;
            open = true;
        }
        if (!open || select(most + 1, &ready, NULL, NULL, NULL) <= 0)
            break;
        for (int i = 0; i < CONNECTIONS; i++) {
            struct visit *visit = &server->visits[i];
            if (visit->fd < 0 || !FD_ISSET(visit->fd, &ready))
                continue;
            int count = SSL_read(visit->tls, visit->text + visit->used,
                                 (int)(sizeof visit->text - visit->used));
            if (count <= 0) {
                SSL_free(visit->tls);
                close(visit->fd);
                visit->fd = -1;
                continue;
            }
            for (int k = 0; k < count; k++)
                visit->of[visit->used + (size_t)k] = visit->record;
            visit->used += (size_t)count;
            take_requests(server->speech, visit);
        }
    }
    return NULL;
}

// --- the load ------------------------------------------------------------------------------------

// What is put together: in a closed loop, what the replies that came together made room for; else
// what is due at the same instant, of a schedule of bursts.
static void load(struct server *server, struct workload *workload, bool closed_loop,
                 struct engine_result *result)
{
    const struct distribution arrivals = {
        .kind = DISTRIBUTION_BIMODAL, .first = 0, .second = 1, .third = 0.2};
    const uint64_t burst_ns = 250000000;
    struct error err = {0};
    struct schedule schedule;
    struct server_address address;
    const struct tls_settings tls = {.on = true, .insecure = true};
    server->listener = listen_anywhere(&server->port);
    server->context = make_context(server);
    server->visits = calloc(CONNECTIONS, sizeof *server->visits);
    assert_non_null(server->visits);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
    resolve(server->port, &address);
    assert_int_equal(closed_loop
                         ? schedule_draw_order(workload, REQUESTS_MOST, 3, &schedule, &err)
                         : schedule_draw(workload, &arrivals, RATE, burst_ns, 3, &schedule, &err),
                     0);
    const struct engine_settings settings = {.server = &address,
                                             .tls = &tls,
                                             .workload = workload,
                                             .connections = CONNECTIONS,
                                             .depth = closed_loop ? DEPTH : REQUESTS_MOST,
                                             .stamps = STAMP_MODE_USER,
                                             .sleeps = true,
                                             .closed_loop = closed_loop,
                                             .requests_max = REQUESTS_MOST,
                                             .duration_ns = closed_loop ? 60000000000u : burst_ns,
                                             .timeout_ns = patient_ms * 1000000};
    if (engine_run(&settings, &schedule, result, &err) < 0)
        fail_msg("%s", err.text);
    schedule_free(&schedule);
    pthread_join(server->thread, NULL);
    close(server->listener);
    SSL_CTX_free(server->context);
}

// Of its connection a sample is the next that the server saw, and where the server saw it.
static void check_places(const struct server *server, const struct engine_result *result)
{
    size_t next[CONNECTIONS] = {0};
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        const uint32_t at = sample->connection - 1;
        assert_true(sample_is_answered(sample));
        assert_true(at < CONNECTIONS && next[at] < server->visits[at].count);
        const struct place place = server->visits[at].requests[next[at]++];
        assert_int_equal(sample->request_begin, place.begin);
        assert_int_equal(sample->request_end, place.end);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        assert_int_equal(next[i], server->visits[i].count);
}

static uint64_t records_of(const struct server *server)
{
    uint64_t records = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        records += server->visits[i].records;
    return records;
}

// What left a connection in one call lies in one record: all of it is short.
static void check_calls(const struct engine_result *result)
{
    const struct sample *last[CONNECTIONS] = {NULL};
    size_t together = 0;
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i], **before = &last[sample->connection - 1];
        if (*before && (*before)->send_tsc == sample->send_tsc) {
            together++;
            assert_int_equal(sample->request_end, (*before)->request_end);
        }
        *before = sample;
    }
    assert_true(together > 0);
}

static void check_records(bool closed_loop)
{
    for (size_t i = 0; i < sizeof speeches / sizeof *speeches; i++) {
        struct workload workload;
        struct engine_result result;
        struct error err;
        struct server server = {.speech = &speeches[i]};
        gets_only(&workload);
        assert_int_equal(
            workload_set_protocol(&workload, protocol_find(speeches[i].protocol), &err), 0);
        load(&server, &workload, closed_loop, &result);
        check_places(&server, &result);
        print_message("%s: %llu requests in %llu records\n", speeches[i].protocol,
                      (unsigned long long)result.sample_count,
                      (unsigned long long)records_of(&server));
        check_calls(&result);
        if (closed_loop) {
            assert_int_equal(result.sample_count, REQUESTS_MOST);
            assert_true(records_of(&server) * DEPTH / 2 < REQUESTS_MOST);
        }
        engine_result_free(&result);
        free(server.visits);
    }
}

static void what_leaves_together_is_one_record(void **state)
{
    (void)state;
    check_records(true);
}

// Connections that take turns within a round have one record each in it, not one a turn.
static void what_is_due_together_is_one_record_a_connection(void **state)
{
    (void)state;
    check_records(false);
}

// Of 8 KiB at most; what is longer has one of its own, or several.
static void long_requests_have_records_of_their_own(void **state)
{
    struct workload workload;
    struct engine_result result;
    struct server server = {.speech = &speeches[0]};
    (void)state;
    gets_only(&workload);
    workload.mix[WORKLOAD_SET] = 1;
    workload.value_size_bytes =
        (struct distribution){.kind = DISTRIBUTION_UNIFORM, .first = 1, .second = LARGE_BYTES};
    load(&server, &workload, true, &result);
    check_places(&server, &result);
    size_t shared = 0, divided = 0;
    for (int c = 0; c < CONNECTIONS; c++) {
        const struct visit *visit = &server.visits[c];
        for (size_t i = 1; i < visit->count; i++) {
            const bool shares = visit->requests[i].end == visit->requests[i - 1].end;
            const uint64_t bytes = visit->requests[i].end - visit->requests[i].begin;
            assert_true(shares ? bytes < 9000
                               : visit->requests[i].begin >= visit->requests[i - 1].end);
            shared += shares;
            divided += bytes > 17000;
        }
    }
    assert_true(shared && divided);
    engine_result_free(&result);
    free(server.visits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_together_is_one_record),
        cmocka_unit_test(what_is_due_together_is_one_record_a_connection),
        cmocka_unit_test(long_requests_have_records_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
