// SPDX-License-Identifier: MIT
//
// A protocol that the workload itself describes, for servers of one's own: what each request says,
// and how replies are delimited and told apart. It needs no code.
//
//     protocol: custom
//     custom:
//       requests:
//         get: "GET {key}\r\n"
//         put: "{hex:01}{rest_size:u32}{key_size:u16}{key}{value}"
//       reply:
//         until: "\r\n"                            # or length: {at: 0, bytes: 4}
//         error: ["ERR"]
//
// custom_text.h reads the texts, custom_file.h the keys.
#ifndef WORKLOADS_PROTOCOLS_CUSTOM_H
#define WORKLOADS_PROTOCOLS_CUSTOM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "workloads/protocols/custom_text.h"
#include "workloads/protocols/protocol.h"

enum {
    CUSTOM_MARKS_MAX = 8,    // of a kind
    CUSTOM_HEAD_BYTES = 512, // of a reply, where all that is looked at must be
    CUSTOM_NAME_BYTES = 32,  // of a request, with its NUL
};

// --- replies -------------------------------------------------------------------------------------

struct custom_number {
    uint64_t at, bytes; // bytes 0: there is none
    unsigned order;     // 0: its highest byte is the first, 1: its lowest
    int adds;           // to what it says
};

// What a reply's status can say, in the order in which it is asked.
enum custom_verdict { CUSTOM_ERROR, CUSTOM_MISS, CUSTOM_STORED, CUSTOM_OK, CUSTOM_VERDICTS };
extern const char *const custom_verdict_names[CUSTOM_VERDICTS]; // "error", "miss", ...

struct custom_reply {
    struct custom_mark until;    // what ends it; or, without one,
    struct custom_number length; // how many bytes are behind this number
    struct custom_number number; // which request it answers, as CUSTOM_NUMBER
    uint64_t most_bytes;
    uint64_t status_at; // where the status begins
    struct custom_mark marks[CUSTOM_VERDICTS][CUSTOM_MARKS_MAX];
    unsigned mark_count[CUSTOM_VERDICTS];
};

// --- the whole -----------------------------------------------------------------------------------

struct custom {
    struct protocol protocol; // whose operations are those below
    struct protocol_operation operations[PROTOCOL_OPERATIONS_MAX];
    char names[PROTOCOL_OPERATIONS_MAX][CUSTOM_NAME_BYTES];
    struct custom_text requests[PROTOCOL_OPERATIONS_MAX]; // of the operation of the same index
    unsigned request_count;
    struct custom_reply reply;
};

// Without requests yet, and with replies that are lines; NULL: no memory. custom_free frees it.
struct custom *custom_alloc(void);
void custom_free(struct custom *custom); // NULL: nothing

// Adds a request of that name, which becomes an operation of the protocol. get and set are first,
// whenever they are added.
int custom_add(struct custom *custom, const char *name, const char *source, struct error *err);

// Whether a request of that operation says for how long a value is to be kept.
bool custom_says_expiry(const struct custom *custom, unsigned operation);

// By how much requests can be longer than a key and a value. NULL: of the protocol that no
// workload describes.
size_t custom_bytes(const struct custom *custom);

// Whether a reply can be one of both: it ends alike, and has its number in the same place if both
// look for one. NULL: replies are lines, of a server that no workload describes.
bool custom_share_replies(const struct custom *one, const struct custom *other);

// As it would be given in YAML. The caller owns it; NULL: no memory.
json_t *custom_to_json(const struct custom *custom);

#endif
