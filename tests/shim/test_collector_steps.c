// SPDX-License-Identifier: MIT
//
// The collector beside servers that go on, or die, between any two of its own steps: before each of
// its reads and writes of the shared memory (which this program stands in front of) some servers,
// played here, take a step. They take places and chunks, fill them, end threads whose numbers the
// next ones get, as processes do with theirs, and die in the middle of each of these. Every call
// that was completed is in the log, once; what was dropped is counted, and whose it was is said;
// and the dead leave nothing.
// Runs beside others: it counts.
#include "tests/shim/shim_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/hash.h"
#include "base/tsc.h"
#include "shim/ring_memory.h"

enum {
    ACTORS = 6,      // processes at once
    NUMBERS = 8,     // and the pids that they share
    THREADS = 2,     // of each at once; the next one has the same number
    FIRST = 1 << 23, // more than any pid
    LIVES = 40,      // processes in all
    CHUNKS = 16,
    SEEDS = 60,
};

struct actor {
    uint32_t pid; // 0: nobody
    uint64_t instance;
    uint32_t place;
    bool ready, announced;
    uint64_t offset, first_written, last_written, dropped_after_first; // positions from 1
    struct ring_producer threads[THREADS];
};

static struct theatre {
    uint64_t random;
    struct ring_pool pool;
    struct actor actors[ACTORS];
    bool alive[NUMBERS];
    bool on; // the actors take their steps
    int lives;
    uint64_t pid_namespace, now;
    uint64_t committed, dropped, incomplete, died;
} theatre;

static unsigned pick(unsigned below)
{
    theatre.random += 0x9e3779b97f4a7c15ULL;
    return (unsigned)(hash64(theatre.random) >> 32) % below;
}

// --- the servers' side ---------------------------------------------------------------------------

static void actor_born(struct actor *actor)
{
    uint32_t number = pick(NUMBERS);
    if (theatre.alive[number] || theatre.lives == LIVES)
        return;
    theatre.alive[number] = true;
    theatre.lives++;
    *actor = (struct actor){.pid = FIRST + number, .instance = ++theatre.now};
}

static void actor_dies(struct actor *actor)
{
    theatre.alive[actor->pid - FIRST] = false;
    // Calls are missing between two that are there.
    theatre.incomplete +=
        actor->dropped_after_first && actor->last_written > actor->dropped_after_first;
    theatre.died++;
    actor->pid = 0;
}

static void actor_attaches(struct actor *actor)
{
    if (!actor->place) {
        actor->place = ring_pool_take_place(&theatre.pool, actor->pid, actor->instance);
        return;
    }
    struct process_page *page = &theatre.pool.pages[actor->place - 1];
    page->pid_namespace = theatre.pid_namespace;
    atomic_store(&page->ready, actor->instance);
    actor->ready = true;
}

static void thread_begins(struct actor *actor, unsigned thread)
{
    actor->threads[thread] = (struct ring_producer){.used = RING_CHUNK_ENTRIES,
                                                    .place = actor->place,
                                                    .process = actor->pid,
                                                    .thread = 1 + thread,
                                                    .instance = actor->instance,
                                                    .began = ++theatre.now,
                                                    .pool = theatre.pool};
}

static bool thread_writes(struct actor *actor, struct ring_producer *thread, bool announcement)
{
    union ring_entry *entry = ring_reserve(thread, theatre.now += RING_RETRY_CYCLES);
    if (!entry)
        return false;
    if (announcement)
        entry->announcement =
            (struct ring_announcement){.kind = RING_ANNOUNCEMENT, .connection = 1, .cookie = 1};
    else
        entry->call = (struct call){.entry_tsc = theatre.now,
                                    .exit_tsc = theatre.now,
                                    .offset = actor->offset,
                                    .length = 1,
                                    .connection = 1,
                                    .process = actor->pid,
                                    .thread = thread->thread,
                                    .kind = CALL_RECEIVE};
    if (pick(2000) == 0) { // before it is complete
        actor_dies(actor);
        return true;
    }
    ring_commit(thread, entry);
    return true;
}

