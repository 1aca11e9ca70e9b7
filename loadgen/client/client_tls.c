// SPDX-License-Identifier: MIT
#include "loadgen/client/client_tls.h"

#include <assert.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsc.h"
#include "loadgen/client/client_samples.h"
#include "loadgen/client/tls_settings.h"

enum {
    RECORD_BYTES = 16 << 10,
    // Of requests that share a record. A server with a buffer shorter than a record may leave the
    // rest of it unread until another one comes (memcached 1.6.18, whose buffer is of 16 KiB).
    SHARED_BYTES = 8 << 10,
    // Header, nonce, padding and authentication code of the worst suite (TLS 1.2, CBC, SHA-384).
    RECORD_OVERHEAD = 96,
};

struct client_tls {
    SSL *tls; // NULL: between two connections
    SSL_SESSION *session;
    uint64_t began_tsc;
    const char *in; // bytes that came and are not taken yet
    size_t in_count;
    unsigned in_vain;                  // records since data last came
    uint64_t taken;                    // of the wire's stream, since its beginning
    size_t put;                        // behind the output buffer's end
    uint64_t placed;                   // requests that are in sealed records, but for an unended
    uint64_t record_begin, record_end; // on the wire: the last one taken
    uint64_t plain_begin;              // where its bytes begin in the decrypted stream
    uint64_t reply_begin;              // on the wire: of the reply under way in earlier records
};

size_t client_tls_bytes_max(size_t request_bytes)
{
    return request_bytes + (request_bytes / RECORD_BYTES + 1) * RECORD_OVERHEAD;
}

// And so many bytes there have room for so many of requests; rather fewer.
static size_t plain_max(size_t wire_bytes)
{
    const size_t overhead = (wire_bytes / RECORD_BYTES + 1) * RECORD_OVERHEAD;
    return wire_bytes > overhead ? wire_bytes - overhead : 0;
}

// --- what OpenSSL reads from and writes to -------------------------------------------------------

static int wire_read(BIO *bio, char *out, int wanted)
{
    struct client_tls *tls = ((struct client_connection *)BIO_get_data(bio))->tls;
    size_t count = (size_t)wanted < tls->in_count ? (size_t)wanted : tls->in_count;
    BIO_clear_retry_flags(bio);
    if (tls->in_vain > TLS_RECORDS_IN_VAIN)
        return -1;
    if (!count) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, tls->in, count);
    tls->in += count;
    tls->in_count -= count;
    tls->taken += count;
    return (int)count;
}

static int wire_write(BIO *bio, const char *bytes, int count)
{
    struct client_connection *connection = BIO_get_data(bio);
    size_t end = connection->out_end + connection->tls->put;
    BIO_clear_retry_flags(bio);
    if (end + (size_t)count > connection->out_bytes + TLS_SLACK_BYTES) {
        BIO_set_retry_write(bio);
        return -1;
    }
    memcpy(connection->out + end, bytes, (size_t)count);
    connection->tls->put += (size_t)count;
    return count;
}

static long wire_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *client_tls_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
    if (method) {
        BIO_meth_set_read(method, wire_read);
        BIO_meth_set_write(method, wire_write);
        BIO_meth_set_ctrl(method, wire_control);
    }
    return method;
}

// --- handshakes ----------------------------------------------------------------------------------

// What OpenSSL has written besides requests leaves with the next send call.
static void keep_put(struct client_connection *connection)
{
    connection->out_end += connection->tls->put;
    connection->bytes_put += connection->tls->put;
    connection->tls->put = 0;
}

static int no_memory(const struct client_connection *connection, struct error *err)
{
    return error_set(err, ERROR_FAILED, "out of memory for TLS on connection %u", connection->id);
}

int client_tls_begin(struct client_connection *connection, struct error *err)
{
    const struct connection_context *context = connection->context;
    struct client_tls *tls = connection->tls;
    if (!tls)
        tls = connection->tls = calloc(1, sizeof *tls);
    if (!tls)
        return no_memory(connection, err);
    tls->tls = tls_connection_make(context->tls, connection->server);
    BIO *wire = tls->tls ? BIO_new(context->tls_method) : NULL;
    if (!wire)
        return no_memory(connection, err);
    BIO_set_data(wire, connection);
    BIO_set_init(wire, 1);
    SSL_set_bio(tls->tls, wire, wire);
    tls_count_records(tls->tls, &tls->in_vain);
    if (tls->session)
        SSL_set_session(tls->tls, tls->session);
    tls->began_tsc = tsc_now();
    return client_tls_shake(connection, err);
}

