// SPDX-License-Identifier: MIT
#include "shim/message_collector.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/process.h"
#include "base/tsc.h"
#include "shim/message_merge.h"
#include "shim/message_stats.h"
#include "shim/other_pids.h"
#include "shim/ring_memory.h"
#include "shim/ring_reader.h"

enum {
    KEPT_CALLS_LIMIT = 1 << 24, // 1 GiB in memory
    POLLS_PER_BURIAL = 16,      // about three times a second
};

// A process that attached: while it lives in a place of a pool, then only in this list.
struct attached {
    uint32_t process;
    uint64_t owner; // its place's word
    uint64_t instance;
    uint64_t pid_namespace;
    uint32_t here; // its pid in this PID namespace; 0: not known
    bool dead;     // as far as is known
    bool io_uring;
    bool serves, serves_told; // it has accepted a watched connection
    struct process_page page;
};

struct attached_array ARRAY_OF(struct attached);
struct reader_array ARRAY_OF(struct ring_reader *);

// A chunk to be taken, in the order of its thread's positions.
struct ripe_chunk {
    uint32_t reader;
    uint32_t index;
    uint64_t first;
};
struct ripe_array ARRAY_OF(struct ripe_chunk);

// What the collector knows of a pool, by place or by chunk.
struct pool_view {
    uint64_t *places;  // read just now
    uint32_t *owners;  // the same
    uint32_t *tenants; // by place: its process in the list, plus 1; 0: nobody known
    uint64_t *orphans; // by place: its word at the last visit, if nobody lived who could have it
    bool *waited;      // by chunk: an earlier one of its thread was missing at the last look
};

struct message_collector {
    struct ring_memory memory;
    struct pool_view views[RING_POOLS];
    uint16_t ports[RING_PORTS];
    uint64_t pid_namespace;
    struct other_pid_array others;  // processes of other PID namespaces, as of the last look
    unsigned others_poll;           // and when that was
    message_thread_fn *thread_here; // NULL: nobody knows more
    void *thread_context;
    uint64_t foreign; // processes that a user claimed to have who has not
    uint64_t untold;  // calls of threads whose number here is not known
    uint64_t room;    // calls for which there is room
    uint64_t damaged; // chunks and places that made no sense
    unsigned polls;
    uint64_t lost;                                         // calls of processes without a place
    uint64_t connections, outgoing;                        // of the last cut
    uint64_t doubtful_connections, incomplete_connections; // the same
    uint64_t told; // of all lost calls, those in the headers of the logs that were cut
    struct attached_array processes;
    struct map processes_map; // by pid and namespace, to the one that lives
    struct reader_array readers;
    struct map readers_map;
    struct ripe_array ripe;
    struct identities identities;
    uint64_t calls;                  // written to segments
    uint64_t unidentified, doubtful; // of these segments
    uint64_t cut_tsc;                // the last of them
};

int message_collector_prepare(const char *dir, uint64_t memory_bytes, int *held, struct error *err)
{
    struct ring_memory memory;
    int result = ring_memory_open(&memory, dir, memory_bytes, err);
    *held = memory.dir_fd;
    memory.dir_fd = -1;
    ring_memory_leave(&memory);
    return result;
}

int message_collector_create(const char *dir, uint64_t memory_bytes, const uint16_t *ports,
                             size_t port_count, struct message_collector **out, struct error *err)
{
    *out = NULL;
    if (port_count > RING_PORTS)
        return error_set(err, ERROR_INPUT, "%zu ports: the shim watches %d at most", port_count,
                         RING_PORTS);
    struct message_collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return error_set(err, ERROR_FAILED, "out of memory for the message collector");
    int result = ring_memory_open(&collector->memory, dir, memory_bytes, err);
    if (result < 0) {
        free(collector);
        return result;
    }
    struct stat status;
    if (stat("/proc/self/ns/pid", &status) == 0)
        collector->pid_namespace = status.st_ino;
    collector->room = KEPT_CALLS_LIMIT;
    struct control_page *control = collector->memory.control;
    if (port_count)
        memcpy(collector->ports, ports, port_count * sizeof *ports);
    memcpy(control->ports, collector->ports, sizeof control->ports);
    control->owner = (uint32_t)getpid();
    atomic_store(&control->state, CONTROL_ARMED);
    *out = collector;
    return 0;
}

