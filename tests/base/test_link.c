// SPDX-License-Identifier: MIT
//
// A link to a peer that is silent, gone, half gone, talks nonsense or takes nothing: each is found
// out in time and said, nothing blocks, and whoever lives is heard.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/link.h"

enum { BEAT_MS = 20, SILENCE_MS = 200, PATIENCE_MS = 10000, BIG_BYTES = 100000 };

// A link, its peer's ends of the pipes, and what it took.
struct scene {
    struct link link;
    int in[2], out[2]; // in[1] and out[0] are the peer's
    unsigned taken;
    size_t bytes;
    char type[40]; // of the last message
};

static int take(void *context, const struct frame *frame, struct error *err)
{
    struct scene *scene = context;
    const char *type = json_string_value(json_object_get(frame->json, "type"));
    scene->taken++;
    scene->bytes += frame->byte_count;
    if (type && strcmp(type, "refuse") == 0)
        return error_set(err, ERROR_INPUT, "it was refused");
    if (type)
        snprintf(scene->type, sizeof scene->type, "%s", type);
    return 0;
}

static void begin(struct scene *scene, struct link_settings settings)
{
    *scene = (struct scene){.taken = 0};
    assert_int_equal(pipe2(scene->in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(scene->out, O_CLOEXEC), 0);
    settings.peer = "the peer";
    settings.take = take;
    settings.context = scene;
    link_init(&scene->link, scene->in[0], scene->out[1], &settings);
}

static void end(struct scene *scene)
{
    link_fini(&scene->link);
    for (unsigned i = 0; i < 2; i++) {
        close(scene->in[i]);
        close(scene->out[i]);
    }
}

static const struct link_settings quick = {.heartbeat_ms = BEAT_MS, .silence_ms = SILENCE_MS};

// Rounds until the link ends. Returns after how many ms.
static int64_t follow(struct scene *scene)
{
    int64_t began = monotonic_ms();
    struct link *links[] = {&scene->link};
    while (scene->link.state == LINK_UP && monotonic_ms() < began + PATIENCE_MS)
        link_poll(links, 1, NULL, 0, 100);
    return monotonic_ms() - began;
}

static void says(const struct scene *scene, enum link_state state, const char *why)
{
    assert_int_equal(scene->link.state, state);
    if (!strstr(scene->link.err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", scene->link.err.text, why);
}

// What the peer writes.
static void peer_writes(struct scene *scene, const void *bytes, size_t count)
{
    assert_int_equal(write(scene->in[1], bytes, count), count);
}

static void peer_sends(struct scene *scene, const char *type)
{
    struct frame_queue queue = {0};
    struct error err;
    json_t *message = type ? json_pack("{s:s}", "type", type) : json_object();
    assert_int_equal(frame_append_json(&queue, message, &err), 0);
    peer_writes(scene, queue.items, queue.count);
    json_decref(message);
    frame_queue_free(&queue);
}

// What has been sent, as the peer reads it: how many heartbeats, other messages and bytes.
struct heard {
    unsigned beats, messages;
    size_t bytes;
};

static void peer_reads(struct scene *scene, struct frame_reader *reader, struct heard *heard)
{
    char bytes[65536];
    struct frame frame;
    struct error err;
    fcntl(scene->out[0], F_SETFL, O_NONBLOCK);
    for (ssize_t got; (got = read(scene->out[0], bytes, sizeof bytes)) > 0;) {
        assert_int_equal(frame_reader_feed(reader, bytes, (size_t)got, &err), 0);
        while (frame_reader_next(reader, &frame, &err) == 1) {
            heard->beats += frame_is_heartbeat(&frame);
            heard->messages += frame.kind == FRAME_JSON && !frame_is_heartbeat(&frame);
            heard->bytes += frame.byte_count;
            json_decref(frame.json);
        }
    }
}

static void a_silent_peer_is_found_out(void **state)
{
    (void)state;
    enum { TRIES = 20 }; // who does not have its core meanwhile can send no heartbeats
    struct heard heard = {0};
    for (unsigned i = 0; i < TRIES && heard.beats < 2; i++) {
        struct scene scene;
        struct frame_reader reader = {0};
        heard = (struct heard){0};
        begin(&scene, quick);
        int64_t took_ms = follow(&scene);
        says(&scene, LINK_SILENT, "the peer is silent: nothing has come for 200 ms");
        assert_in_range(took_ms, SILENCE_MS, PATIENCE_MS - 1);
        peer_reads(&scene, &reader, &heard);
        assert_true(heard.beats <= took_ms / BEAT_MS + 1);
        frame_reader_free(&reader);
        end(&scene);
    }
    assert_true(heard.beats >= 2); // the peer can see that we live
}

static void heartbeats_keep_a_link(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, quick);
    struct link *links[] = {&scene.link};
    for (int64_t until = monotonic_ms() + 3 * SILENCE_MS; monotonic_ms() < until;) {
        peer_sends(&scene, NULL);
        link_poll(links, 1, NULL, 0, BEAT_MS);
    }
    assert_int_equal(scene.link.state, LINK_UP);
    assert_true(scene.link.heard);
    assert_int_equal(scene.taken, 0); // nobody else is told
    end(&scene);
}

static void the_first_word_may_take_longer(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, (struct link_settings){.heartbeat_ms = BEAT_MS,
                                         .silence_ms = SILENCE_MS,
                                         .first_word_ms = 3 * SILENCE_MS});
    assert_in_range(follow(&scene), 3 * SILENCE_MS, PATIENCE_MS - 1);
    says(&scene, LINK_SILENT, "nothing has come for 600 ms");
    end(&scene);
}

// Held up for longer than the peer may be silent: what lies there is looked at before it is blamed.
static void who_was_held_up_does_not_blame_its_peer(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, quick);
    struct link *links[] = {&scene.link};
    peer_sends(&scene, "late");
    usleep(2 * SILENCE_MS * 1000);
    link_poll(links, 1, NULL, 0, 0);
    assert_int_equal(scene.link.state, LINK_UP);
    assert_string_equal(scene.type, "late");
    end(&scene);
}

