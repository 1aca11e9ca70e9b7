// SPDX-License-Identifier: MIT
//
// What a node of a cluster or a sentinel says: the words of an error, or a reply that hiredis
// reads. It is refused, or its nodes can be, and a map that takes them in stays whole. The input:
// which of them, then what is said.
#include <arpa/inet.h>
#include <assert.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/client/node_map.h"
#include "workloads/protocols/protocol.h"
#include "workloads/protocols/redis_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS, SLOTS, MASTER, SENTINELS, ASKED };

static void check_words(const uint8_t *data, size_t size)
{
    char said[REPLY_SAID_BYTES] = "";
    memcpy(said, data, size < sizeof said - 1 ? size : sizeof said - 1);
    const struct redirection told = redirection_parse(said);
    if (told.kind == REDIRECTION_MOVED || told.kind == REDIRECTION_ASK)
        assert(memchr(told.host, '\0', sizeof told.host) &&
               (told.port || strlen(said) == sizeof said - 1));
    assert(cluster_slot((const char *)data, size) < CLUSTER_SLOTS);
}

// Numeric addresses only: names would be looked up.
static bool is_numeric(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static void check_ranges(const struct cluster_ranges *ranges)
{
    static struct node_map map;
    struct error err;
    bool numeric = true;
    unsigned slots = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        const struct cluster_range *range = &ranges->items[i];
        assert(range->port && memchr(range->host, '\0', sizeof range->host));
        assert(range->first < CLUSTER_SLOTS && range->last < CLUSTER_SLOTS);
        numeric = numeric && is_numeric(range->host);
        slots += range->first <= range->last;
    }
    if (!numeric || slots > 4)
        return;
    node_map_init(&map, true);
    if (node_map_take(&map, ranges, &err) < 0)
        return;
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        assert(node_map_owner(&map, slot) == NODE_NONE ||
               node_map_owner(&map, slot) < node_map_count(&map));
    assert(node_map_unserved(&map) < CLUSTER_SLOTS || !slots);
}

static void check_reply(unsigned asked, const uint8_t *data, size_t size)
{
    struct cluster_ranges ranges = {0};
    struct error err = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return;
    if (send(ends[1], data, size, MSG_DONTWAIT) == (ssize_t)size) {
        shutdown(ends[1], SHUT_WR);
        redisContext *redis = redisConnectFd(ends[0]);
        redis_client_limit(redis);
        int result = asked == SLOTS    ? cluster_read(redis, "127.0.0.1", &ranges, &err)
                     : asked == MASTER ? sentinel_read(redis, "main", &ranges, &err)
                                       : sentinels_read(redis, "main", &ranges, &err);
        if (result == 0)
            check_ranges(&ranges);
        else
            assert(err.text[0]);
        redisFree(redis); // closes its end
        ends[0] = -1;
    }
    array_free(&ranges);
    if (ends[0] >= 0)
        close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    signal(SIGPIPE, SIG_IGN);
    if (data[0] % ASKED == WORDS)
        check_words(data + 1, size - 1);
    else
        check_reply(data[0] % ASKED, data + 1, size - 1);
    return 0;
}
