// SPDX-License-Identifier: MIT
#include "base/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { READ_BYTES = 64 << 10 };

void link_init(struct link *link, int in, int out, const struct link_settings *settings)
{
    const int64_t now = monotonic_ms();
    *link =
        (struct link){.in = in, .out = out, .settings = *settings, .heard_ms = now, .beat_ms = now};
    struct link_settings *own = &link->settings;
    own->heartbeat_ms = own->heartbeat_ms ? own->heartbeat_ms : LINK_HEARTBEAT_MS;
    own->silence_ms = own->silence_ms ? own->silence_ms : LINK_SILENCE_MS;
    own->first_word_ms = own->first_word_ms ? own->first_word_ms : own->silence_ms;
    own->queue_bytes = own->queue_bytes ? own->queue_bytes : LINK_QUEUE_BYTES;
    link->out_flags = fcntl(out, F_GETFL);
    fcntl(out, F_SETFL, link->out_flags | O_NONBLOCK);
}

void link_fini(struct link *link)
{
    if (link->settings.take && link->out_flags >= 0)
        fcntl(link->out, F_SETFL, link->out_flags);
    frame_reader_free(&link->reader);
    frame_queue_free(&link->queue);
}

// --- sending -------------------------------------------------------------------------------------

// Writes as much as the descriptor takes now. Errors are ignored here: a peer that stopped reading
// may still have sent its reason, which the next read finds.
static void write_queue(struct link *link)
{
    while (!link->out_failed_ms && frame_queue_left(&link->queue)) {
        ssize_t took =
            write(link->out, link->queue.items + link->queue.begin, frame_queue_left(&link->queue));
        if (took < 0 && errno == EINTR)
            continue;
        if (took < 0 && errno == EAGAIN)
            return;
        if (took < 0)
            link->out_failed_ms = monotonic_ms();
        else
            frame_queue_skip(&link->queue, (size_t)took);
    }
}

static int check_room(const struct link *link, struct error *err)
{
    if (link->state != LINK_UP || link->out_failed_ms)
        return error_set(err, ERROR_FAILED, "%s is gone", link->settings.peer);
    if (!link_has_room(link))
        return error_set(err, ERROR_FAILED,
                         "%s takes nothing of what it is sent: %zu bytes wait; is it stopped?",
                         link->settings.peer, frame_queue_left(&link->queue));
    return 0;
}

int link_send_json(struct link *link, const json_t *object, struct error *err)
{
    int result = check_room(link, err);
    if (result == 0)
        result = frame_append_json(&link->queue, object, err);
    write_queue(link);
    return result;
}

int link_send_bytes(struct link *link, const void *bytes, size_t count, struct error *err)
{
    int result = check_room(link, err);
    if (result == 0)
        result = frame_append_bytes(&link->queue, bytes, count, err);
    write_queue(link);
    return result;
}

int link_send_new(struct link *link, json_t *message, struct error *err)
{
    int result = link_send_json(link, message, err);
    json_decref(message);
    return result;
}

bool link_has_room(const struct link *link)
{
    return frame_queue_left(&link->queue) < link->settings.queue_bytes;
}

bool link_is_flushed(const struct link *link)
{
    return frame_queue_left(&link->queue) == 0;
}

bool link_flush(struct link *link, int timeout_ms)
{
    const int64_t until_ms = monotonic_ms() + timeout_ms;
    for (write_queue(link); !link_is_flushed(link) && !link->out_failed_ms; write_queue(link)) {
        struct pollfd room = {.fd = link->out, .events = POLLOUT};
        int64_t left_ms = until_ms - monotonic_ms();
        if (left_ms <= 0)
            return false;
        poll(&room, 1, (int)left_ms);
    }
    return link_is_flushed(link);
}

// Data that is already queued is as good a sign of life.
static void heartbeat_queue(struct link *link, int64_t now)
{
    struct error ignored; // out of memory: the next one may be sent
    link->beat_ms = now;
    if (link_is_flushed(link))
        frame_append_heartbeat(&link->queue, &ignored);
    write_queue(link);
}

// --- receiving -----------------------------------------------------------------------------------