static void half_a_frame_is_silence_or_an_end(void **state)
{
    (void)state;
    struct scene scene;
    for (int closes = 0; closes < 2; closes++) {
        begin(&scene, quick);
        peer_sends(&scene, "whole");
        peer_writes(&scene, "\x10\x00\x00\x00J{\"ty", 9);
        if (closes) {
            close(scene.in[1]);
            scene.in[1] = -1;
        }
        follow(&scene);
        says(&scene, closes ? LINK_CLOSED : LINK_SILENT, closes ? "the peer is gone" : "silent");
        assert_int_equal(scene.taken, 1);
        assert_string_equal(scene.type, "whole");
        end(&scene);
    }
}

static void a_closed_pipe_is_told_after_what_came_before(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, (struct link_settings){0});
    peer_sends(&scene, "first");
    peer_sends(&scene, "last words");
    close(scene.in[1]);
    scene.in[1] = -1;
    follow(&scene);
    says(&scene, LINK_CLOSED, "the peer is gone");
    assert_int_equal(scene.taken, 2);
    assert_string_equal(scene.type, "last words");
    struct error err;
    assert_int_equal(link_send_new(&scene.link, json_pack("{s:s}", "type", "x"), &err),
                     -ERROR_FAILED);
    assert_string_equal(err.text, "the peer is gone");
    end(&scene);
}

// It takes nothing any more, and is listened to for its last words.
static void a_peer_that_reads_no_more_is_listened_to(void **state)
{
    (void)state;
    struct scene scene;
    struct error err = {0};
    begin(&scene, quick);
    close(scene.out[0]);
    scene.out[0] = -1;
    link_send_new(&scene.link, json_pack("{s:s}", "type", "x"), &err);
    assert_int_equal(scene.link.state, LINK_UP);
    assert_int_equal(link_send_bytes(&scene.link, "x", 1, &err), -ERROR_FAILED);
    assert_false(link_flush(&scene.link, PATIENCE_MS));
    peer_sends(&scene, "why");
    follow(&scene);
    assert_string_equal(scene.type, "why");
    assert_true(scene.link.state == LINK_SILENT || scene.link.state == LINK_CLOSED);
    end(&scene);
}

static void what_is_no_frame_ends_the_link(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, (struct link_settings){0});
    peer_writes(&scene, "\x01\x00\x10\x00J", 5);
    follow(&scene);
    says(&scene, LINK_FAILED, "the peer: a message of 1048577 bytes: at most 1048576 are taken");
    end(&scene);
    begin(&scene, (struct link_settings){0});
    peer_writes(&scene, "Permission denied", 17);
    follow(&scene);
    says(&scene, LINK_FAILED, "the peer: what came is no message: its kind is 105");
    end(&scene);
    begin(&scene, (struct link_settings){0});
    peer_sends(&scene, "refuse");
    follow(&scene);
    says(&scene, LINK_FAILED, "it was refused");
    end(&scene);
}

