// SPDX-License-Identifier: MIT
//
// The dataset of Redis, by hiredis, pipelined. What the mix reads decides what is stored: strings
// for get, lists of REDIS_RANGE elements for lrange and lpop, hashes of one field for hget, sorted
// sets of REDIS_RANGE members for zrange, streams of as many entries for xrange, and the script.
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "workloads/dataset_client.h"
#include "workloads/protocols/redis.h"
#include "workloads/protocols/redis_client.h"
#include "workloads/protocols/redis_cluster.h"

enum {
    COMMANDS_AT_ONCE = 256, // in flight, pipelined
    PROGRESS_EVERY = 2000,
    PATIENCE_MS = 5000,           // for a connection or any single answer
    LOADING_PATIENCE_MS = 120000, // for a server that reads what it had stored before it was ended
    LOADING_PAUSE_MS = 50,
    KEY_BYTES_MAX = WORKLOAD_KEY_BYTES_MAX + 8,
};

enum data_type { TYPE_STRING, TYPE_LIST, TYPE_HASH, TYPE_SORTED_SET, TYPE_STREAM, TYPES };

static const char *const prefixes[TYPES] = {"", "list:", "hash:", "zset:", "stream:"};

static int redis_refuse(const struct dataset *dataset, const char *doing, const char *why,
                        struct error *err)
{
    bool is_node = strncmp(why, "MOVED ", 6) == 0 || strncmp(why, "CLUSTERDOWN ", 12) == 0;
    return error_set(err, ERROR_FAILED, "cannot %s the dataset at %s: %s (%s)", doing,
                     dataset->place, why,
                     is_node && !dataset->nodes
                         ? "it is a node of a Redis Cluster: --cluster, or `cluster: true` of the "
                           "experiment's load"
                         : "is Redis running there, with room for the data?");
}

static size_t count_nodes(const struct dataset *dataset)
{
    return dataset->nodes ? dataset->nodes->count : 1;
}

static void close_clients(struct dataset *dataset)
{
    for (size_t i = 0; dataset->redis && i < count_nodes(dataset); i++)
        if (dataset->redis[i])
            redisFree(dataset->redis[i]);
    free(dataset->redis);
}

// A server that was begun with data of its own listens long before it has read them, and refuses
// every command until then.
static int wait_until_loaded(const struct dataset *dataset, struct redisContext *redis,
                             struct error *err)
{
    const int64_t until_ms = monotonic_ms() + LOADING_PATIENCE_MS;
    for (;;) {
        redisReply *reply = redisCommand(redis, "PING");
        if (!reply)
            return redis_refuse(dataset, "load", redis->errstr, err);
        bool loads = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0;
        freeReplyObject(reply);
        if (!loads)
            return 0; // another refusal is that of the commands themselves, too
        if (monotonic_ms() > until_ms)
            return error_set(err, ERROR_FAILED,
                             "%s has been loading data of its own for %d s: try again when it "
                             "answers, or begin it without them",
                             dataset->place, LOADING_PATIENCE_MS / 1000);
        if (dataset_tell(dataset, "Redis still loads data of its own; storing", 0, err) < 0)
            return -ERROR_FAILED;
        nanosleep(&(struct timespec){.tv_nsec = LOADING_PAUSE_MS * 1000000}, NULL);
    }
}

// In RESP2, whatever the load speaks: this client knows no other.
static int open_clients(struct dataset *dataset, struct error *err)
{
    const struct dataset_node alone = {dataset->host, dataset->port};
    const struct dataset_node *nodes = dataset->nodes ? dataset->nodes->nodes : &alone;
    struct login_words words;
    int result = login_make_words(dataset->login, &redis_protocol, &words, err);
    if (result < 0)
        return result;
    dataset->redis = calloc(count_nodes(dataset), sizeof *dataset->redis);
    if (!dataset->redis)
        return error_set(err, ERROR_FAILED, "out of memory for the dataset");
    for (size_t i = 0; i < count_nodes(dataset) && result == 0; i++)
        result = redis_client_open(nodes[i].host, nodes[i].port, &words, PATIENCE_MS,
                                   &dataset->redis[i], err);
    if (result == -ERROR_INPUT)
        return error_prefix(err, "%s", dataset->place);
    if (result < 0)
        return redis_refuse(dataset, "load", err->text, err);
    for (size_t i = 0; i < count_nodes(dataset) && result == 0; i++)
        result = wait_until_loaded(dataset, dataset->redis[i], err);
    return result;
}

static size_t make_key(const struct dataset *dataset, enum data_type type, uint64_t index,
                       char key[KEY_BYTES_MAX])
{
    size_t prefix_bytes = strlen(prefixes[type]);
    memcpy(key, prefixes[type], prefix_bytes);
    return prefix_bytes + workload_key(dataset->workload, index, key + prefix_bytes);
}

