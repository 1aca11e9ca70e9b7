// SPDX-License-Identifier: MIT
//
// A link to a process that may die, hang, or be behind a network that is down: frames
// (base/frame.h) over two descriptors, heartbeats both ways, and a deadline for the peer's silence.
// A controller and its load agents, and the two ends of a process on a host behind ssh, all keep
// theirs here.
//
// Nothing blocks. What is sent waits in a queue until the descriptor takes it; what has come is
// handed out frame by frame. The owner waits for many links and for descriptors of its own in one
// loop:
//
//     while (link.state == LINK_UP && !done) {
//         struct pollfd mine[] = {{.fd = signals, .events = POLLIN}};
//         link_poll(links, count, mine, 1, -1);   // one round: waits, reads, writes, heartbeats
//         ...
//     }
//
// A heartbeat goes out in every LINK_HEARTBEAT_MS, so an owner that does long work lets another
// thread do the rounds (link_watch and link_serve under a lock that the sender takes, too). Silence
// is judged after what has come was read: an owner that was held up does not blame its peer.
#ifndef BASE_LINK_H
#define BASE_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/frame.h"

enum {
    LINK_HEARTBEAT_MS = 1000,   // how often each end says that it lives
    LINK_SILENCE_MS = 5000,     // nothing for so long, and the peer is taken for dead
    LINK_LAST_WORDS_MS = 1000,  // how long a peer that takes nothing any more is listened to
    LINK_QUEUE_BYTES = 4 << 20, // what waits to be sent; one frame more may be begun below that
    LINK_POLL_LINKS = 64,       // most links ...
    LINK_POLL_OTHERS = 8,       // ... and descriptors of the owner's in link_poll
};

enum link_state {
    LINK_UP,
    LINK_CLOSED, // the peer closed its end; all that came before has been handed out
    LINK_SILENT, // nothing came within the time allowed
    LINK_FAILED, // what came is no frame, or `take` refused it, or a read failed
};

struct link_settings {
    const char *peer; // for error texts: "the controller", "agent a1"; outlives the link
    // Takes a frame other than a heartbeat. A negative return ends the link: LINK_FAILED with
    // `err`. It may send, and take a reference to frame->json; nothing else of the frame lasts.
    int (*take)(void *context, const struct frame *frame, struct error *err);
    void *context;
    // 0: as above. Silence before the peer's first word may be allowed to last longer.
    int heartbeat_ms, silence_ms, first_word_ms;
    size_t queue_bytes;
};

struct link {
    enum link_state state;
    struct error err; // why it is not up any more, in words that name the peer
    bool heard;       // anything has come at all
    int64_t heard_ms; // when something last came, or the link began (CLOCK_MONOTONIC)

    // The link's own.
    struct link_settings settings;
    int in, out, out_flags;
    struct frame_reader reader;
    struct frame_queue queue; // to be sent
    int64_t beat_ms;
    int64_t out_failed_ms; // when the peer was found to take nothing more; 0: it does
};

// Begins a link over two descriptors, which stay the owner's and are open until link_fini; `out` is
// made non-blocking until then, `in` need not be. SIGPIPE must be ignored.
void link_init(struct link *link, int in, int out, const struct link_settings *settings);

// Harmless on a zeroed struct.
void link_fini(struct link *link);

// Puts a frame behind those that wait, and writes what the descriptor takes. ERROR_FAILED, and
// nothing is sent: the link is not up, or the queue is full (the peer takes nothing).
int link_send_json(struct link *link, const json_t *object, struct error *err);
int link_send_bytes(struct link *link, const void *bytes, size_t count, struct error *err);

// As link_send_json, and releases the message; NULL is out of memory.
int link_send_new(struct link *link, json_t *message, struct error *err);

// Whether another frame may be sent: for owners that pass on a stream, and stop reading it else.
bool link_has_room(const struct link *link);

// Whether all that was sent is written.
bool link_is_flushed(const struct link *link);

// Writes what waits, for at most timeout_ms. Reads nothing. False: some still waits.
bool link_flush(struct link *link, int timeout_ms);

// One round over many links, and once over descriptors of the owner's, whose revents it sets: waits
// for any of them, for the links' next heartbeat or deadline, or for timeout_ms (-1: no limit of
// its own); then serves each link. Links that are not up are left alone.
void link_poll(struct link *const *links, size_t count, struct pollfd *others, size_t other_count,
               int timeout_ms);

// The two halves of a round of one link, with the wait between them the owner's. link_watch says
// what to poll for and returns for how long at most, in ms; link_serve does what became possible.
int link_watch(const struct link *link, struct pollfd ready[2]);
void link_serve(struct link *link, const struct pollfd ready[2]);

#endif
