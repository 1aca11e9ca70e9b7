// SPDX-License-Identifier: MIT
#include "loadgen/client/client_datagram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/tsc.h"
#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_socket.h"
#include "workloads/protocols/memcached_udp.h"

enum {
    SEND_BATCH = 64,
    RECEIVE_BATCH = 32,
    READS_AT_ONCE = 16, // then the other connections have their turn
    ASSEMBLIES = 64,    // replies of several datagrams being assembled at the same time
    REPLY_SLACK = 1024, // of a reply, in addition to its value
    LENGTH_BYTES = DATAGRAM_OVERHEAD - UDP_FRAME_BYTES,
};

struct assembly {
    struct udp_assembly reply;
    const struct client_connection *connection; // NULL: free
    uint64_t number;                            // id of the request it answers
    uint64_t begin;                             // index of the first datagram of it that arrived
    uint64_t touched;                           // parts that the reader had had by its last one
};

struct datagram_reader {
    struct mmsghdr messages[RECEIVE_BATCH];
    struct iovec buffers[RECEIVE_BATCH];
    char control[RECEIVE_BATCH][STAMP_CONTROL_BYTES] __attribute__((aligned(16)));
    struct assembly assemblies[ASSEMBLIES];
    unsigned under_way; // number of those
    uint64_t parts;     // that came so far
};

struct datagram_reader *datagram_reader_new(char *buffer, size_t bytes, size_t reply_bytes)
{
    struct datagram_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    size_t each = bytes / RECEIVE_BATCH;
    for (unsigned i = 0; i < RECEIVE_BATCH; i++) {
        reader->buffers[i] = (struct iovec){buffer + i * each, each};
        reader->messages[i].msg_hdr =
            (struct msghdr){.msg_iov = &reader->buffers[i], .msg_iovlen = 1};
    }
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        if (udp_assembly_init(&reader->assemblies[i].reply, reply_bytes + REPLY_SLACK) < 0) {
            datagram_reader_free(reader);
            return NULL;
        }
    }
    return reader;
}

void datagram_reader_free(struct datagram_reader *reader)
{
    if (!reader)
        return;
    for (unsigned i = 0; i < ASSEMBLIES; i++)
        udp_assembly_fini(&reader->assemblies[i].reply);
    free(reader);
}

static void free_assembly(struct datagram_reader *reader, struct assembly *assembly)
{
    if (!assembly || !assembly->connection)
        return;
    assembly->connection = NULL;
    reader->under_way--;
}

// Partial replies that came through the old socket no longer count.
static void end_datagrams(struct client_connection *connection, int error)
{
    struct datagram_reader *reader = connection->context->datagrams;
    for (unsigned i = 0; i < ASSEMBLIES; i++)
        if (reader->assemblies[i].connection == connection)
            free_assembly(reader, &reader->assemblies[i]);
    connection_end(connection, LOSS_OTHER, strerror(error));
}

// --- out -----------------------------------------------------------------------------------------

size_t datagram_put(struct client_connection *connection, const struct request *request)
{
    char *at = connection->out + connection->out_end;
    size_t room = connection->out_bytes - connection->out_end - DATAGRAM_OVERHEAD;
    size_t bytes = connection->context->protocol->encode(request, at + DATAGRAM_OVERHEAD, room);
    uint32_t length = (uint32_t)(UDP_FRAME_BYTES + bytes);
    memcpy(at, &length, LENGTH_BYTES);
    udp_frame_write(at + LENGTH_BYTES, (uint16_t)request->number);
    return LENGTH_BYTES + length;
}

static void set_expiry(struct client_connection *connection, uint64_t ticks)
{
    double us = (double)ticks / connection->context->ticks_per_us;
    const struct timeval wait = {(time_t)(us / 1e6), (suseconds_t)us % 1000000 + 1};
    connection->expiry_set = event_add(connection->timer, &wait) == 0;
}

static void mark_sent(struct client_connection *connection, unsigned count, uint64_t before,
                      uint64_t after)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t number = connection->sent++;
        struct sample *sample = connection_sample(connection, number);
        sample->send_tsc = before;
        sample->sent_tsc = after;
        sample->status = SAMPLE_TIMED_OUT; // until its reply comes
        if (connection->waits)
            stamp_waits_push(connection->waits, number, number, 1, after);
    }
    connection->bytes_sent = connection->sent;
    if (!connection->expiry_set)
        set_expiry(connection, connection->context->timeout_tsc);
}

// Fills `messages` with the requests in the output buffer. Returns how many.
static unsigned messages_gather(struct client_connection *connection, struct mmsghdr *messages,
                                struct iovec *pieces)
{
    unsigned count = 0;
    for (size_t at = connection->out_begin; at < connection->out_end && count < SEND_BATCH;
         count++) {
        uint32_t length;
        memcpy(&length, connection->out + at, LENGTH_BYTES);
        pieces[count] = (struct iovec){connection->out + at + LENGTH_BYTES, length};
        messages[count].msg_hdr = (struct msghdr){.msg_iov = &pieces[count], .msg_iovlen = 1};
        at += LENGTH_BYTES + length;
    }
    return count;
}