static void count_handshake(struct client_connection *connection)
{
    struct connection_counts *counts = connection->context->counts;
    const SSL *tls = connection->tls->tls;
    uint64_t ns = (uint64_t)((double)(tsc_now() - connection->tls->began_tsc) /
                             connection->context->ticks_per_us * 1e3);
    timed_count_note(SSL_session_reused(tls) ? &counts->resumed : &counts->handshakes, ns);
    if (!counts->tls_suite[0])
        snprintf(counts->tls_suite, sizeof counts->tls_suite, "%s, %s", SSL_get_version(tls),
                 SSL_get_cipher_name(tls));
}

// What goes on below TLS is agreed on, where the protocol has a name for it (RFC 9113, 3.3).
static int check_alpn(const struct client_connection *connection, struct error *err)
{
    const char *wanted = connection->context->protocol->alpn;
    const unsigned char *chosen;
    unsigned count;
    SSL_get0_alpn_selected(connection->tls->tls, &chosen, &count);
    if (!wanted || (count == strlen(wanted) && memcmp(chosen, wanted, count) == 0))
        return 0;
    return error_set(
        err, ERROR_INPUT,
        "%s speaks TLS, but does not choose %s in it (ALPN \"%s\"): it is no server of "
        "HTTP/2",
        connection->server->text, connection->context->protocol->name, wanted);
}

int client_tls_shake(struct client_connection *connection, struct error *err)
{
    struct client_tls *tls = connection->tls;
    if (SSL_is_init_finished(tls->tls))
        return 1;
    ERR_clear_error();
    int done = SSL_do_handshake(tls->tls);
    keep_put(connection);
    if (done == 1) {
        if (check_alpn(connection, err) < 0)
            return -(int)err->kind;
        count_handshake(connection);
        return 1;
    }
    if (SSL_get_error(tls->tls, done) == SSL_ERROR_WANT_READ)
        return 0;
    return tls->in_vain > TLS_RECORDS_IN_VAIN
               ? error_set(err, ERROR_FAILED, "%s: no TLS with it: %s", connection->server->text,
                           tls_in_vain)
               : tls_refuse(tls->tls, connection->server, err);
}

void client_tls_close(struct client_connection *connection)
{
    struct client_tls *tls = connection->tls;
    if (!tls->tls || !SSL_is_init_finished(tls->tls))
        return;
    client_tls_seal(connection);
    ERR_clear_error();
    SSL_shutdown(tls->tls);
    keep_put(connection);
}

bool client_tls_is_cut(const struct client_connection *connection)
{
    return connection->tls && connection->secured &&
           !(SSL_get_shutdown(connection->tls->tls) & SSL_RECEIVED_SHUTDOWN);
}