// As shim_record() and what comes before it.
static void thread_calls(struct actor *actor, struct ring_producer *thread)
{
    actor->announced = actor->announced || thread_writes(actor, thread, true);
    bool written = actor->pid && actor->announced && thread_writes(actor, thread, false);
    if (!actor->pid)
        return;
    actor->offset++;
    if (written) {
        theatre.committed++;
        actor->first_written = actor->first_written ?: actor->offset;
        actor->last_written = actor->offset;
    } else {
        theatre.dropped++;
        theatre.pool.pages[actor->place - 1].dropped_full++;
        if (actor->first_written && !actor->dropped_after_first)
            actor->dropped_after_first = actor->offset;
    }
}

static void actor_steps(struct actor *actor)
{
    unsigned thread = pick(THREADS);
    struct ring_producer *ring = &actor->threads[thread];
    unsigned what = pick(100);
    if (!actor->pid)
        actor_born(actor);
    else if (what == 0)
        actor_dies(actor);
    else if (!actor->ready)
        actor_attaches(actor);
    else if (!ring->place)
        thread_begins(actor, thread);
    else if (what == 1 && ring_pool_take_chunk(&theatre.pool, actor->place))
        actor_dies(actor); // with a chunk in hand, and nothing in it
    else if (what < 6) {
        ring_seal(ring);
        ring->place = 0;
    } else {
        for (unsigned calls = pick(what < 20 ? RING_CHUNK_ENTRIES : 8); calls && actor->pid;
             calls--)
            thread_calls(actor, ring);
    }
}

// --- in front of the collector's memory ----------------------------------------------------------

static void between(void)
{
    for (unsigned steps = theatre.on ? pick(4) : 0; steps; steps--)
        actor_steps(&theatre.actors[pick(ACTORS)]);
}

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

bool pool_read_places(const struct pool_file *pool, uint64_t *places)
{
    between();
    return REAL(pool_read_places)(pool, places);
}

bool pool_read_owners(const struct pool_file *pool, uint32_t *owners)
{
    between();
    return REAL(pool_read_owners)(pool, owners);
}

bool pool_read_page(const struct pool_file *pool, uint32_t place, struct process_page *page)
{
    between();
    return REAL(pool_read_page)(pool, place, page);
}

bool pool_read_chunk(const struct pool_file *pool, uint32_t index, struct ring_chunk *chunk)
{
    between();
    return REAL(pool_read_chunk)(pool, index, chunk);
}

bool pool_read_chunk_head(const struct pool_file *pool, uint32_t index, struct ring_chunk *chunk)
{
    between();
    return REAL(pool_read_chunk_head)(pool, index, chunk);
}

void pool_free_chunk(const struct pool_file *pool, uint32_t index)
{
    between();
    REAL(pool_free_chunk)(pool, index);
}

void pool_free_place(const struct pool_file *pool, uint32_t place)
{
    between();
    REAL(pool_free_place)(pool, place);
}

int kill(pid_t pid, int number)
{
    if (pid < FIRST)
        return (int)syscall(SYS_kill, pid, number);
    between();
    assert_int_equal(number, 0);
    errno = ESRCH;
    return theatre.alive[pid - FIRST] ? 0 : -1;
}

// --- the test ------------------------------------------------------------------------------------

struct scene {
    struct places places;
    struct message_collector *collector;
    void *mapping;
    size_t bytes;
};