void message_collector_watch_peers(struct message_collector *collector)
{
    collector->memory.control->peers = 1;
}

void message_collector_watch_commands(struct message_collector *collector)
{
    atomic_store(&collector->memory.control->commands, 1);
}

void message_collector_enable(struct message_collector *collector)
{
    atomic_store(&collector->memory.control->state, CONTROL_ENABLED);
    for (size_t i = 0; i < collector->processes.count; i++)
        collector->processes.items[i].io_uring |=
            collector->processes.items[i].here &&
            process_has_io_uring(collector->processes.items[i].here);
}

// --- processes -----------------------------------------------------------------------------------

// Which chunks a look takes entries from: those that are over; also those that are written to, for
// what they have so far; or all, for the last time.
enum look { LOOK_ENDED, LOOK_LIVE, LOOK_LAST };

// Gets memory for what is known of a pool.
static bool view_make(struct pool_view *view, const struct pool_file *pool)
{
    if (view->places)
        return true;
    view->places = calloc(pool->chunks, sizeof *view->places);
    view->owners = calloc(pool->chunks, sizeof *view->owners);
    view->tenants = calloc(pool->chunks, sizeof *view->tenants);
    view->orphans = calloc(pool->chunks, sizeof *view->orphans);
    view->waited = calloc(pool->chunks, sizeof *view->waited);
    return view->places && view->owners && view->tenants && view->orphans && view->waited;
}

// What attached earlier under the same pid is gone: it ended, or was replaced by exec. That may be
// the one that is found here later.
static void predecessor_note(struct message_collector *collector, struct attached *one)
{
    struct attached *all = collector->processes.items;
    uint32_t found =
        map_find(&collector->processes_map, hash_pair(one->process, one->pid_namespace), at,
                 !all[at].dead && all[at].process == one->process &&
                     all[at].pid_namespace == one->pid_namespace);
    if (found != MAP_NONE && one->pid_namespace)
        *(all[found].instance < one->instance ? &all[found].dead : &one->dead) = true;
}

// The pid here of a process; /proc is looked through once a poll at most.
static uint32_t pid_here(struct message_collector *collector, const struct attached *one)
{
    if (one->pid_namespace == collector->pid_namespace)
        return one->process;
    if (!one->pid_namespace)
        return 0;
    uint32_t found = other_pids_find(&collector->others, one->pid_namespace, one->process);
    if (found || collector->others_poll == collector->polls)
        return found;
    collector->others_poll = collector->polls;
    other_pids_read(&collector->others, collector->pid_namespace);
    return other_pids_find(&collector->others, one->pid_namespace, one->process);
}

