// SPDX-License-Identifier: MIT
#include "loadgen/client/node_watch.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/patience.h"
#include "loadgen/client/tls_tunnel.h"
#include "workloads/protocols/redis_client.h"

enum {
    FIRST_PATIENCE_MS = 5000, // for each answer before the load ...
    PATIENCE_MS = 500,        // ... and while it lasts, when others can be asked instead
    PAUSE_MS = 100,           // between two times that the map is read
    SENTINEL_MS = 1000,       // a sentinel is asked this often, whether anybody wants it or not
};

enum { SENTINELS_MOST = 16 };

struct node_watch {
    struct node_source source;
    struct node_map *map;
    uint32_t turn; // the node, or other sentinel, that was asked last; beyond them: the source
    struct server_address sentinels[SENTINELS_MOST]; // the others
    uint32_t sentinel_count;
    pthread_t thread;
    atomic_bool stop;
    struct node_watch_counts counts;
};

// others: gets the sentinels that a sentinel knows; NULL: nobody asks.
static int read_from(const struct node_source *source, const struct server_address *server,
                     unsigned patience_ms, struct cluster_ranges *ranges,
                     struct cluster_ranges *others, struct error *err)
{
    const bool tls = !source->sentinel && source->tls && source->tls->on;
    const struct server_address *place = server;
    struct tls_tunnel *tunnel = NULL;
    struct redisContext *redis = NULL;
    int status = tls ? tls_tunnel_open(source->tls, server, NULL, &tunnel, err) : 0;
    if (status < 0)
        return status;
    if (tunnel)
        place = tls_tunnel_address(tunnel);
    status = redis_client_open(place->host, place->port, source->sentinel ? NULL : source->login,
                               patience_ms, &redis, err);
    if (status == 0)
        status = source->sentinel ? sentinel_read(redis, source->sentinel, ranges, err)
                                  : cluster_read(redis, server->host, ranges, err);
    if (status == 0 && source->sentinel && others)
        status = sentinels_read(redis, source->sentinel, others, err);
    if (redis)
        redisFree(redis);
    status = tls_tunnel_close(tunnel, status, err);
    return status < 0 ? error_prefix(err, "%s", server->text) : 0;
}

// What it takes to read a map, in one piece: it outlives who does not wait for it.
struct first_reading {
    struct node_source source;
    struct server_address server;
    struct login_words login;
    struct cluster_ranges ranges;
    struct error err;
};

static int read_first(void *context)
{
    struct first_reading *reading = context;
    return read_from(&reading->source, &reading->server, FIRST_PATIENCE_MS, &reading->ranges, NULL,
                     &reading->err);
}

int node_watch_read(const struct node_source *source, struct node_map *map, struct error *err)
{
    int status;
    struct first_reading *reading = malloc(sizeof *reading);
    if (!reading)
        return error_set(err, ERROR_FAILED, "out of memory for the map of the nodes");
    *reading = (struct first_reading){.source = *source, .server = *source->server};
    if (source->login) {
        reading->login = *source->login;
        reading->source.login = &reading->login;
    }
    if (!patience_call(read_first, reading, &status)) // the reading stays, as it may go on
        return error_set(err, ERROR_FAILED, "interrupted before %s had said who its nodes are",
                         source->server->text);
    if (status < 0)
        *err = reading->err;
    else if (node_map_take(map, &reading->ranges, err) < 0)
        status = error_prefix(err, "%s", source->server->text);
    array_free(&reading->ranges);
    free(reading);
    unsigned unserved = status == 0 ? node_map_unserved(map) : 0;
    return unserved ? error_set(err, ERROR_FAILED,
                                "%s: the cluster is not whole: of its %d slots %u are no node's",
                                source->server->text, CLUSTER_SLOTS, unserved)
                    : status;
}

