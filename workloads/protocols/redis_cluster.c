// SPDX-License-Identifier: MIT
#include "workloads/protocols/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/protocol.h"
#include "workloads/protocols/reply_parser.h"

// --- slots ---------------------------------------------------------------------------------------

// clang-format off
static const uint16_t crc_table[256] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
    0xc18c, 0xd1ad, 0xe1ce, 0xf1ef, 0x1231, 0x0210, 0x3273, 0x2252, 0x52b5, 0x4294, 0x72f7, 0x62d6,
    0x9339, 0x8318, 0xb37b, 0xa35a, 0xd3bd, 0xc39c, 0xf3ff, 0xe3de, 0x2462, 0x3443, 0x0420, 0x1401,
    0x64e6, 0x74c7, 0x44a4, 0x5485, 0xa56a, 0xb54b, 0x8528, 0x9509, 0xe5ee, 0xf5cf, 0xc5ac, 0xd58d,
    0x3653, 0x2672, 0x1611, 0x0630, 0x76d7, 0x66f6, 0x5695, 0x46b4, 0xb75b, 0xa77a, 0x9719, 0x8738,
    0xf7df, 0xe7fe, 0xd79d, 0xc7bc, 0x48c4, 0x58e5, 0x6886, 0x78a7, 0x0840, 0x1861, 0x2802, 0x3823,
    0xc9cc, 0xd9ed, 0xe98e, 0xf9af, 0x8948, 0x9969, 0xa90a, 0xb92b, 0x5af5, 0x4ad4, 0x7ab7, 0x6a96,
    0x1a71, 0x0a50, 0x3a33, 0x2a12, 0xdbfd, 0xcbdc, 0xfbbf, 0xeb9e, 0x9b79, 0x8b58, 0xbb3b, 0xab1a,
    0x6ca6, 0x7c87, 0x4ce4, 0x5cc5, 0x2c22, 0x3c03, 0x0c60, 0x1c41, 0xedae, 0xfd8f, 0xcdec, 0xddcd,
    0xad2a, 0xbd0b, 0x8d68, 0x9d49, 0x7e97, 0x6eb6, 0x5ed5, 0x4ef4, 0x3e13, 0x2e32, 0x1e51, 0x0e70,
    0xff9f, 0xefbe, 0xdfdd, 0xcffc, 0xbf1b, 0xaf3a, 0x9f59, 0x8f78, 0x9188, 0x81a9, 0xb1ca, 0xa1eb,
    0xd10c, 0xc12d, 0xf14e, 0xe16f, 0x1080, 0x00a1, 0x30c2, 0x20e3, 0x5004, 0x4025, 0x7046, 0x6067,
    0x83b9, 0x9398, 0xa3fb, 0xb3da, 0xc33d, 0xd31c, 0xe37f, 0xf35e, 0x02b1, 0x1290, 0x22f3, 0x32d2,
    0x4235, 0x5214, 0x6277, 0x7256, 0xb5ea, 0xa5cb, 0x95a8, 0x8589, 0xf56e, 0xe54f, 0xd52c, 0xc50d,
    0x34e2, 0x24c3, 0x14a0, 0x0481, 0x7466, 0x6447, 0x5424, 0x4405, 0xa7db, 0xb7fa, 0x8799, 0x97b8,
    0xe75f, 0xf77e, 0xc71d, 0xd73c, 0x26d3, 0x36f2, 0x0691, 0x16b0, 0x6657, 0x7676, 0x4615, 0x5634,
    0xd94c, 0xc96d, 0xf90e, 0xe92f, 0x99c8, 0x89e9, 0xb98a, 0xa9ab, 0x5844, 0x4865, 0x7806, 0x6827,
    0x18c0, 0x08e1, 0x3882, 0x28a3, 0xcb7d, 0xdb5c, 0xeb3f, 0xfb1e, 0x8bf9, 0x9bd8, 0xabbb, 0xbb9a,
    0x4a75, 0x5a54, 0x6a37, 0x7a16, 0x0af1, 0x1ad0, 0x2ab3, 0x3a92, 0xfd2e, 0xed0f, 0xdd6c, 0xcd4d,
    0xbdaa, 0xad8b, 0x9de8, 0x8dc9, 0x7c26, 0x6c07, 0x5c64, 0x4c45, 0x3ca2, 0x2c83, 0x1ce0, 0x0cc1,
    0xef1f, 0xff3e, 0xcf5d, 0xdf7c, 0xaf9b, 0xbfba, 0x8fd9, 0x9ff8, 0x6e17, 0x7e36, 0x4e55, 0x5e74,
    0x2e93, 0x3eb2, 0x0ed1, 0x1ef0,
};
// clang-format on