static void scene_open(struct scene *scene, uint64_t seed)
{
    char path[200];
    struct stat status;
    struct pool_header header;
    struct error err;
    uint64_t share = CHUNKS * (RING_CHUNK_BYTES + 140) + 3 * RING_PAGE_BYTES;
    theatre = (struct theatre){.random = hash64(seed), .now = tsc_now()};
    assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
    theatre.pid_namespace = status.st_ino;
    places_init(&scene->places, "steps");
    if (message_collector_create(scene->places.rings, geteuid() == 0 ? share * 4 / 3 : share, NULL,
                                 0, &scene->collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(scene->collector);
    snprintf(path, sizeof path, "%s/pool-%u", scene->places.rings, geteuid());
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    assert_int_equal(header.chunks, CHUNKS);
    scene->bytes = pool_layout_of(header.chunks).bytes;
    scene->mapping = mmap(NULL, scene->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(scene->mapping != MAP_FAILED);
    close(fd);
    theatre.pool = ring_pool_at(scene->mapping, header.chunks);
}

static void scene_close(struct scene *scene)
{
    munmap(scene->mapping, scene->bytes);
    message_collector_free(scene->collector);
    places_clear(&scene->places);
}

static void look(struct scene *scene, unsigned cut)
{
    struct error err;
    if ((cut ? message_collector_cut(scene->collector, scene->places.out, "calls-000001.tlog", &err)
             : message_collector_poll(scene->collector, &err)) < 0)
        fail_msg("%s", err.text);
}

// Nobody is there any more: after two looks at who lives everything is free.
static void nothing_is_left(struct scene *scene)
{
    theatre.on = false;
    for (int i = 0; i < ACTORS; i++)
        if (theatre.actors[i].pid)
            actor_dies(&theatre.actors[i]);
    for (int i = 0; i < 48; i++)
        look(scene, 0);
    for (uint32_t i = 0; i < theatre.pool.count; i++) {
        assert_int_equal(theatre.pool.owners[i], 0);
        assert_int_equal(theatre.pool.places[i], 0);
    }
}

static void play(uint64_t seed)
{
    struct scene scene;
    struct message_stats stats;
    struct error err;
    scene_open(&scene, seed);
    theatre.on = true;
    for (int i = 0; theatre.lives < LIVES && i < 4000; i++)
        look(&scene, pick(10) == 0);
    nothing_is_left(&scene);
    if (message_collector_finish(scene.collector, scene.places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    if (stats.calls != theatre.committed || stats.rejected || stats.damaged || stats.unidentified ||
        stats.dropped != theatre.dropped || stats.incomplete_connections != theatre.incomplete)
        fail_msg("seed %llu: %llu of %llu calls; %llu of %llu dropped, %llu rejected, %llu "
                 "damaged, %llu unidentified; %llu of %llu connections incomplete",
                 (unsigned long long)seed, (unsigned long long)stats.calls,
                 (unsigned long long)theatre.committed, (unsigned long long)stats.dropped,
                 (unsigned long long)theatre.dropped, (unsigned long long)stats.rejected,
                 (unsigned long long)stats.damaged, (unsigned long long)stats.unidentified,
                 (unsigned long long)stats.incomplete_connections,
                 (unsigned long long)theatre.incomplete);
    message_stats_free(&stats);
    scene_close(&scene);
}

static void every_completed_call_is_there(void **state)
{
    (void)state;
    uint64_t committed = 0, dropped = 0, died = 0, incomplete = 0;
    const uint64_t seeds = getenv("TAILLIGHT_TRUST") ? 10 * SEEDS : SEEDS;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        play(seed);
        committed += theatre.committed;
        dropped += theatre.dropped;
        died += theatre.died;
        incomplete += theatre.incomplete;
    }
    print_message("%llu calls, %llu without room, %llu processes, %llu connections incomplete\n",
                  (unsigned long long)committed, (unsigned long long)dropped,
                  (unsigned long long)died, (unsigned long long)incomplete);
    assert_true(committed > 10000 && dropped > 100 && incomplete > 10); // else it looked at nothing
}

// A chunk that is gone, as no chunk should be: the connection that it was of is named as lost.
static void what_is_lost_is_said_of_its_connection(void **state)
{
    (void)state;
    struct scene scene;
    struct message_stats stats;
    struct error err;
    scene_open(&scene, 1);
    struct actor *actor = &theatre.actors[0];
    while (!actor->pid)
        actor_born(actor);
    for (int i = 0; i < 2; i++)
        actor_attaches(actor);
    thread_begins(actor, 0);
    for (int i = 0; i < 3 * RING_CHUNK_ENTRIES && actor->pid; i++)
        thread_calls(actor, &actor->threads[0]);
    assert_true(actor->pid);
    atomic_store(&theatre.pool.owners[1], 0); // the second of four
    for (int i = 0; i < 3; i++)
        look(&scene, 0);
    if (message_collector_finish(scene.collector, scene.places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stats.rejected, RING_CHUNK_ENTRIES);
    assert_int_equal(stats.calls, 2 * RING_CHUNK_ENTRIES);
    assert_int_equal(stats.incomplete_connections, 1);
    assert_non_null(strstr(stats.warning, "1 connections of which calls are missing"));
    json_t *json = message_stats_json(&stats);
    assert_int_equal(json_integer_value(json_object_get(json, "incomplete_connections")), 1);
    json_decref(json);
    message_stats_free(&stats);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_completed_call_is_there),
        cmocka_unit_test(what_is_lost_is_said_of_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
