// SPDX-License-Identifier: MIT
//
// Kernel time stamps at the client's sockets (SO_TIMESTAMPING_NEW; Linux's
// Documentation/networking/timestamping.rst). RX stamps come as control messages beside the data;
// TX stamps come back on the socket's error queue and name, in ee_data, the last byte of the send
// call they belong to, counted from where the option was set (SOF_TIMESTAMPING_OPT_ID_TCP).
//
// A stamp that never comes costs a counter, never a wait.
#ifndef LOADGEN_CLIENT_STAMPS_H
#define LOADGEN_CLIENT_STAMPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/client/stamp_mode.h"

// Which send calls have TX stamps.
enum stamped_sends {
    STAMPED_ALL,
    STAMPED_ASKED, // those of client_stamps_send
};

// Turns RX and TX software stamps on, with `hardware` the NIC's beside them. Call before the first
// byte is sent, so that byte 0 of the connection is byte 0 of the stamps. ERROR_FAILED where the
// kernel has no such stamps.
int client_stamps_enable(int socket_fd, bool hardware, enum stamped_sends sends, struct error *err);

// As send(2) on a stream, with a TX stamp of the kernel's (timestamping.rst, 1.3.4).
ssize_t client_stamps_send(int socket_fd, const char *bytes, size_t count, int flags);

// Tries it on a TCP socket: 0, or ERROR_FAILED with the reason.
int client_stamps_supported(int socket_fd, struct error *err);

enum { STAMP_CONTROL_BYTES = 256, STAMP_BATCH = 32 };

struct kernel_stamp {
    uint64_t ns; // CLOCK_REALTIME of STAMP_SOFTWARE, the NIC's clock of STAMP_HARDWARE
    enum stamp_source source;
};

// The RX stamp in a received message's control data, preferring the NIC's to the kernel's; {0}:
// none.
struct kernel_stamp client_stamps_receive(struct msghdr *message);

// One TX stamp read from the error queue.
struct tx_stamp {
    uint32_t last_byte; // low 32 bits of the offset of the send call's last byte
    struct kernel_stamp at;
};

// Reads a TX stamp from a message of the error queue. False: the message is something else.
bool client_stamps_parse_error(struct msghdr *message, struct tx_stamp *stamp);

// A send call whose stamp has not come yet, and the requests whose last byte it took: the slots
// [first_slot, first_slot + requests) of its connection.
struct stamp_wait {
    uint64_t last_byte;
    uint64_t first_slot;
    uint32_t requests;
    bool stamped;      // it waits for nothing more
    bool half_stamped; // stamped by the kernel; the NIC's stamp is still to come
};

// Send calls that wait for their stamps, oldest first. On overflow the oldest is given up.
enum { STAMP_WAITS = 256 };
struct stamp_waits {
    struct stamp_wait items[STAMP_WAITS];
    uint64_t first, next; // sequence numbers; items[n % STAMP_WAITS]
    uint64_t oldest_tsc;  // when the oldest of a list that had been empty was added
    // Since the error queue was last seen empty: number of send calls; and the first slot used
    // after that.
    uint32_t untaken;
    uint64_t untaken_slot;
};

// How many send calls wait.
static inline uint32_t stamp_waits_count(const struct stamp_waits *waits)
{
    return (uint32_t)(waits->next - waits->first);
}

void stamp_waits_push(struct stamp_waits *waits, uint64_t last_byte, uint64_t first_slot,
                      uint32_t requests, uint64_t now_tsc);

// The send call that the stamp belongs to, or NULL: no waiting one. Valid until the next push.
// Unless it is the `last` stamp of its bytes, the send call stays in the list for another one.
const struct stamp_wait *stamp_waits_match(struct stamp_waits *waits, uint32_t last_byte,
                                           bool last);

// What a stamp is that no waiting send call has, as far as the latest STAMP_WAITS of them say.
enum stamp_fate {
    STAMP_UNKNOWN, // of no send call
    STAMP_LATE,    // of one that was given up
    STAMP_DOUBLE,  // of one that had its stamp: its bytes were sent again
};
enum stamp_fate stamp_waits_fate(const struct stamp_waits *waits, uint32_t last_byte, bool last);

// Stops waiting for slots before `slot`, which are about to be used again.
void stamp_waits_forget_before(struct stamp_waits *waits, uint64_t slot);

// Records that the error queue was seen empty; next_slot is the first that no request has used.
void stamp_waits_note_empty(struct stamp_waits *waits, uint64_t next_slot);

// True when stamps must be read now: before the stamps on the error queue fill the socket's receive
// buffer, which replies share with them, and before half of the slots that their requests wait in
// are used again. It counts what may be on the queue, not what waits for it, so stamps that never
// come do not cause more reads.
bool stamp_waits_urgent(const struct stamp_waits *waits, uint64_t next_slot, uint64_t slots);

// Room to read STAMP_BATCH stamps with one recvmmsg; one for all connections.
struct stamp_reader {
    struct mmsghdr messages[STAMP_BATCH];
    struct tx_stamp stamps[STAMP_BATCH];
    char control[STAMP_BATCH][STAMP_CONTROL_BYTES] __attribute__((aligned(16)));
};
void stamp_reader_init(struct stamp_reader *reader);

// Reads up to STAMP_BATCH messages from the error queue without waiting. Returns how many it read;
// *stamps of them, in reader->stamps, were TX stamps.
int stamp_reader_take(struct stamp_reader *reader, int socket_fd, unsigned *stamps);

#endif
