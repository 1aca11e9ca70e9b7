// SPDX-License-Identifier: MIT
//
// The laboratory protocol: the simplest possible request, for testing the measurement itself. All
// numbers are big-endian.
//
//     request, 24 bytes                          reply, 16 bytes and its payload
//      0  4  "LABQ"                               0  4  "LABR"
//      4  4  payload bytes the reply is to have   4  4  payload bytes that follow
//      8  8  id                                   8  8  id of the request it answers
//     16  8  ns the server is to work before     16  .  payload: the bytes' values mean nothing
//            it replies; 2^64-1: as it was told
//            when started (labserver --service)
//
// The client's id is the request's number on its connection, so replies come in order. A workload's
// key only decides how long the payload is.
#ifndef WORKLOADS_PROTOCOLS_LAB_H
#define WORKLOADS_PROTOCOLS_LAB_H

#include "workloads/protocols/protocol.h"

enum {
    LAB_REQUEST_BYTES = 24,
    LAB_REPLY_BYTES = 16,
    LAB_PAYLOAD_BYTES_MAX = 1 << 20,
};

// A server never works longer than this on one request, whatever it asks for.
static const uint64_t lab_service_ns_max = 10000000000u;

struct lab_request {
    uint64_t id;
    uint64_t service_ns; // or request_service_from_server
    uint32_t payload_bytes;
};

// For the server: parses LAB_REQUEST_BYTES; false: they are no request.
bool lab_request_read(const char *bytes, struct lab_request *request);

// Writes the LAB_REPLY_BYTES that precede a payload.
void lab_reply_write(char *out, uint64_t id, uint32_t payload_bytes);

#endif
