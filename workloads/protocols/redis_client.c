// SPDX-License-Identifier: MIT
#include "workloads/protocols/redis_client.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <sys/time.h>

// An array's length is a server's word, and hiredis takes memory for so many elements before the
// first has come: no list that is asked for here is longer than a cluster's slots.
enum { ELEMENTS_MOST = 1 << 16 };

#if HIREDIS_MAJOR >= 1
void redis_client_limit(struct redisContext *redis)
{
    redis->reader->maxelements = ELEMENTS_MOST;
}
#else // 0.14, whose limit is our own way of making an array
static pthread_once_t once = PTHREAD_ONCE_INIT;
static redisReplyObjectFunctions limited; // hiredis' but for that one

static void *make_array(const redisReadTask *task, int elements)
{
    const redisReplyObjectFunctions *own = task->privdata;
    return elements <= ELEMENTS_MOST ? own->createArray(task, elements) : NULL;
}

static void limited_make(void)
{
    redisReader *reader = redisReaderCreate();
    if (!reader)
        return;
    limited = *reader->fn;
    limited.createArray = make_array;
    redisReaderFree(reader);
}

void redis_client_limit(struct redisContext *redis)
{
    pthread_once(&once, limited_make);
    if (!limited.createArray)
        return;
    redis->reader->privdata = redis->reader->fn;
    redis->reader->fn = &limited;
}
#endif

static int log_in(struct redisContext *redis, const struct login_words *login, struct error *err)
{
    int result = 0;
    if (login->count)
        redisAppendFormattedCommand(redis, login->bytes, login->count);
    for (unsigned i = 0; i < login->answers && result == 0; i++) {
        redisReply *reply = NULL;
        if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
            return error_set(err, ERROR_FAILED, "%s", redis->errstr);
        if (reply->type == REDIS_REPLY_ERROR)
            result = error_set(err, ERROR_INPUT, "refuses the login: \"%s\"", reply->str);
        freeReplyObject(reply);
    }
    return result;
}

int redis_client_open(const char *host, uint16_t port, const struct login_words *login,
                      unsigned patience_ms, struct redisContext **redis, struct error *err)
{
    const struct timeval patience = {patience_ms / 1000, patience_ms % 1000 * 1000};
    *redis = host[0] == '/' ? redisConnectUnixWithTimeout(host, patience)
                            : redisConnectWithTimeout(host, port, patience);
    int result = 0;
    if (!*redis)
        return error_set(err, ERROR_FAILED, "out of memory for a connection");
    if ((*redis)->err)
        result = error_set(err, ERROR_FAILED, "%s", (*redis)->errstr);
    else
        redisSetTimeout(*redis, patience);
    redis_client_limit(*redis);
    if (result == 0 && login)
        result = log_in(*redis, login, err);
    if (result < 0) {
        redisFree(*redis);
        *redis = NULL;
    }
    return result;
}