static int take_frames(struct link *link)
{
    struct frame frame;
    int result;
    while ((result = frame_reader_next(&link->reader, &frame, &link->err)) == 1) {
        int taken = frame_is_heartbeat(&frame)
                        ? 0
                        : link->settings.take(link->settings.context, &frame, &link->err);
        json_decref(frame.json);
        if (taken < 0)
            return taken;
    }
    if (result == 0)
        return 0;
    return error_prefix(&link->err, "%s", link->settings.peer);
}

static void read_once(struct link *link)
{
    char bytes[READ_BYTES];
    ssize_t got = read(link->in, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got < 0) {
        error_set_errno(&link->err, ERROR_FAILED, "cannot hear %s", link->settings.peer);
        link->state = LINK_FAILED;
    } else if (got == 0) {
        error_set(&link->err, ERROR_FAILED, "%s is gone", link->settings.peer);
        link->state = LINK_CLOSED;
    } else {
        link->heard = true;
        link->heard_ms = monotonic_ms();
        if (frame_reader_feed(&link->reader, bytes, (size_t)got, &link->err) < 0 ||
            take_frames(link) < 0)
            link->state = LINK_FAILED;
    }
}

// --- rounds --------------------------------------------------------------------------------------

static int64_t silence_allowed(const struct link *link)
{
    return link->heard ? link->settings.silence_ms : link->settings.first_word_ms;
}

static int64_t deadline_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int link_watch(const struct link *link, struct pollfd ready[2])
{
    bool up = link->state == LINK_UP;
    bool writes = up && !link->out_failed_ms && !link_is_flushed(link);
    ready[0] = (struct pollfd){.fd = up ? link->in : -1, .events = POLLIN};
    ready[1] = (struct pollfd){.fd = writes ? link->out : -1, .events = POLLOUT};
    if (!up)
        return INT_MAX;
    int64_t next = deadline_earlier(link->beat_ms + link->settings.heartbeat_ms,
                                    link->heard_ms + silence_allowed(link) + 1);
    if (link->out_failed_ms)
        next = deadline_earlier(next, link->out_failed_ms + LINK_LAST_WORDS_MS);
    int64_t left_ms = next - monotonic_ms();
    return left_ms < 0 ? 0 : (int)deadline_earlier(left_ms, INT_MAX);
}

void link_serve(struct link *link, const struct pollfd ready[2])
{
    if (link->state != LINK_UP)
        return;
    if (ready[1].revents)
        write_queue(link);
    if (ready[0].revents)
        read_once(link);
    int64_t now = monotonic_ms();
    bool may_blame = link->state == LINK_UP && !ready[0].revents; // else there may be more to read
    if (may_blame && link->out_failed_ms && now - link->out_failed_ms >= LINK_LAST_WORDS_MS) {
        error_set(&link->err, ERROR_FAILED, "%s is gone", link->settings.peer);
        link->state = LINK_CLOSED;
    } else if (may_blame && now - link->heard_ms > silence_allowed(link)) {
        error_set(&link->err, ERROR_FAILED,
                  "%s is silent: nothing has come for %s; is its process stopped, or its host "
                  "not to be reached?",
                  link->settings.peer, TEXT_NS(1e6 * (double)silence_allowed(link)));
        link->state = LINK_SILENT;
    }
    if (link->state == LINK_UP && now - link->beat_ms >= link->settings.heartbeat_ms)
        heartbeat_queue(link, now);
}

void link_poll(struct link *const *links, size_t count, struct pollfd *others, size_t other_count,
               int timeout_ms)
{
    struct pollfd ready[2 * LINK_POLL_LINKS + LINK_POLL_OTHERS];
    int wait_ms = timeout_ms < 0 ? INT_MAX : timeout_ms;
    assert(count <= LINK_POLL_LINKS && other_count <= LINK_POLL_OTHERS);
    for (size_t i = 0; i < count; i++) {
        int link_ms = link_watch(links[i], &ready[2 * i]);
        wait_ms = link_ms < wait_ms ? link_ms : wait_ms;
    }
    if (other_count)
        memcpy(&ready[2 * count], others, other_count * sizeof *others);
    if (poll(ready, 2 * count + other_count, wait_ms == INT_MAX ? -1 : wait_ms) <= 0)
        for (size_t i = 0; i < 2 * count + other_count; i++)
            ready[i].revents = 0;
    if (other_count)
        memcpy(others, &ready[2 * count], other_count * sizeof *others);
    for (size_t i = 0; i < count; i++)
        link_serve(links[i], &ready[2 * i]);
}