// The other sentinels, as the one that answered knows them: without itself, and with those before
// it that it has not met any more.
static void keep_sentinels(struct node_watch *watch, const struct cluster_ranges *others)
{
    struct error why;
    for (size_t i = 0; i < others->count && watch->sentinel_count < SENTINELS_MOST; i++) {
        const struct cluster_range *one = &others->items[i];
        struct server_address *place = &watch->sentinels[watch->sentinel_count];
        bool known = false;
        for (uint32_t k = 0; k < watch->sentinel_count && !known; k++)
            known = watch->sentinels[k].port == one->port &&
                    strcmp(watch->sentinels[k].host, one->host) == 0;
        if (!known && node_map_place(one, place, &why) == 0)
            watch->sentinel_count++;
    }
}

// A cluster's nodes in turn, and whoever was asked first. Of sentinels the one that answered last,
// as long as it answers: others may learn of a failover later. True: one has answered.
static bool read_again(struct node_watch *watch)
{
    struct cluster_ranges ranges = {0}, others = {0};
    struct error why;
    const bool sentinel = watch->source.sentinel;
    const struct server_address *places = sentinel ? watch->sentinels : watch->map->nodes;
    const uint32_t count = sentinel ? watch->sentinel_count : node_map_count(watch->map);
    bool taken = false;
    for (uint32_t i = 0; i <= count && !taken && !atomic_load(&watch->stop); i++) {
        if (!sentinel || i)
            watch->turn = watch->turn < count ? watch->turn + 1 : 0;
        const struct server_address *server =
            watch->turn < count ? &places[watch->turn] : watch->source.server;
        taken = read_from(&watch->source, server, PATIENCE_MS, &ranges, &others, &why) == 0 &&
                node_map_take(watch->map, &ranges, &why) == 0;
    }
    keep_sentinels(watch, &others);
    array_free(&ranges);
    array_free(&others);
    return taken;
}

static void *watch_main(void *argument)
{
    struct node_watch *watch = argument;
    struct pollfd wake = {.fd = watch->map->wake, .events = POLLIN};
    pthread_setname_np(pthread_self(), "load-nodes");
    while (!atomic_load(&watch->stop)) {
        uint64_t asked;
        int ready = poll(&wake, 1, watch->source.sentinel ? SENTINEL_MS : -1);
        if (ready > 0 && read(wake.fd, &asked, sizeof asked) != sizeof asked)
            continue;
        if ((ready < 0 && errno != EINTR) || atomic_load(&watch->stop))
            break;
        // What becomes known from here on is asked for again.
        atomic_store(&watch->map->wanted, false);
        *(read_again(watch) ? &watch->counts.reads : &watch->counts.failures) += 1;
        for (int ms = 0; ms < PAUSE_MS && !atomic_load(&watch->stop); ms += 10)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return NULL;
}

int node_watch_begin(const struct node_source *source, struct node_map *map,
                     struct node_watch **watch, struct error *err)
{
    struct node_watch *begun = calloc(1, sizeof *begun);
    *watch = NULL;
    if (!begun)
        return error_set(err, ERROR_FAILED, "out of memory for the map of the nodes");
    begun->source = *source;
    begun->turn = SENTINELS_MOST;
    begun->map = map;
    map->wake = eventfd(0, EFD_CLOEXEC);
    sigset_t all, before; // signals are for those who wait for them
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failure = map->wake < 0 ? errno : pthread_create(&begun->thread, NULL, watch_main, begun);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        if (map->wake >= 0)
            close(map->wake);
        map->wake = -1;
        free(begun);
        errno = failure;
        return error_set_errno(err, ERROR_FAILED, "cannot watch the nodes");
    }
    *watch = begun;
    return 0;
}

struct node_watch_counts node_watch_end(struct node_watch *watch)
{
    const uint64_t one = 1;
    if (!watch)
        return (struct node_watch_counts){0};
    atomic_store(&watch->stop, true);
    ssize_t written = write(watch->map->wake, &one, sizeof one);
    (void)written;
    pthread_join(watch->thread, NULL);
    struct node_watch_counts counts = watch->counts;
    close(watch->map->wake);
    watch->map->wake = -1;
    free(watch);
    return counts;
}
