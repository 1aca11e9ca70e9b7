// SPDX-License-Identifier: MIT
//
// HTTP/1.1, client side: GET /<key> on connections kept alive, pipelined (RFC 9110, RFC 9112).
// Bodies are delimited by Content-Length or chunks; one that only the connection's end would
// delimit is malformed here. 2xx is a value, 404 and 410 a miss, 5xx the server's error, the rest
// the client's; 1xx come in front of a reply and are none.
#ifndef WORKLOADS_HTTP_H
#define WORKLOADS_HTTP_H

#include "workloads/protocol.h"

extern const struct protocol http_protocol;

#endif