// Whether a process may hold a place in the pool of a user: any may in this user's own, which only
// he can write to; in another's a process of that user, not one that he names. Of one that has
// ended already nobody knows.
static bool process_may_be(uint32_t process, uid_t user)
{
    char path[64], line[256];
    unsigned users[4] = {0};
    int found = 0;
    if (user == geteuid())
        return true;
    snprintf(path, sizeof path, "/proc/%u/status", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    while (found != 4 && fgets(line, sizeof line, file))
        found = sscanf(line, "Uid: %u %u %u %u", &users[0], &users[1], &users[2], &users[3]);
    fclose(file);
    for (int i = 0; i < found; i++)
        if (users[i] == user)
            return true;
    return false;
}

// Notes a process that has newly taken a place and is ready.
static void tenant_note(struct message_collector *collector, const struct pool_file *pool,
                        struct pool_view *view, uint32_t place)
{
    struct attached one = {.owner = view->places[place - 1]};
    if (!pool_read_page(pool, place, &one.page) || !one.page.ready)
        return; // not yet
    one.process = (uint32_t)one.owner;
    one.instance = one.page.ready;
    one.pid_namespace = one.page.pid_namespace;
    if (one.process == 0 || ring_place_owner(one.process, one.instance) != one.owner) {
        collector->damaged++;
        pool_free_place(pool, place);
        return;
    }
    one.here = pid_here(collector, &one);
    if (!process_may_be(one.here ? one.here : one.process, pool->user)) {
        collector->foreign++;
        pool_free_place(pool, place);
        return;
    }
    one.io_uring = one.here && process_has_io_uring(one.here);
    predecessor_note(collector, &one);
    if (array_push(&collector->processes, one) < 0)
        return;
    view->tenants[place - 1] = (uint32_t)collector->processes.count;
    map_add(&collector->processes_map, hash_pair(one.process, one.pid_namespace),
            (uint32_t)collector->processes.count - 1);
}

static void tenants_look(struct message_collector *collector, const struct pool_file *pool,
                         struct pool_view *view)
{
    if (!pool_read_places(pool, view->places))
        return;
    for (uint32_t i = 0; i < pool->chunks; i++) {
        uint32_t known = view->tenants[i];
        if (known && collector->processes.items[known - 1].owner != view->places[i])
            known = view->tenants[i] = 0;
        if (!known && view->places[i])
            tenant_note(collector, pool, view, i + 1);
    }
}

static bool is_gone(uint32_t process)
{
    return process > INT32_MAX || (kill((pid_t)process, 0) < 0 && errno == ESRCH);
}

// Frees the place of a process that died before it had said who it is. Its pid may be one of
// another namespace, where it lives and is about to say so: it has until the next visit.
static void orphan_visit(const struct pool_file *pool, struct pool_view *view, uint32_t place)
{
    uint64_t *orphan = &view->orphans[place - 1], before = *orphan;
    uint64_t word = view->places[place - 1];
    struct process_page page;
    *orphan = word && is_gone((uint32_t)word) ? word : 0;
    if (!*orphan || *orphan != before || !pool_read_page(pool, place, &page) || page.ready)
        return;
    pool_free_place(pool, place);
    *orphan = 0;
}

// Whether a process has ended and nobody waited for it: read from /proc, so that each is asked in
// its turn only, some five seconds apart.
static bool is_zombie(const struct message_collector *collector, uint32_t process, uint32_t place)
{
    enum { TURNS = 16 };
    return (place + collector->polls / POLLS_PER_BURIAL) % TURNS == 0 && process <= INT32_MAX &&
           process_has_ended((pid_t)process);
}

// Looks which of a pool's processes are gone, of those that are known here.
static void tenants_visit(struct message_collector *collector, const struct pool_file *pool,
                          struct pool_view *view)
{
    for (uint32_t i = 0; i < pool->chunks; i++) {
        if (!view->tenants[i]) {
            orphan_visit(pool, view, i + 1);
            continue;
        }
        struct attached *one = &collector->processes.items[view->tenants[i] - 1];
        one->here = one->here ? one->here : pid_here(collector, one);
        struct process_page page;
        one->serves |= !one->serves && pool_read_page(pool, i + 1, &page) && page.accepted > 0;
        bool known = one->pid_namespace && one->here;
        one->dead |= known && (is_gone(one->here) || is_zombie(collector, one->here, i));
    }
}

// --- chunks --------------------------------------------------------------------------------------

// The reader of a chunk's thread, from 0; MAP_NONE: no memory, or the process that has the chunk's
// place is not the one that it is said to be from.
static uint32_t reader_of(struct message_collector *collector, const struct ring_chunk *chunk,
                          uint32_t tenant)
{
    struct ring_reader **readers = collector->readers.items;
    uint64_t hash = hash_pair(hash_pair(chunk->instance, chunk->began),
                              (uint64_t)chunk->process << 32 | chunk->thread);
    uint32_t found = map_find(
        &collector->readers_map, hash, at,
        readers[at]->instance == chunk->instance && readers[at]->began == chunk->began &&
            readers[at]->process == chunk->process && readers[at]->thread == chunk->thread);
    if (found != MAP_NONE)
        return found;
    const struct attached *one = tenant ? &collector->processes.items[tenant - 1] : NULL;
    if (!one || one->process != chunk->process || one->instance != chunk->instance)
        return MAP_NONE;
    struct ring_reader *reader = calloc(1, sizeof *reader);
    if (!reader || array_push(&collector->readers, reader) < 0) {
        free(reader);
        return MAP_NONE;
    }
    *reader = (struct ring_reader){.process = chunk->process,
                                   .thread = chunk->thread,
                                   .instance = chunk->instance,
                                   .began = chunk->began,
                                   .tenant = tenant};
    found = (uint32_t)collector->readers.count - 1;
    return map_add(&collector->readers_map, hash, found) < 0 ? MAP_NONE : found;
}

static int ripe_compare(const void *left, const void *right)
{
    const struct ripe_chunk *a = left, *b = right;
    return order_of(a->reader, b->reader) ?: order_of(a->first, b->first);
}

// Whether nobody writes to a chunk any more: it is sealed, or its process is dead.
static bool is_over(const struct message_collector *collector, const struct pool_file *pool,
                    const struct pool_view *view, uint32_t index)
{
    uint32_t owner = view->owners[index];
    if (owner == 0 || owner & CHUNK_SEALED)
        return owner != 0;
    uint32_t tenant = owner <= pool->chunks ? view->tenants[owner - 1] : 0;
    return tenant && collector->processes.items[tenant - 1].dead;
}

// Notes a chunk whose entries are to be taken. One that makes no sense is freed.
static void ripe_note(struct message_collector *collector, const struct pool_file *pool,
                      const struct pool_view *view, uint32_t index, bool last)
{
    struct ring_chunk chunk;
    uint32_t reader = MAP_NONE;
    bool read = pool_read_chunk_head(pool, index, &chunk);
    // Whoever took it may not have come to write what it is.
    bool sane = read && (chunk.used == 0 || ring_chunk_plausible(&chunk));
    uint32_t place = view->owners[index] & ~CHUNK_SEALED;
    uint32_t tenant = place && place <= pool->chunks ? view->tenants[place - 1] : 0;
    if (sane && chunk.used > 0) {
        reader = reader_of(collector, &chunk, tenant);
        if (reader == MAP_NONE && !tenant && !last)
            return; // its process came while we were looking: the next time it is known
        sane = reader != MAP_NONE;
    }
    if (reader != MAP_NONE &&
        array_push(&collector->ripe,
                   (struct ripe_chunk){.reader = reader, .index = index, .first = chunk.first}) ==
            0)
        return;
    collector->damaged += !sane;
    if (is_over(collector, pool, view, index))
        pool_free_chunk(pool, index);
}

// Whether a chunk comes before its turn, and is to wait for one more look: the one before it was
// sealed while we were looking. Of the dead all are there.
static bool is_early(const struct message_collector *collector, const struct pool_view *view,
                     const struct ripe_chunk *ripe)
{
    const struct ring_reader *reader = collector->readers.items[ripe->reader];
    return ripe->first > reader->next && !view->waited[ripe->index] &&
           !collector->processes.items[reader->tenant - 1].dead;
}

// Takes the entries of all chunks noted.
static void ripe_take(struct message_collector *collector, const struct pool_file *pool,
                      struct pool_view *view, enum look how)
{
    array_sort(&collector->ripe, ripe_compare);
    for (size_t i = 0; i < collector->ripe.count; i++) {
        const struct ripe_chunk *ripe = &collector->ripe.items[i];
        struct ring_reader *reader = collector->readers.items[ripe->reader];
        struct ring_chunk chunk;
        view->waited[ripe->index] = how != LOOK_LAST && is_early(collector, view, ripe);
        if (view->waited[ripe->index])
            continue;
        bool over = is_over(collector, pool, view, ripe->index);
        if (!pool_read_chunk(pool, ripe->index, &chunk) || !ring_chunk_plausible(&chunk))
            ;
        else if (over || how == LOOK_LAST)
            ring_reader_take(reader, &chunk, &collector->room);
        else
            ring_reader_take_live(reader, &chunk, &collector->room);
        if (over)
            pool_free_chunk(pool, ripe->index);
    }
    collector->ripe.count = 0;
}

// Takes what is in the chunks that are over, or in all.
static void chunks_look(struct message_collector *collector, const struct pool_file *pool,
                        struct pool_view *view, enum look how)
{
    if (!pool_read_owners(pool, view->owners))
        return;
    for (uint32_t i = 0; i < pool->chunks; i++)
        if (is_over(collector, pool, view, i) || (how != LOOK_ENDED && view->owners[i]))
            ripe_note(collector, pool, view, i, how == LOOK_LAST);
    ripe_take(collector, pool, view, how);
}

// Frees the places of the dead, after their chunks.
static void tenants_bury(struct message_collector *collector, const struct pool_file *pool,
                         struct pool_view *view)
{
    for (uint32_t i = 0; i < pool->chunks; i++) {
        uint32_t tenant = view->tenants[i];
        struct attached *one = tenant ? &collector->processes.items[tenant - 1] : NULL;
        if (!one || !one->dead)
            continue;
        pool_read_page(pool, i + 1, &one->page);
        pool_free_place(pool, i + 1);
        view->tenants[i] = 0;
    }
}

static int pools_look(struct message_collector *collector, enum look how, struct error *err)
{
    bool burial = how == LOOK_ENDED && ++collector->polls % POLLS_PER_BURIAL == 0;
    ring_memory_greet(&collector->memory);
    for (size_t i = 0; i < collector->memory.pool_count; i++) {
        const struct pool_file *pool = &collector->memory.pools[i];
        struct pool_view *view = &collector->views[i];
        if (!view_make(view, pool))
            return error_set(err, ERROR_FAILED, "out of memory for the shim's tables");
        tenants_look(collector, pool, view);
        if (burial)
            tenants_visit(collector, pool, view);
        chunks_look(collector, pool, view, how);
        tenants_bury(collector, pool, view);
    }
    return 0;
}

int message_collector_poll(struct message_collector *collector, struct error *err)
{
    return pools_look(collector, LOOK_ENDED, err);
}

uint64_t message_collector_kept(const struct message_collector *collector)
{
    return KEPT_CALLS_LIMIT - collector->room;
}

// --- numbers of other PID namespaces -------------------------------------------------------------

// The number here of a thread of a process, or of the process itself; 0: not known.
static uint32_t number_here(const struct message_collector *collector, const struct attached *one,
                            uint32_t inside)
{
    uint32_t found = collector->thread_here ? collector->thread_here(collector->thread_context,
                                                                     one->pid_namespace, inside)
                                            : 0;
    if (found || !one->here)
        return found;
    if (inside == one->process || one->pid_namespace == collector->pid_namespace)
        return inside == one->process ? one->here : inside;
    return other_thread_find(one->here, inside);
}

// Finds the numbers of a reader that everybody else knows. Where these are not known, its calls get
// numbers that no thread has: its own may be a stranger's.
static void reader_translate(struct message_collector *collector, struct ring_reader *reader,
                             uint32_t index)
{
    enum { NOBODY = 1 << 30 }; // pids end at 2^22
    const struct attached *one =
        reader->tenant ? &collector->processes.items[reader->tenant - 1] : NULL;
    if (!one || !one->pid_namespace || one->pid_namespace == PID_NAMESPACE_FIRST)
        return;
    uint32_t process = number_here(collector, one, reader->process);
    uint32_t thread = number_here(collector, one, reader->thread);
    if (!thread)
        collector->untold += reader->calls.count;
    reader->process_here = process ? process : NOBODY + reader->tenant;
    reader->thread_here = thread ? thread : NOBODY + (1 << 29) + index;
}

static void readers_translate(struct message_collector *collector)
{
    for (size_t i = 0; i < collector->readers.count; i++)
        reader_translate(collector, collector->readers.items[i], (uint32_t)i);
}

// Writes what was taken since the last time, or forgets it.
static int calls_flush(struct message_collector *collector, struct message_merge *merge,
                       struct error *err)
{
    merge->rings = collector->readers.items;
    merge->ring_count = collector->readers.count;
    merge->identities = &collector->identities;
    merge->ports = collector->ports;
    merge->wants_peers = collector->memory.control->peers;
    merge->before_tsc = collector->cut_tsc;
    collector->cut_tsc = tsc_now();
    int result = message_merge_write(merge, err);
    uint64_t left = 0;
    for (size_t i = 0; i < collector->readers.count; i++) {
        left += collector->readers.items[i]->calls.count;
        ring_reader_trim(collector->readers.items[i]);
    }
    collector->room = left < KEPT_CALLS_LIMIT ? KEPT_CALLS_LIMIT - left : 0;
    collector->calls += merge->calls;
    collector->unidentified += merge->unidentified;
    collector->doubtful += merge->doubtful_calls;
    return result;
}

size_t message_collector_attached(const struct message_collector *collector)
{
    return collector->processes.count;
}

void message_collector_ask(struct message_collector *collector, message_thread_fn *thread_here,
                           void *context)
{
    collector->thread_here = thread_here;
    collector->thread_context = context;
}

uint32_t message_collector_process(const struct message_collector *collector, size_t n)
{
    const struct attached *one = &collector->processes.items[n];
    return one->dead ? 0 : one->here;
}

uint32_t message_collector_next_serving(struct message_collector *collector)
{
    for (size_t i = 0; i < collector->processes.count; i++) {
        struct attached *one = &collector->processes.items[i];
        if (!one->serves || one->serves_told || one->dead || !one->here)
            continue;
        one->serves_told = true;
        return one->here;
    }
    return 0;
}

// --- the end -------------------------------------------------------------------------------------

static void process_report(const struct attached *attached, struct message_stats *stats)
{
    const struct process_page *page = &attached->page;
    struct message_process *process = &stats->processes[stats->process_count++];
    process->process = attached->here ? attached->here : attached->process;
    process->connections = page->accepted;
    process->dropped = page->dropped_full;
    process->inert = page->inert == INERT_SECCOMP;
    process->io_uring =
        attached->io_uring || (attached->here && process_has_io_uring(attached->here));
    for (size_t i = 0; i < sizeof page->name - 1 && page->name[i]; i++)
        process->name[i] = page->name[i] >= ' ' && page->name[i] < 127 ? page->name[i] : '?';
    stats->dropped_full += page->dropped_full;
    stats->dropped_without_ring += page->without_ring;
    stats->dropped_unnamed += page->unnamed;
    stats->late += page->late;
    stats->behind += page->stale;
    stats->unseen_connections += page->unwatched + page->stdio;
}

// Reads the counters, as they are now, of those who live.
static void pages_read(struct message_collector *collector)
{
    collector->lost = 0;
    for (size_t i = 0; i < collector->memory.pool_count; i++) {
        const struct pool_file *pool = &collector->memory.pools[i];
        struct pool_header header;
        for (uint32_t place = 1; place <= pool->chunks; place++) {
            uint32_t tenant = collector->views[i].tenants[place - 1];
            if (tenant)
                pool_read_page(pool, place, &collector->processes.items[tenant - 1].page);
        }
        if (pread(pool->fd, &header, sizeof header, 0) == sizeof header)
            collector->lost += header.lost;
    }
}

static int stats_gather(struct message_collector *collector, struct message_stats *stats,
                        struct error *err)
{
    stats->processes = calloc(collector->processes.count + 1, sizeof *stats->processes);
    stats->threads = calloc(collector->readers.count + 1, sizeof *stats->threads);
    if (!stats->processes || !stats->threads)
        return error_set(err, ERROR_FAILED, "out of memory for the shim's statistics");
    pages_read(collector);
    for (size_t i = 0; i < collector->processes.count; i++)
        process_report(&collector->processes.items[i], stats);
    for (size_t i = 0; i < collector->readers.count; i++) {
        const struct ring_reader *reader = collector->readers.items[i];
        stats->threads[stats->thread_count++] = (struct message_thread){
            .process = reader->process_here ? reader->process_here : reader->process,
            .thread = reader->thread_here ? reader->thread_here : reader->thread,
            .calls = reader->taken};
        stats->dropped_memory += reader->unkept;
        stats->rejected += reader->rejected;
    }
    stats->damaged = collector->damaged;
    stats->untold = collector->untold;
    stats->foreign = collector->foreign;
    stats->dropped_full += collector->lost;
    stats->dropped = stats->dropped_full + stats->dropped_without_ring + stats->dropped_unnamed +
                     stats->dropped_memory + stats->rejected;
    return 0;
}

// What is known to be lost, of what was taken until now.
static uint64_t lost_so_far(struct message_collector *collector)
{
    pages_read(collector);
    uint64_t lost = collector->lost;
    for (size_t i = 0; i < collector->processes.count; i++)
        lost += collector->processes.items[i].page.dropped_full +
                collector->processes.items[i].page.without_ring +
                collector->processes.items[i].page.unnamed;
    for (size_t i = 0; i < collector->readers.count; i++)
        lost += collector->readers.items[i]->unkept + collector->readers.items[i]->rejected;
    return lost;
}

int message_collector_cut(struct message_collector *collector, const char *out_dir,
                          const char *calls_log, struct error *err)
{
    struct message_merge merge = {.out_dir = out_dir, .calls_log = calls_log};
    int result = pools_look(collector, LOOK_LIVE, err);
    readers_translate(collector);
    if (result < 0)
        return result;
    uint64_t lost = lost_so_far(collector);
    merge.lost = lost > collector->told ? lost - collector->told : 0;
    if (out_dir)
        collector->told = lost;
    result = calls_flush(collector, &merge, err);
    collector->doubtful_connections = merge.checks.doubtful;
    collector->incomplete_connections = merge.incomplete;
    collector->connections = merge.connections;
    collector->outgoing = merge.outgoing;
    return result;
}

int message_collector_so_far(struct message_collector *collector, struct message_stats *stats,
                             struct error *err)
{
    memset(stats, 0, sizeof *stats);
    int result = stats_gather(collector, stats, err);
    stats->calls = collector->calls;
    stats->connections = collector->connections;
    stats->outgoing = collector->outgoing;
    stats->unidentified = collector->unidentified;
    stats->doubtful = collector->doubtful;
    stats->doubtful_connections = collector->doubtful_connections;
    stats->incomplete_connections = collector->incomplete_connections;
    stats->dropped += collector->unidentified + collector->doubtful;
    return result;
}

// Gives back the memory of all chunks that nobody holds, though servers still have it mapped.
static void memory_discard(struct message_collector *collector)
{
    for (size_t i = 0; i < collector->memory.pool_count; i++) {
        const struct pool_file *pool = &collector->memory.pools[i];
        struct pool_view *view = &collector->views[i];
        if (!view_make(view, pool) || !pool_read_owners(pool, view->owners))
            continue;
        for (uint32_t chunk = 0; chunk < pool->chunks; chunk++)
            if (view->owners[chunk] == 0)
                pool_discard_chunk(pool, chunk);
    }
}

int message_collector_finish(struct message_collector *collector, const char *out_dir,
                             struct message_stats *stats, struct error *err)
{
    memset(stats, 0, sizeof *stats);
    struct message_notes notes = {.dir = collector->memory.dir, .ports = collector->ports};
    atomic_store(&collector->memory.control->state, CONTROL_CLOSED);
    int result = pools_look(collector, LOOK_ENDED, err);
    // A call that saw the capture still on may be writing its record: that takes nanoseconds,
    // unless its thread is preempted.
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    if (result == 0)
        result = pools_look(collector, LOOK_LAST, err);
    readers_translate(collector);
    if (result == 0)
        result = stats_gather(collector, stats, err);
    struct message_merge merge = {.peers = &stats->peers,
                                  .lost = stats->dropped - collector->told,
                                  .last = true,
                                  .out_dir = out_dir,
                                  .calls_log = "calls.tlog"};
    if (result == 0)
        result = calls_flush(collector, &merge, err);
    stats->calls = collector->calls;
    stats->connections = merge.connections;
    stats->outgoing = merge.outgoing;
    stats->unidentified = collector->unidentified;
    stats->doubtful = collector->doubtful;
    stats->doubtful_connections = merge.checks.doubtful;
    stats->incomplete_connections = merge.incomplete;
    stats->checks = merge.checks.made;
    stats->checks_agreed = merge.checks.agreed;
    stats->dropped += collector->unidentified + collector->doubtful;
    peer_programs_find(&stats->peers);
    if (result == 0)
        message_warning_write(stats, &notes);
    memory_discard(collector);
    ring_memory_remove(&collector->memory);
    return result;
}

void message_collector_free(struct message_collector *collector)
{
    if (!collector)
        return;
    ring_memory_remove(&collector->memory);
    for (size_t i = 0; i < collector->readers.count; i++) {
        ring_reader_free(collector->readers.items[i]);
        free(collector->readers.items[i]);
    }
    for (size_t i = 0; i < RING_POOLS; i++) {
        free(collector->views[i].places);
        free(collector->views[i].owners);
        free(collector->views[i].tenants);
        free(collector->views[i].orphans);
        free(collector->views[i].waited);
    }
    array_free(&collector->identities.all);
    array_free(&collector->readers);
    array_free(&collector->processes);
    array_free(&collector->ripe);
    array_free(&collector->others);
    map_free(&collector->readers_map);
    map_free(&collector->processes_map);
    free(collector);
}
