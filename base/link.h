// SPDX-License-Identifier: MIT
//
// A link to a process that may die, hang, or be behind a network that is down: frames
// (base/frame.h) over two descriptors, heartbeats both ways, and a deadline for the peer's silence.
// A controller and its load agents, and the two ends of a process on a host behind ssh, all keep
// theirs here.
//
// Nothing blocks. What is sent waits in a queue until the descriptor takes it; received frames are
// passed to `take` one by one. The owner waits for many links and for descriptors of its own in one
// loop:
//
//     while (link.state == LINK_UP && !done) {
//         struct pollfd mine[] = {{.fd = signals, .events = POLLIN}};
//         link_poll(links, count, mine, 1, -1);   // one round: waits, reads, writes, heartbeats
//         ...
//     }
//
// A heartbeat goes out every LINK_HEARTBEAT_MS. An owner that does long work must therefore let
// another thread do the rounds (link_watch and link_serve, under a lock that senders take too).
// Silence is judged only after pending input was read: an owner that was held up does not blame its
// peer.
#ifndef BASE_LINK_H
#define BASE_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/frame.h"

enum {
    LINK_HEARTBEAT_MS = 1000, // how often each end sends a sign of life
    // after this long without anything received, the peer counts as dead
    LINK_SILENCE_MS = 5000,
    LINK_LAST_WORDS_MS = 1000, // how long to keep reading from a peer that no longer reads
    // bytes that may wait to be sent; one more frame may be begun below that
    LINK_QUEUE_BYTES = 4 << 20,
    LINK_POLL_LINKS = 64, // at most this many links ...
    LINK_POLL_OTHERS = 8, // ... and descriptors of the owner's, in one link_poll
};

enum link_state {
    LINK_UP,
    LINK_CLOSED, // the peer closed its end; all that came before has been passed on
    LINK_SILENT, // nothing came within the time allowed
    LINK_FAILED, // what came is no frame, or `take` refused it, or a read failed
};

struct link_settings {
    // names the peer in error texts: "the controller", "agent a1"; must outlive the link
    const char *peer;
    // Called for each frame that is no heartbeat. A negative return ends the link: LINK_FAILED with
    // `err`. It may send, and take a reference to frame->json; nothing else of the frame stays
    // valid.
    int (*take)(void *context, const struct frame *frame, struct error *err);
    void *context;
    // 0: the defaults above. The time before the peer's first message may be allowed to be longer.
    int heartbeat_ms, silence_ms, first_word_ms;
    size_t queue_bytes;
};

struct link {
    enum link_state state;
    struct error err; // why the link is no longer up, in words that name the peer
    bool heard;       // anything has been received at all
    int64_t heard_ms; // when something was last received, or the link began (CLOCK_MONOTONIC)

    // Private to base/link.c.
    struct link_settings settings;
    int in, out, out_flags;
    struct frame_reader reader;
    struct frame_queue queue; // queued bytes
    int64_t beat_ms;
    int64_t out_failed_ms; // when the peer was found to have stopped reading; 0: it reads
};

// Begins a link over two descriptors, which stay the owner's and must be open until link_fini.
// `out` is made non-blocking until then, `in` need not be. SIGPIPE must be ignored.
void link_init(struct link *link, int in, int out, const struct link_settings *settings);

// Harmless on a zeroed struct.
void link_fini(struct link *link);

// Queues a frame and writes as much as the descriptor takes. ERROR_FAILED, and nothing is queued:
// the link is not up, or the queue is full (the peer does not read).
int link_send_json(struct link *link, const json_t *object, struct error *err);
int link_send_bytes(struct link *link, const void *bytes, size_t count, struct error *err);

// As link_send_json, and releases the message; a NULL message means out of memory.
int link_send_new(struct link *link, json_t *message, struct error *err);

// Whether another frame may be sent. Owners that pass on a stream stop reading it while this is
// false.
bool link_has_room(const struct link *link);

// Whether everything that was sent has been written.
bool link_is_flushed(const struct link *link);

// Writes queued bytes, for at most timeout_ms. Reads nothing. False: some are still queued.
bool link_flush(struct link *link, int timeout_ms);

// One round over many links and, optionally, descriptors of the owner's, whose revents it sets:
// waits for any of them, for the links' next heartbeat or deadline, or for timeout_ms (-1: no limit
// of its own); then serves each link. Links that are not up are left alone.
void link_poll(struct link *const *links, size_t count, struct pollfd *others, size_t other_count,
               int timeout_ms);

// The two halves of a round for one link, when the owner does the waiting in between. link_watch
// says what to poll for and returns the longest time to wait, in ms; link_serve then reads and
// writes what became possible.
int link_watch(const struct link *link, struct pollfd ready[2]);
void link_serve(struct link *link, const struct pollfd ready[2]);

#endif