unsigned cluster_slot(const char *key, size_t bytes)
{
    const char *open = memchr(key, '{', bytes);
    const char *close = open ? memchr(open, '}', bytes - (size_t)(open - key)) : NULL;
    if (close && close > open + 1) {
        key = open + 1;
        bytes = (size_t)(close - key);
    }
    uint16_t crc = 0;
    for (size_t i = 0; i < bytes; i++)
        crc = (uint16_t)(crc << 8 ^ crc_table[(crc >> 8 ^ (unsigned char)key[i]) & 0xff]);
    return crc % CLUSTER_SLOTS;
}

// --- redirections --------------------------------------------------------------------------------

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

// "<slot> <host>:<port>", where an IPv6 address has no brackets.
static struct redirection take_target(enum redirection_kind kind, const char *text)
{
    const struct redirection none = {.kind = REDIRECTION_NONE};
    struct redirection found = {.kind = kind};
    const char *end = text + strlen(text);
    uint64_t slot = 0, port = 0;
    if (!line_digits(&text, end, CLUSTER_SLOTS, &slot) || slot >= CLUSTER_SLOTS || *text != ' ')
        return none;
    found.slot = (unsigned)slot;
    const char *host = text + 1, *colon = strrchr(host, ':');
    if (!colon || (size_t)(colon - host) >= sizeof found.host || memchr(host, ' ', strlen(host)))
        return none;
    const char *digits = colon + 1;
    if (!line_digits(&digits, end, UINT16_MAX, &port) || digits != end || port < 1 ||
        port > UINT16_MAX)
        return none;
    memcpy(found.host, host, (size_t)(colon - host));
    found.port = (uint16_t)port;
    return found;
}

struct redirection redirection_parse(const char *said)
{
    static const char *const later[] = {"TRYAGAIN ", "CLUSTERDOWN ", "LOADING ", "READONLY ",
                                        "MASTERDOWN "};
    const bool cut = strlen(said) == REPLY_SAID_BYTES - 1; // of a name that is too long to keep
    said += *said == '-';
    const bool moved = begins(said, "MOVED "), asked = begins(said, "ASK ");
    if (moved || asked) {
        enum redirection_kind kind = moved ? REDIRECTION_MOVED : REDIRECTION_ASK;
        const char *target = strchr(said, ' ') + 1;
        return cut ? (struct redirection){.kind = kind, .slot = (unsigned)strtoul(target, NULL, 10)}
                   : take_target(kind, target);
    }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (begins(said, later[i]))
            return (struct redirection){.kind = REDIRECTION_LATER};
    return (struct redirection){.kind = REDIRECTION_NONE};
}

// --- who owns what -------------------------------------------------------------------------------

static int read_fails(const char *why, struct error *err)
{
    return error_set(err, ERROR_FAILED, "%s", why);
}

static bool is_integer(const redisReply *reply, long long most)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= most;
}

// [first, last, [host, port, ...], replicas ...]: a node that does not know its own name says "" or
// nil.
static bool take_range(const redisReply *reply, const char *asked, struct cluster_range *range)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
        !is_integer(reply->element[0], CLUSTER_SLOTS - 1) ||
        !is_integer(reply->element[1], CLUSTER_SLOTS - 1))
        return false;
    const redisReply *node = reply->element[2];
    if (node->type != REDIS_REPLY_ARRAY || node->elements < 2 ||
        !is_integer(node->element[1], UINT16_MAX))
        return false;
    const redisReply *name = node->element[0];
    const bool named = name->type == REDIS_REPLY_STRING && name->len > 0;
    const char *host = named ? name->str : asked;
    if ((!named && name->type != REDIS_REPLY_NIL && name->type != REDIS_REPLY_STRING) ||
        strlen(host) >= sizeof range->host)
        return false;
    range->first = (unsigned)reply->element[0]->integer;
    range->last = (unsigned)reply->element[1]->integer;
    range->port = (uint16_t)node->element[1]->integer;
    snprintf(range->host, sizeof range->host, "%s", host);
    return range->port > 0;
}