void client_tls_end(struct client_connection *connection)
{
    struct client_tls *tls = connection->tls;
    client_tls_drop(connection);
    if (!tls || !tls->tls)
        return;
    SSL_SESSION *session =
        connection->context->tls_full_handshakes ? NULL : SSL_get1_session(tls->tls);
    if (session && SSL_SESSION_is_resumable(session)) {
        SSL_SESSION_free(tls->session);
        tls->session = session;
    } else {
        SSL_SESSION_free(session);
    }
    // OpenSSL takes a connection that was not closed in order for a reason not to resume it.
    SSL_set_shutdown(tls->tls, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(tls->tls);
    *tls = (struct client_tls){.session = tls->session};
}

void client_tls_free(struct client_connection *connection)
{
    client_tls_end(connection);
    if (connection->tls)
        SSL_SESSION_free(connection->tls->session);
    free(connection->tls);
    connection->tls = NULL;
}

// --- bytes ---------------------------------------------------------------------------------------

void client_tls_feed(struct client_connection *connection, size_t count)
{
    connection->tls->in = connection->context->wire_buffer;
    connection->tls->in_count = count;
}

size_t client_tls_take(struct client_connection *connection, enum connection_loss *loss,
                       const char **why)
{
    const struct connection_context *context = connection->context;
    struct client_tls *tls = connection->tls;
    const struct reply_parser *parser = &connection->parser;
    size_t count = 0;
    *why = NULL;
    if (parser->in_reply && parser->reply_begin >= tls->plain_begin)
        tls->reply_begin = tls->record_begin; // it goes on in the record that comes now
    tls->plain_begin = parser->offset;
    tls->record_begin = tls->record_end;
    ERR_clear_error();
    int read = SSL_read_ex(tls->tls, context->receive_buffer, context->receive_bytes, &count);
    tls->record_end = tls->taken;
    keep_put(connection);
    if (read == 1) {
        tls->in_vain = 0;
        return count;
    }
    switch (SSL_get_error(tls->tls, read)) {
    case SSL_ERROR_WANT_READ:
        tls->record_end = tls->record_begin; // of the next record a part may be there
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        *loss = LOSS_CLOSED;
        *why = "the server closed it";
        return 0;
    default:
        *loss = LOSS_MALFORMED;
        *why = tls->in_vain > TLS_RECORDS_IN_VAIN ? tls_in_vain : tls_last_words();
        return 0;
    }
}

// --- the open record -----------------------------------------------------------------------------

// The output buffer has room, by client_tls_bytes_max and the slack: OpenSSL takes all at once.
static void seal(struct client_connection *connection, const char *bytes, size_t count)
{
    size_t written = 0;
    ERR_clear_error();
    int done = SSL_write_ex(connection->tls->tls, bytes, count, &written);
    assert(done == 1 && written == count);
    (void)done;
    keep_put(connection);
}

// The requests that are put lie in what was sealed from `begin` on, but for what lay in what was
// sealed before, and for what an unended one still has to say.
static void place_requests(struct client_connection *connection, uint64_t begin)
{
    struct client_tls *tls = connection->tls;
    const uint64_t whole = connection->put - connection->unended;
    uint64_t slot = tls->placed > connection->sent ? tls->placed : connection->sent;
    for (; slot < connection->put; slot++) {
        struct sample *sample = connection_sample(connection, slot);
        if (sample->request_begin == UNPLACED)
            sample->request_begin = begin;
        if (sample->request_end == UNPLACED && slot < whole)
            sample->request_end = connection->bytes_put;
    }
    tls->placed = whole;
}

void client_tls_seal(struct client_connection *connection)
{
    struct open_record *record = &connection->context->record;
    if (!connection->unsealed)
        return;
    const uint64_t begin = connection->bytes_put;
    seal(connection, record->bytes, record->count);
    client_tls_drop(connection);
    place_requests(connection, begin);
}

void client_tls_drop(struct client_connection *connection)
{
    if (!connection->unsealed)
        return;
    connection->context->record.of = NULL;
    connection->context->record.count = 0;
    connection->unsealed = 0;
}

char *client_tls_room(struct client_connection *connection, size_t *room)
{
    struct open_record *record = &connection->context->record;
    if (record->of && (record->of != connection || record->count >= SHARED_BYTES))
        client_tls_seal(record->of);
    const size_t wire = connection->out_bytes + TLS_SLACK_BYTES - connection->out_end;
    const size_t plain = plain_max(wire), taken = record->count + RECORD_OVERHEAD;
    *room = plain > taken ? plain - taken : 0;
    if (*room > record->room - record->count)
        *room = record->room - record->count;
    return record->bytes + record->count;
}

void client_tls_join(struct client_connection *connection, size_t count)
{
    struct open_record *record = &connection->context->record;
    const size_t before = record->count;
    if (!count)
        return;
    if (before && before + count > SHARED_BYTES) {
        client_tls_seal(connection);
        memmove(record->bytes, record->bytes + before, count);
    }
    record->of = connection;
    record->count += count;
    connection->unsealed = client_tls_bytes_max(record->count);
}

size_t client_tls_record_room(size_t request_bytes)
{
    return request_bytes + SHARED_BYTES;
}

void client_tls_say(struct client_connection *connection, const char *bytes, size_t count)
{
    client_tls_seal(connection);
    seal(connection, bytes, count);
}

size_t client_tls_put(struct client_connection *connection, const struct request *request)
{
    size_t room;
    char *at = client_tls_room(connection, &room);
    client_tls_join(connection, connection->context->protocol->encode(request, at, room));
    return 0;
}

struct http2_place client_tls_record(const struct client_connection *connection)
{
    return (struct http2_place){connection->tls->record_begin, connection->tls->record_end};
}

void client_tls_place(struct client_connection *connection, struct reply *replies, size_t count)
{
    const struct client_tls *tls = connection->tls;
    for (size_t i = 0; i < count; i++) {
        replies[i].begin =
            replies[i].begin >= tls->plain_begin ? tls->record_begin : tls->reply_begin;
        replies[i].end = tls->record_end;
    }
}