static void a_full_pipe_blocks_nobody_and_is_bounded(void **state)
{
    (void)state;
    struct scene scene;
    struct frame_reader reader = {0};
    struct heard heard = {0};
    struct error err = {0};
    static char big[BIG_BYTES];
    size_t sent = 0;
    begin(&scene, (struct link_settings){.queue_bytes = 10 * BIG_BYTES});
    struct link *links[] = {&scene.link};
    while (link_has_room(&scene.link)) {
        assert_int_equal(link_send_bytes(&scene.link, big, sizeof big, &err), 0);
        sent += sizeof big;
    }
    assert_in_range(sent, 10 * BIG_BYTES, 13 * BIG_BYTES);
    assert_int_equal(link_send_bytes(&scene.link, big, sizeof big, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "the peer takes nothing of what it is sent"));
    assert_false(link_flush(&scene.link, 10));
    for (unsigned i = 0; i < 1000 && heard.bytes < sent; i++) {
        peer_reads(&scene, &reader, &heard);
        link_poll(links, 1, NULL, 0, 10);
    }
    assert_int_equal(heard.bytes, sent); // none twice, none lost, none half
    assert_true(link_is_flushed(&scene.link));
    assert_int_equal(scene.link.state, LINK_UP);
    frame_reader_free(&reader);
    end(&scene);
}

// Two threads: one works, the other keeps the link, as a load agent does.
struct keeper {
    struct scene *scene;
    pthread_mutex_t lock;
    bool ending;
};

static void *keep(void *argument)
{
    struct keeper *keeper = argument;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->ending) {
        struct pollfd ready[2];
        int wait_ms = link_watch(&keeper->scene->link, ready);
        pthread_mutex_unlock(&keeper->lock);
        poll(ready, 2, wait_ms < BEAT_MS ? wait_ms : BEAT_MS);
        pthread_mutex_lock(&keeper->lock);
        link_serve(&keeper->scene->link, ready);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

static void heartbeats_go_on_during_long_work(void **state)
{
    (void)state;
    struct scene scene;
    struct frame_reader reader = {0};
    struct heard heard = {0};
    struct error err;
    pthread_t thread;
    begin(&scene, (struct link_settings){.heartbeat_ms = BEAT_MS, .silence_ms = PATIENCE_MS});
    struct keeper keeper = {.scene = &scene, .lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(pthread_create(&thread, NULL, keep, &keeper), 0);
    // The work, until the peer has heard three of them.
    for (int64_t began = monotonic_ms(); heard.beats < 3 && monotonic_ms() < began + PATIENCE_MS;) {
        usleep(BEAT_MS * 1000);
        peer_reads(&scene, &reader, &heard);
    }
    pthread_mutex_lock(&keeper.lock);
    assert_int_equal(link_send_new(&scene.link, json_pack("{s:s}", "type", "done"), &err), 0);
    keeper.ending = true;
    pthread_mutex_unlock(&keeper.lock);
    pthread_join(thread, NULL);
    peer_reads(&scene, &reader, &heard);
    assert_true(heard.beats >= 3);
    assert_int_equal(heard.messages, 1);
    frame_reader_free(&reader);
    end(&scene);
}

// Several links and a descriptor of the owner's in one loop: the one that fails ends alone.
static void many_links_share_a_loop(void **state)
{
    (void)state;
    struct scene scenes[3];
    struct link *links[3];
    int mine[2];
    assert_int_equal(pipe2(mine, O_CLOEXEC), 0);
    for (unsigned i = 0; i < 3; i++) {
        begin(&scenes[i], (struct link_settings){.heartbeat_ms = BEAT_MS});
        links[i] = &scenes[i].link;
        peer_sends(&scenes[i], i == 1 ? "refuse" : "hello");
    }
    struct pollfd others[] = {{.fd = mine[0], .events = POLLIN}};
    link_poll(links, 3, others, 1, 1000);
    assert_int_equal(others[0].revents, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(scenes[i].taken, 1);
        assert_int_equal(scenes[i].link.state, i == 1 ? LINK_FAILED : LINK_UP);
    }
    assert_int_equal(write(mine[1], "x", 1), 1);
    link_poll(links, 3, others, 1, 1000);
    assert_int_equal(others[0].revents, POLLIN);
    for (unsigned i = 0; i < 3; i++)
        end(&scenes[i]);
    close(mine[0]);
    close(mine[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_peer_is_found_out),
        cmocka_unit_test(heartbeats_keep_a_link),
        cmocka_unit_test(the_first_word_may_take_longer),
        cmocka_unit_test(who_was_held_up_does_not_blame_its_peer),
        cmocka_unit_test(half_a_frame_is_silence_or_an_end),
        cmocka_unit_test(a_closed_pipe_is_told_after_what_came_before),
        cmocka_unit_test(a_peer_that_reads_no_more_is_listened_to),
        cmocka_unit_test(what_is_no_frame_ends_the_link),
        cmocka_unit_test(a_full_pipe_blocks_nobody_and_is_bounded),
        cmocka_unit_test(heartbeats_go_on_during_long_work),
        cmocka_unit_test(many_links_share_a_loop),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