// Whom that key is stored at.
static struct redisContext *client_of(const struct dataset *dataset, enum data_type type,
                                      uint64_t index)
{
    char key[KEY_BYTES_MAX];
    if (!dataset->nodes)
        return dataset->redis[0];
    size_t bytes = make_key(dataset, type, index, key);
    return dataset->redis[dataset->nodes->owners[cluster_slot(key, bytes)]];
}

// Whose value is dataset->value. Returns how many commands that took.
static int append_stream(struct dataset *dataset, const char *key, size_t key_bytes,
                         size_t value_bytes, struct redisContext *redis)
{
    if (redisAppendCommand(redis, "DEL %b", key, key_bytes) != REDIS_OK)
        return -1;
    for (int i = 0; i < REDIS_RANGE; i++)
        if (redisAppendCommand(redis, "XADD %b %d-0 field %b", key, key_bytes, i + 1,
                               dataset->value, value_bytes) != REDIS_OK)
            return -1;
    dataset->report->stored++;
    dataset->report->bytes += key_bytes + REDIS_RANGE * value_bytes;
    return 1 + REDIS_RANGE;
}

// Puts the commands that make one key's data of a type. Returns how many.
static int append_store(struct dataset *dataset, enum data_type type, uint64_t index)
{
    enum { WORDS = 2 + 2 * REDIS_RANGE };
    static const char *const digits[REDIS_RANGE] = {"0", "1", "2", "3", "4",
                                                    "5", "6", "7", "8", "9"};
    static const char *const names[TYPE_STREAM] = {"SET", "RPUSH", "HSET", "ZADD"};
    char key[KEY_BYTES_MAX];
    size_t key_bytes = make_key(dataset, type, index, key);
    size_t value_bytes = workload_value_bytes(dataset->workload, index);
    struct redisContext *redis = client_of(dataset, type, index);
    workload_value(dataset->workload, index, dataset->value);
    if (type == TYPE_STREAM)
        return append_stream(dataset, key, key_bytes, value_bytes, redis);
    const char *words[WORDS] = {names[type], key};
    size_t bytes[WORDS] = {strlen(names[type]), key_bytes};
    int count = 2;
    if (type == TYPE_HASH) {
        words[count] = "field";
        bytes[count++] = 5;
    }
    for (int i = 0; i < 2 * REDIS_RANGE && type == TYPE_SORTED_SET; i++, count++) {
        words[count] = digits[i / 2]; // score and member
        bytes[count] = 1;
    }
    int values = type == TYPE_LIST ? REDIS_RANGE : type == TYPE_SORTED_SET ? 0 : 1;
    for (int i = 0; i < values; i++, count++) {
        words[count] = dataset->value;
        bytes[count] = value_bytes;
    }
    dataset->report->stored++;
    dataset->report->bytes += key_bytes + (size_t)values * value_bytes;
    if (type == TYPE_STRING)
        return redisAppendCommandArgv(redis, count, words, bytes) == REDIS_OK ? 1 : -1;
    // Otherwise this would be added to what an earlier run left.
    return redisAppendCommand(redis, "DEL %b", key, key_bytes) == REDIS_OK &&
                   redisAppendCommandArgv(redis, count, words, bytes) == REDIS_OK
               ? 2
               : -1;
}

static int append_read(struct dataset *dataset, enum data_type type, uint64_t index)
{
    static const char *const formats[TYPES] = {"GET %b", "LRANGE %b 0 -1", "HGET %b field",
                                               "ZRANGE %b 0 -1", "XRANGE %b - +"};
    char key[KEY_BYTES_MAX];
    size_t key_bytes = make_key(dataset, type, index, key);
    struct redisContext *redis = client_of(dataset, type, index);
    return redisAppendCommand(redis, formats[type], key, key_bytes) == REDIS_OK ? 1 : -1;
}

static bool is_value(const struct dataset *dataset, const redisReply *reply, size_t bytes)
{
    return reply->type == REDIS_REPLY_STRING && reply->len == bytes &&
           memcmp(reply->str, dataset->value, bytes) == 0;
}

// Compares a reply with what was stored.
static bool reply_matches(struct dataset *dataset, enum data_type type, uint64_t index,
                          const redisReply *reply)
{
    size_t bytes = workload_value_bytes(dataset->workload, index);
    workload_value(dataset->workload, index, dataset->value);
    if (type == TYPE_STRING || type == TYPE_HASH)
        return is_value(dataset, reply, bytes);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != REDIS_RANGE)
        return false;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *element = reply->element[i];
        if (type == TYPE_STREAM &&
            (element->type != REDIS_REPLY_ARRAY || element->elements != 2 ||
             element->element[1]->type != REDIS_REPLY_ARRAY || element->element[1]->elements != 2 ||
             !is_value(dataset, element->element[1]->element[1], bytes)))
            return false;
        if (type == TYPE_LIST && !is_value(dataset, element, bytes))
            return false;
        if (type == TYPE_SORTED_SET && (element->type != REDIS_REPLY_STRING || element->len != 1 ||
                                        element->str[0] != (char)('0' + i)))
            return false;
    }
    return true;
}

