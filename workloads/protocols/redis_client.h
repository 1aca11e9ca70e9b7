// SPDX-License-Identifier: MIT
//
// A connection of hiredis, for what is asked besides the load: the dataset, who owns which slots.
#ifndef WORKLOADS_PROTOCOLS_REDIS_CLIENT_H
#define WORKLOADS_PROTOCOLS_REDIS_CLIENT_H

#include <stdint.h>

#include "base/error.h"
#include "workloads/protocols/login.h"

struct redisContext;

// Connects and logs in, waiting that long for each answer, as for all later ones. host: a name, an
// address or, beginning with "/", the path of a UNIX socket, for which port is ignored. login may
// be NULL. *redis is the caller's to free (redisFree), NULL after an error. ERROR_INPUT: the login
// is refused, and the answer quoted; ERROR_FAILED: nobody answers, with hiredis' words.
int redis_client_open(const char *host, uint16_t port, const struct login_words *login,
                      unsigned patience_ms, struct redisContext **redis, struct error *err);

// From now on an answer that says to be a longer list than any that is asked for here is "out of
// memory"; redis_client_open has done so.
void redis_client_limit(struct redisContext *redis);

#endif