int cluster_read(struct redisContext *redis, const char *host, struct cluster_ranges *ranges,
                 struct error *err)
{
    redisReply *reply = redisCommand(redis, "CLUSTER SLOTS");
    int result = 0;
    ranges->count = 0;
    if (!reply)
        return read_fails(redis->errstr, err);
    if (reply->type == REDIS_REPLY_ERROR)
        result = error_set(err, ERROR_INPUT, "it is no node of a cluster: \"%.100s\"", reply->str);
    else if (reply->type != REDIS_REPLY_ARRAY)
        result = read_fails("its answer to CLUSTER SLOTS is none", err);
    for (size_t i = 0; result == 0 && i < reply->elements; i++) {
        struct cluster_range range;
        if (!take_range(reply->element[i], host, &range))
            result = read_fails("its answer to CLUSTER SLOTS cannot be", err);
        else if (array_push(ranges, range) < 0)
            result = read_fails("out of memory for the slots of a cluster", err);
    }
    freeReplyObject(reply);
    return result;
}

// A host and a port as sentinels write them: both as text.
static bool take_place(const redisReply *host, const redisReply *port, struct cluster_range *range)
{
    uint64_t number = 0;
    if (!host || !port || host->type != REDIS_REPLY_STRING || port->type != REDIS_REPLY_STRING ||
        host->len >= sizeof range->host)
        return false;
    const char *digits = port->str, *end = digits + strlen(digits);
    if (!line_digits(&digits, end, UINT16_MAX, &number) || digits != end || number < 1 ||
        number > UINT16_MAX)
        return false;
    *range = (struct cluster_range){.first = 0, .last = CLUSTER_SLOTS - 1};
    snprintf(range->host, sizeof range->host, "%s", host->str);
    range->port = (uint16_t)number;
    return true;
}

int sentinel_read(struct redisContext *redis, const char *name, struct cluster_ranges *ranges,
                  struct error *err)
{
    redisReply *reply = redisCommand(redis, "SENTINEL get-master-addr-by-name %s", name);
    struct cluster_range all;
    int result = 0;
    ranges->count = 0;
    if (!reply)
        return read_fails(redis->errstr, err);
    if (reply->type == REDIS_REPLY_ERROR)
        result = error_set(err, ERROR_INPUT, "it is no sentinel: \"%.100s\"", reply->str);
    else if (reply->type == REDIS_REPLY_NIL)
        result = error_set(err, ERROR_INPUT, "it knows no master named \"%s\"", name);
    else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
             !take_place(reply->element[0], reply->element[1], &all))
        result = read_fails("its answer to SENTINEL get-master-addr-by-name cannot be", err);
    else if (array_push(ranges, all) < 0)
        result = read_fails("out of memory for a sentinel's master", err);
    freeReplyObject(reply);
    return result;
}

// The value behind that name in a list of names and values.
static const redisReply *named_value(const redisReply *list, const char *name)
{
    for (size_t i = 0; list->type == REDIS_REPLY_ARRAY && i + 1 < list->elements; i += 2)
        if (list->element[i]->type == REDIS_REPLY_STRING &&
            strcmp(list->element[i]->str, name) == 0)
            return list->element[i + 1];
    return NULL;
}

int sentinels_read(struct redisContext *redis, const char *name, struct cluster_ranges *sentinels,
                   struct error *err)
{
    redisReply *reply = redisCommand(redis, "SENTINEL sentinels %s", name);
    int result = 0;
    sentinels->count = 0;
    if (!reply)
        return read_fails(redis->errstr, err);
    if (reply->type != REDIS_REPLY_ARRAY)
        result = read_fails("its answer to SENTINEL sentinels is none", err);
    for (size_t i = 0; result == 0 && i < reply->elements; i++) {
        struct cluster_range one;
        if (take_place(named_value(reply->element[i], "ip"), named_value(reply->element[i], "port"),
                       &one) &&
            array_push(sentinels, one) < 0)
            result = read_fails("out of memory for sentinels", err);
    }
    freeReplyObject(reply);
    return result;
}
