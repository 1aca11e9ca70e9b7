// SPDX-License-Identifier: MIT
#include "workloads/redis_client.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

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
    if (result == 0 && login)
        result = log_in(*redis, login, err);
    if (result < 0) {
        redisFree(*redis);
        *redis = NULL;
    }
    return result;
}