// Takes the replies of one key's commands; only the last one holds the data.
static int take_replies(struct dataset *dataset, enum data_type type, uint64_t index, int count,
                        bool verify, struct error *err)
{
    char key[KEY_BYTES_MAX];
    size_t key_bytes = verify ? make_key(dataset, type, index, key) : 0;
    struct redisContext *redis = client_of(dataset, type, index);
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        redisReply *reply = NULL;
        if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
            return redis_refuse(dataset, verify ? "verify" : "store", redis->errstr, err);
        if (reply->type == REDIS_REPLY_ERROR)
            result = redis_refuse(dataset, verify ? "verify" : "store", reply->str, err);
        else if (verify && !reply_matches(dataset, type, index, reply))
            result = error_set(err, ERROR_FAILED,
                               "%s: what key %.*s holds is not what was stored: Redis "
                               "evicted it (maxmemory), or another client writes there",
                               dataset->place, (int)key_bytes, key);
        else if (verify)
            dataset->report->verified++;
        freeReplyObject(reply);
    }
    return result;
}

static int dataset_pass(struct dataset *dataset, enum data_type type, bool verify,
                        struct error *err)
{
    uint64_t all = dataset->workload->key_count;
    int counts[COMMANDS_AT_ONCE];
    for (uint64_t first = 0; first < all; first += COMMANDS_AT_ONCE) {
        uint64_t count = all - first < COMMANDS_AT_ONCE ? all - first : COMMANDS_AT_ONCE;
        for (uint64_t i = 0; i < count; i++) {
            counts[i] = verify ? append_read(dataset, type, first + i)
                               : append_store(dataset, type, first + i);
            if (counts[i] < 0)
                return error_set(err, ERROR_FAILED, "out of memory for the dataset");
        }
        for (uint64_t i = 0; i < count; i++) {
            int result = take_replies(dataset, type, first + i, counts[i], verify, err);
            if (result < 0)
                return result;
        }
        uint64_t done = first + count;
        if ((done / PROGRESS_EVERY != first / PROGRESS_EVERY || done == all) &&
            dataset_tell(dataset, verify ? "verifying" : "storing", done, err) < 0)
            return -ERROR_FAILED;
    }
    return 0;
}

// At each server; that its name is the one that requests say is seen by the answer.
static int load_script(struct dataset *dataset, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < count_nodes(dataset) && result == 0; i++) {
        struct redisContext *redis = dataset->redis[i];
        redisReply *reply = redisCommand(redis, "SCRIPT LOAD %s", REDIS_SCRIPT_TEXT);
        if (!reply || reply->type == REDIS_REPLY_ERROR)
            result = redis_refuse(dataset, "load", reply ? reply->str : redis->errstr, err);
        else if (reply->type != REDIS_REPLY_STRING || strcmp(reply->str, REDIS_SCRIPT_SHA) != 0)
            result = redis_refuse(dataset, "load", "it gives the script another name", err);
        freeReplyObject(reply);
    }
    return result;
}

int dataset_prepare_redis(struct dataset *dataset, struct error *err)
{
    const double *mix = dataset->workload->mix;
    const bool wanted[TYPES] = {
        [TYPE_STRING] = mix[REDIS_GET] > 0 || mix[REDIS_SET] > 0 || mix[REDIS_SCRIPT] > 0 ||
                        mix[REDIS_TRANSACTION] > 0 || mix[REDIS_MULTIGET] > 0,
        [TYPE_LIST] = mix[REDIS_LRANGE] > 0 || mix[REDIS_LPOP] > 0,
        [TYPE_HASH] = mix[REDIS_HGET] > 0,
        [TYPE_SORTED_SET] = mix[REDIS_ZRANGE] > 0,
        [TYPE_STREAM] = mix[REDIS_XRANGE] > 0};
    int result = open_clients(dataset, err);
    if (result == 0 && mix[REDIS_SCRIPT] > 0)
        result = load_script(dataset, err);
    for (int verify = 0; verify < 2 && result == 0; verify++)
        for (enum data_type type = 0; type < TYPES && result == 0; type++)
            if (wanted[type])
                result = dataset_pass(dataset, type, verify, err);
    close_clients(dataset);
    return result;
}
