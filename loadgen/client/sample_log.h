// SPDX-License-Identifier: MIT
//
// The sample log: one record per scheduled request, also of those never sent or never answered,
// in the order of their intended times. Files in a run folder: client/samples.tlog (LOG_SAMPLES)
// and client/connections.tlog (LOG_CONNECTIONS, the client's side).
//
// A request is identified by its connection and the bytes [request_begin, request_end) it occupies
// in the client-to-server stream; its reply by [reply_begin, reply_end) in the other direction.
// Over UDP (struct connection.protocol) these count datagrams instead of bytes: the request is the
// n-th one its connection sent, [n, n + 1), and its reply came in some of those received from
// reply_begin up to reply_end, counted in the order they arrived.
#ifndef LOADGEN_CLIENT_SAMPLE_LOG_H
#define LOADGEN_CLIENT_SAMPLE_LOG_H

#include <math.h>
#include <stdint.h>

enum { SAMPLE_LOG_VERSION = 1 };

enum sample_status {
    SAMPLE_ANSWERED = 0,
    SAMPLE_MISS = 1,        // answered: key not found (still a valid latency)
    SAMPLE_ERROR_REPLY = 2, // answered with an error, or with another's answer
    SAMPLE_UNSENT = 3,      // never left: latency is +infinity
    SAMPLE_TIMED_OUT = 4,   // sent, no reply within the time allowed: +infinity
    SAMPLE_LOST = 5,        // its connection ended before the reply; over UDP, no reply came within
                            // the time allowed for each: +infinity
};

enum stamp_source {
    STAMP_NONE = 0,
    STAMP_HARDWARE = 1, // the NIC's, converted into CLOCK_REALTIME (base/nic_stamps.h)
    STAMP_SOFTWARE = 2, // kernel, CLOCK_REALTIME
    STAMP_USER = 3,     // this program, TSC
    STAMP_LEFT_OUT = 4, // none was asked for: not every send call is stamped
};

enum sample_flags {
    // The RX stamp came with a recvmsg that returned several segments: it is the stamp of the last
    // one, and so an upper bound for this reply.
    SAMPLE_RX_COALESCED = 1 << 0,
    // The bits from here on, and sender_high: the number of the load thread that sent it
    // (sample_sender).
    SAMPLE_SENDER = 1 << 1,
};
enum {
    SAMPLE_SENDERS_LOW = 128, // in flags
    SAMPLE_SENDERS = 4096,    // with more senders several share a number
    SAMPLE_SENDERS_HIGH = SAMPLE_SENDERS / SAMPLE_SENDERS_LOW, // in sender_high
    // The uppermost bit of that: the kernel had had no room for it on its connection, as
    // where the server does not read. That it left late is not the load's doing.
    SAMPLE_KEPT_BACK = 1 << 7,
    // The one below, over UDP: it had been given up when the reply was read.
    SAMPLE_READ_LATE = 1 << 6,
    // Below that: it was due while no connection had room for it, and is counted as such.
    SAMPLE_WAITED = 1 << 5,
};

struct sample {
    uint64_t intended_tsc;  // when the schedule wanted it sent
    uint64_t send_tsc;      // before the send call that took its last byte; 0: never sent
    uint64_t sent_tsc;      // after that call; 0: never sent
    uint64_t reply_tsc;     // after the receive call that completed its reply; 0: no reply
    uint64_t tx_ns;         // kernel or NIC TX stamp of its last byte; 0: none came
    uint64_t rx_ns;         // kernel or NIC RX stamp of its reply's last byte; 0: none came
    uint64_t request_begin; // byte offsets in the client-to-server stream (UDP: datagrams)
    uint64_t request_end;
    uint64_t reply_begin; // the same, server-to-client; 0, 0: no reply
    uint64_t reply_end;
    uint32_t connection; // struct connection.id in connections.tlog
    uint8_t operation;   // index into the workload's operations (0 get, 1 set, ...)
    uint8_t sender_high; // of the sender, and what is above; 0 in logs from before
    uint8_t status;      // enum sample_status
    uint8_t flags;       // enum sample_flags, and the sender
    uint8_t tx_source;   // enum stamp_source of tx_ns
    uint8_t rx_source;   // enum stamp_source of rx_ns
    uint16_t in_flight;  // requests already in flight on its connection when it was sent, capped
    uint32_t key;        // index of the key in the key space
};
_Static_assert(sizeof(struct sample) == 96, "the log format is fixed");

// True when a sent request should have a TX stamp and has none.
static inline int sample_lacks_stamp(const struct sample *sample)
{
    return sample->sent_tsc && !sample->tx_ns && sample->tx_source != STAMP_LEFT_OUT;
}

// True when the request was answered, whatever the answer.
static inline int sample_is_answered(const struct sample *sample)
{
    return sample->status <= SAMPLE_ERROR_REPLY;
}

// From the intended time to its reply; infinite: never answered.
static inline double sample_latency_us(const struct sample *sample, double tsc_hz)
{
    return sample_is_answered(sample)
               ? (double)(int64_t)(sample->reply_tsc - sample->intended_tsc) / tsc_hz * 1e6
               : (double)INFINITY;
}

// The number of the load thread that sent it, 0, 1, ..., unique among all agents whose samples are
// pooled; 0 in logs of programs that did not record it. Meaningless for a request that was never
// sent.
static inline unsigned sample_sender(const struct sample *sample)
{
    return (unsigned)sample->sender_high % SAMPLE_SENDERS_HIGH * SAMPLE_SENDERS_LOW +
           sample->flags / SAMPLE_SENDER;
}

static inline void sample_set_sender(struct sample *sample, unsigned sender)
{
    sample->flags =
        (uint8_t)(sample->flags % SAMPLE_SENDER + sender % SAMPLE_SENDERS_LOW * SAMPLE_SENDER);
    sample->sender_high =
        (uint8_t)(sample->sender_high / SAMPLE_SENDERS_HIGH * SAMPLE_SENDERS_HIGH +
                  sender % SAMPLE_SENDERS / SAMPLE_SENDERS_LOW);
}

#endif