void datagram_flush(struct client_connection *connection)
{
    struct mmsghdr messages[SEND_BATCH];
    struct iovec pieces[SEND_BATCH];
    connection->blocked = false;
    while (connection->out_begin < connection->out_end) {
        unsigned count = messages_gather(connection, messages, pieces);
        uint64_t before = tsc_now();
        int sent = sendmmsg(connection->socket_fd, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
        // an error of an earlier datagram; this call has cleared it
        if (sent < 0 && errno == ECONNREFUSED) {
            connection->context->counts->datagrams_refused++;
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) {
            connection->blocked = true;
            return;
        }
        if (sent < 0) {
            end_datagrams(connection, errno);
            return;
        }
        mark_sent(connection, (unsigned)sent, before, tsc_now());
        for (int i = 0; i < sent; i++)
            connection->out_begin += LENGTH_BYTES + pieces[i].iov_len;
    }
    connection->out_begin = connection->out_end = 0;
}

// --- in ------------------------------------------------------------------------------------------

static struct assembly *find_assembly(struct client_connection *connection, uint64_t number)
{
    struct datagram_reader *reader = connection->context->datagrams;
    for (unsigned i = 0; i < ASSEMBLIES && reader->under_way; i++)
        if (reader->assemblies[i].connection == connection &&
            reader->assemblies[i].number == number)
            return &reader->assemblies[i];
    return NULL;
}

// A free one; else that which has waited for its next part for longest: most likely that part was
// lost, and what is lost must not keep the replies that are not from being put together.
static struct assembly *room_for_assembly(struct connection_context *context)
{
    struct datagram_reader *reader = context->datagrams;
    struct assembly *oldest = &reader->assemblies[0];
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *assembly = &reader->assemblies[i];
        if (!assembly->connection)
            return assembly;
        if (assembly->touched < oldest->touched)
            oldest = assembly;
    }
    context->counts->datagrams_unassembled += oldest->reply.received;
    free_assembly(reader, oldest);
    return oldest;
}

static struct assembly *make_assembly(struct client_connection *connection, uint64_t number,
                                      uint16_t count)
{
    struct assembly *assembly = room_for_assembly(connection->context);
    assembly->connection = connection;
    assembly->number = number;
    assembly->begin = connection->bytes_received - 1;
    udp_assembly_begin(&assembly->reply, count);
    connection->context->datagrams->under_way++;
    return assembly;
}

static void end_assembly(struct client_connection *connection, uint64_t number)
{
    free_assembly(connection->context->datagrams, find_assembly(connection, number));
}

static void take_whole(struct client_connection *connection, uint64_t number, uint64_t begin,
                       const struct udp_piece *pieces, size_t count, const struct arrival *arrival)
{
    struct reply reply;
    udp_reply_parse(connection->context->protocol, &connection->parser, number, pieces, count,
                    &reply);
    reply.begin = begin;
    reply.end = connection->bytes_received;
    end_assembly(connection, number);
    connection_take_reply(connection, number, &reply, arrival);
}

// Handles one datagram of a reply of several.
static void take_part(struct client_connection *connection, uint64_t number,
                      const struct udp_frame *frame, const char *datagram, size_t bytes,
                      const struct arrival *arrival)
{
    struct connection_counts *counts = connection->context->counts;
    struct assembly *assembly = find_assembly(connection, number);
    if (!assembly)
        assembly = make_assembly(connection, number, frame->count);
    assembly->touched = ++connection->context->datagrams->parts;
    switch (udp_assembly_add(&assembly->reply, frame, datagram, bytes)) {
    case UDP_UNDER_WAY:
        return;
    case UDP_AGAIN:
        counts->datagrams_surplus++;
        return;
    case UDP_WHOLE:
        take_whole(connection, number, assembly->begin, assembly->reply.pieces, frame->count,
                   arrival);
        return;
    case UDP_IMPOSSIBLE:
        take_whole(connection, number, assembly->begin, NULL, 0, arrival); // malformed
        return;
    }
}

// Takes note of a reply to a request that was given up: the server did answer, too late. Of a reply
// in several datagrams the first counts. Who copies the sample meanwhile (sample_journal.h) has it
// without.
static void note_late(struct client_connection *connection, const struct udp_frame *frame)
{
    uint64_t back = (uint16_t)((uint16_t)connection->sent - frame->id - 1);
    uint64_t number = connection->sent - back - 1;
    if (frame->sequence != 0 || back >= connection->sent ||
        connection->put - number > connection->slot_mask + 1 ||
        connection->settled[number & connection->slot_mask] != SLOT_GIVEN_UP)
        return;
    connection->context->counts->datagrams_late++;
    if (connection_holds(connection, number))
        __atomic_fetch_or(&connection_sample(connection, number)->sender_high, SAMPLE_READ_LATE,
                          __ATOMIC_RELAXED);
}

