// SPDX-License-Identifier: MIT
//
// What every version of HTTP means by the same words (RFC 9110): methods as operations, and the
// verdict of a status.
#ifndef WORKLOADS_PROTOCOLS_HTTP_SEMANTICS_H
#define WORKLOADS_PROTOCOLS_HTTP_SEMANTICS_H

#include "workloads/protocols/protocol.h"

enum { HTTP_METHODS = 5 };
extern const struct protocol_operation http_operations[HTTP_METHODS];
extern const char *const http_methods[HTTP_METHODS]; // of each operation, as requests have it

// 2xx and 304 are a value, 404 and 410 a miss, 5xx the server's error, the rest the client's.
enum reply_kind http_kind_of_status(unsigned status);

// struct protocol's `answers`: of any method.
bool http_answers(unsigned operation, enum reply_kind kind);

#endif