static void take_datagram(struct client_connection *connection, struct mmsghdr *message,
                          const struct arrival *arrival)
{
    struct connection_counts *counts = connection->context->counts;
    const char *datagram = message->msg_hdr.msg_iov->iov_base;
    size_t bytes = message->msg_len;
    struct udp_frame frame;
    connection->bytes_received++;
    if ((message->msg_hdr.msg_flags & MSG_TRUNC) || !udp_frame_read(datagram, bytes, &frame)) {
        counts->datagrams_malformed++;
        return;
    }
    uint64_t number = connection->answered + (uint16_t)(frame.id - (uint16_t)connection->answered);
    if (number >= connection->sent || !connection_awaits(connection, number)) {
        counts->datagrams_surplus++;
        note_late(connection, &frame);
        return;
    }
    if (frame.count > 1) {
        take_part(connection, number, &frame, datagram, bytes, arrival);
        return;
    }
    const struct udp_piece whole = {datagram + UDP_FRAME_BYTES, bytes - UDP_FRAME_BYTES};
    take_whole(connection, number, connection->bytes_received - 1, &whole, 1, arrival);
}

// Reads one batch. Returns how many datagrams it held; -1: errno says why there were none.
static int read_batch(struct client_connection *connection)
{
    struct connection_context *context = connection->context;
    struct datagram_reader *reader = context->datagrams;
    for (unsigned i = 0; i < RECEIVE_BATCH && context->kernel_stamps; i++) {
        reader->messages[i].msg_hdr.msg_control = reader->control[i];
        reader->messages[i].msg_hdr.msg_controllen = STAMP_CONTROL_BYTES;
    }
    int count =
        recvmmsg(connection->socket_fd, reader->messages, RECEIVE_BATCH, MSG_DONTWAIT, NULL);
    struct arrival arrival = {.tsc = tsc_now()};
    if (count < 0 && errno == ECONNREFUSED) {
        context->counts->datagrams_refused++;
        return RECEIVE_BATCH; // there may be more to read
    }
    for (int i = 0; i < count; i++) {
        if (context->kernel_stamps)
            arrival.rx = client_stamps_receive(&reader->messages[i].msg_hdr);
        take_datagram(connection, &reader->messages[i], &arrival);
    }
    return count;
}

bool datagram_receive(struct client_connection *connection)
{
    bool any = false;
    for (unsigned i = 0; connection_is_open(connection); i++) {
        int count = read_batch(connection);
        any |= count > 0;
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            end_datagrams(connection, errno);
        if (count < RECEIVE_BATCH)
            break; // the next datagram triggers the next edge
        if (i + 1 == READS_AT_ONCE) {
            connection->context->read_again(connection->context->owner, connection);
            break;
        }
    }
    return any;
}

// --- requests that are not answered in time ------------------------------------------------------

static void expire_requests(struct client_connection *connection)
{
    uint64_t now = tsc_now(), limit = connection->context->timeout_tsc;
    connection->expiry_set = false;
    while (connection->answered < connection->sent) {
        struct sample *oldest = connection_sample(connection, connection->answered);
        uint64_t age = now - oldest->sent_tsc;
        if (oldest->sent_tsc < now && age >= limit) {
            oldest->status = SAMPLE_LOST;
            connection->context->counts->lost[LOSS_UNANSWERED]++;
            end_assembly(connection, connection->answered);
            uint8_t *slot = &connection->settled[connection->answered & connection->slot_mask];
            connection_settle(connection, connection->answered);
            *slot = SLOT_GIVEN_UP;
            continue;
        }
        set_expiry(connection, oldest->sent_tsc < now ? limit - age : limit);
        break;
    }
    if (connection->blocked)
        datagram_flush(connection);
}

void datagram_take_rest(struct client_connection *connection)
{
    enum { MOST_BATCHES = 65536 }; // a server may go on for ever
    for (uint64_t number = connection->answered; number < connection->sent; number++)
        if (connection_awaits(connection, number))
            connection->settled[number & connection->slot_mask] = SLOT_GIVEN_UP;
    for (unsigned i = 0; i < MOST_BATCHES && connection_is_open(connection); i++)
        if (read_batch(connection) <= 0)
            break;
}

void datagram_timer(evutil_socket_t unused, short what, void *argument)
{
    struct client_connection *connection = argument;
    if (connection->state == CONNECTION_OPEN) {
        connection->context->progress = true;
        expire_requests(connection);
    } else {
        connection_retry(unused, what, argument);
    }
}
