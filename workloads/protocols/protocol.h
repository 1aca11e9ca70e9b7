// SPDX-License-Identifier: MIT
//
// What the load generator knows of a protocol: a table of functions without I/O, and what is said
// of it. Each is a file that defines NAME_protocol, and a row of protocols.tbl.h. Requests are
// encoded into a buffer; replies are fed in as bytes, split anywhere, and come out as events. One
// reply belongs to one request, in order, on one connection; but not where requests are streams of
// HTTP/2, whose two directions share a state (workloads/protocols/http2_session.h).
//
// A protocol names its own operations; those called get and set come first (0 and 1) where it has
// them. A request is numbered on its connection, so that a protocol whose replies name their
// request (opaque, id) can check that the order is kept.
#ifndef WORKLOADS_PROTOCOLS_PROTOCOL_H
#define WORKLOADS_PROTOCOLS_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct custom;
struct error;
struct http2_dialect;
struct http_words;
struct login;
struct login_words;
struct reply_list;

enum reply_kind {
    REPLY_VALUE,        // a get that found its key
    REPLY_MISS,         // a get that did not
    REPLY_STORED,       // a set that was done
    REPLY_NOT_STORED,   // a set that was refused without an error
    REPLY_SERVER_ERROR, // the server's error, by its own words (memcached: SERVER_ERROR)
    REPLY_CLIENT_ERROR, // the request's error, by the server's words (CLIENT_ERROR, ERROR)
    REPLY_MALFORMED,    // not allowed by the protocol; the parser resynchronised if it could
    REPLY_OVERSIZED,    // a line or a value longer than any the protocol allows
    REPLY_OUT_OF_ORDER, // a reply that names another request than the next one in order
    REPLY_KINDS,
};
extern const char *const reply_kind_names[REPLY_KINDS]; // "value", "miss", ..., for JSON

struct reply {
    enum reply_kind kind;
    uint64_t begin, end;  // bytes it occupies in the server-to-client stream
    uint64_t value_bytes; // of a REPLY_VALUE
    uint64_t key_hash;    // hash_bytes of the key that it names; 0: it names none
};

// Replies that the protocol does not allow where they come: whose they are is not known.
static inline bool reply_is_broken(enum reply_kind kind)
{
    return kind >= REPLY_MALFORMED;
}

// Replies that say what there is of what was asked for.
static inline bool reply_finds(enum reply_kind kind)
{
    return kind == REPLY_VALUE || kind == REPLY_MISS;
}

// Replies that may have words to quote: the server's or the request's error, or nonsense.
static inline bool reply_is_fault(enum reply_kind kind)
{
    return kind > REPLY_NOT_STORED && kind < REPLY_KINDS;
}

enum { REPLY_SAID_BYTES = 100 };

// The parser's state between two calls. Zeroed: the stream's beginning.
struct reply_parser {
    uint64_t offset;      // bytes of the stream consumed so far
    uint64_t reply_begin; // where the reply under way began
    uint64_t number;      // of the reply under way: how many ended before it
    uint64_t data_left;   // bytes of a value (and its line end) still to come
    uint64_t value_bytes; // values seen in the reply under way
    uint64_t elements;    // parts of the reply under way still to come
    uint32_t line_bytes;  // of the line under way, in `line`
    uint16_t values;      // how many values the reply under way holds
    uint8_t state;        // the protocol's own; 0 between replies
    uint8_t kind;         // enum reply_kind of the reply under way, as far as known
    uint16_t parts_due;   // of the reply under way: parts in front of its last one still to come
    uint16_t parts_past;  // and those that came
    uint8_t part_fault;   // the first of them that was a fault; 0: none
    bool in_reply;        // a byte of the reply under way has been seen
    bool aside;           // but none of the reply itself: it may answer what is asked from now on
    bool skipping;        // the line under way is too long: ignore it to its end
    bool data_damaged;    // the value was not followed by its line end
    bool raw_data;        // the value has no line end behind it
    bool resync;          // it is not known where the reply under way begins
    bool greeted;         // the reply to a greeting is past
    bool login;           // the replies are to a login, not to requests
    bool chunked, sized;  // of an HTTP reply: how its body is delimited
    bool until_end;    // by the stream's end (reply_end_with_stream); at most data_left more bytes
    bool bodiless;     // it answers a request of such an operation: the same reader says so
    bool closing;      // the server closes the connection after the reply under way, or the last
    bool closing_said; // HTTP: by a header
    bool refused;      // the server does not take the connection (struct protocol's refusals)
    bool quoted;       // `said` is of the reply under way
    uint64_t key_hash; // of the reply under way, as in struct reply
    // Of the reply under way, which answers a request of many keys (workloads/multiget.h): where
    // its values are listed. A reader of replies sets it before the first byte.
    struct reply_list *list;
    char said[REPLY_SAID_BYTES]; // how the last reply that was a fault began, as text
    char line[512];              // the longest line is a key of 250 bytes and three numbers
};

// A line of a reply, whole, without its CR LF.
struct reply_line {
    const char *bytes; // valid until the parser goes on
    size_t count;
    bool too_long; // bytes hold nothing
};

// What a protocol says of a part of a reply; at an end its kind is in parser->kind.
enum reply_progress {
    REPLY_UNDER_WAY,
    REPLY_ASIDE, // what ended was no part of it, but in front of it, or between two parts
    REPLY_ENDED,
    REPLY_LOST, // it ended, and it is not known where the next begins
};

static const uint64_t request_service_from_server = UINT64_MAX;

struct request {
    unsigned operation; // index into the protocol's operations
    const char *key;
    size_t key_bytes;
    // Of an operation of many_keys: the keys behind that one (request_next_key).
    const char *more_keys;
    unsigned more_key_count;
    const char *value;   // of operations that carry one
    size_t value_bytes;  // of that, or of the reply an operation asks for; else 0
    uint64_t number;     // of this request on its connection, from 0
    uint32_t expiry_s;   // of a set: how long the server is to keep it; 0: for ever
    uint64_t service_ns; // lab: how long the server is to work, or request_service_from_server
    // Of a recorded key: what is asked of it, a bit an operation; 0: nobody knows.
    uint16_t key_operations;
    const struct http_words *http; // http: what goes around the key; NULL: what is usual
    const struct custom *custom;   // custom: what requests say; NULL: what is usual
    // Of a transaction that was recorded (workloads/transactions.h): what it encloses, in order.
    const struct request *commands; // NULL: what is usual
    unsigned command_count;
    bool spelled_out; // of an operation that is named: what it does is said
};

// The next of a request's more_keys: *at begins there, and is then behind it.
static inline const char *request_next_key(const char **at, size_t *bytes)
{
    const char *key = *at + 1;
    *bytes = (unsigned char)**at;
    *at = key + *bytes;
    return key;
}

// What one of them takes at most besides itself, in any protocol: a header of 24 bytes, or a
// command with a number of 20 digits.
enum { REQUEST_MORE_KEY_BYTES = 48 };

// What all keys of a request take, of which request_bytes_max is asked.
static inline size_t request_keys_bytes(const struct request *request)
{
    const char *at = request->more_keys;
    size_t sum = request->key_bytes, bytes;
    for (unsigned i = 0; i < request->more_key_count; i++, sum += bytes + REQUEST_MORE_KEY_BYTES)
        request_next_key(&at, &bytes);
    return sum;
}

struct protocol_operation {
    const char *name;
    double weight;      // its weight in workloads without a mix
    bool carries_value; // the request carries the key's value
    bool states_size;   // it states the length of the reply, which is the key's value size
    bool returns_value; // a value in reply has the size of the key's value
    // It is several commands, of which each but the last is answered before: by so many parts in
    // front of its reply, which together with them is one. A reader of replies says so in the
    // parser's parts_due before the first byte.
    uint8_t parts;
    bool removes;    // that there was nothing to remove is no failure
    bool bodiless;   // its reply is the header alone of what another's would be
    bool many_keys;  // it asks for several keys at once (workloads/multiget.h)
    bool keys_apart; // each of which is answered apart
    bool named;      // a program that the server has by name, or does not know (`unnamed`)
};

// How many a protocol can have, and where these two stand in one that has both.
enum { MULTIGET_KEYS_MAX = 500 };
enum { PROTOCOL_OPERATIONS_MAX = 16, WORKLOAD_GET = 0, WORKLOAD_SET = 1 };

// What workloads ask for at most; a protocol or a server may allow less. A size without bounds of
// its own (a tail's) is cut off at TAIL.
enum {
    WORKLOAD_KEY_BYTES_MAX = 250,
    WORKLOAD_VALUE_BYTES_MAX = 64 << 20,
    WORKLOAD_TAIL_BYTES_MAX = 1 << 20,
};

// The client that prepares the data that the requests ask for.
enum protocol_dataset { DATASET_NONE, DATASET_MEMCACHED, DATASET_REDIS };

enum { PROBE_ANSWERS = 4, PROTOCOL_REFUSALS = 2 };

// A protocol's .probe and its length.
#define PROTOCOL_PROBE(text) .probe = (text), .probe_bytes = sizeof(text) - 1

// A protocol's .wants_login and its length.
#define PROTOCOL_WANTS_LOGIN(text) .wants_login = (text), .wants_login_bytes = sizeof(text) - 1

struct protocol {
    const char *name;   // the row's: NAME_name
    const char *speaks; // what it is: "the memcached text protocol"
    const char
        *replies; // which of its replies count as what (enum reply_kind), for docs/workloads.md
    const struct protocol_operation *operations;
    unsigned operation_count;
    enum protocol_dataset dataset;
    unsigned usual_port;    // where such a server listens when nobody said otherwise
    unsigned tls_port;      // the same under TLS; 0: no other
    bool over_udp;          // it can be used over UDP (workloads/protocols/memcached_udp.h)
    bool says_service;      // a request says how long the server is to work on it
    size_t value_bytes_max; // the most a value may have here; 0: as many as anywhere
    // What any server of this protocol answers and what changes nothing, and how its answers begin
    // (others are another protocol's, or a refusal). Without a probe nothing is asked.
    const char *probe;
    size_t probe_bytes;
    const char *probe_answers[PROBE_ANSWERS];              // NULL: no more
    bool (*probe_begins)(const char *bytes, size_t count); // the same of answers that are no text
    // How what a server says begins that does not take a connection, whatever it would be asked on
    // it: said first of all, it answers no request, and none was looked at.
    const char *refusals[PROTOCOL_REFUSALS]; // NULL: no more
    const char *wants_login; // how the answer begins of one that wants a login first; NULL: none
    size_t wants_login_bytes;
    // The most bytes a request can take with keys and values of at most that length.
    size_t (*request_bytes_max)(size_t key_bytes, size_t value_bytes);
    // What its requests and replies are in streams of HTTP/2, instead of all that encodes requests
    // and takes replies apart. NULL: they are in none.
    const struct http2_dialect *http2;
    // How the answer begins of a server that does not know the program of that name; NULL: there
    // are none.
    const char *unnamed;
    const char *alpn;      // its name in TLS handshakes (RFC 7301), which the server must choose
    bool takes_http_words; // what a workload's `http` says goes around the key
    // Writes the request and returns its length; 0 when out_bytes do not suffice.
    size_t (*encode)(const struct request *request, char *out, size_t out_bytes);
    // How reply_parse (workloads/protocols/reply_parser.h) takes replies apart. Each is a header of
    // header_bytes, or (0) lines; after either parser->data_left bytes of a value may come. Never
    // fails: what is not understood becomes a reply of that kind.
    size_t header_bytes;
    char header_begin;       // its first byte, searched for after a REPLY_LOST
    bool header_begin_alone; // another first byte alone makes a malformed reply, not a whole header
    enum reply_progress (*judge_header)(struct reply_parser *parser); // in parser->line
    enum reply_progress (*judge_line)(struct reply_parser *parser, const struct reply_line *line);
    enum reply_progress (*end_data)(struct reply_parser *parser); // the value is whole
    // The usual replies in one go, where all of one is there: fills kind, value_bytes and key_hash
    // and returns how many bytes it takes. 0: it is another one, or not whole, and is taken apart
    // as above, with the same outcome. NULL: none is usual.
    size_t (*take_usual)(const char *bytes, size_t count, struct reply *reply);
    // Or, of a protocol whose replies are made of neither: takes bytes of a reply, at least one and
    // none behind its end, and returns how many.
    size_t (*take)(const struct protocol *protocol, struct reply_parser *parser, const char *bytes,
                   size_t count, enum reply_progress *progress);
    const struct custom
        *custom; // of a protocol that a workload describes (workloads/protocols/custom.h)
    // What a connection says before its first request to be that user, in that database; with
    // parser->login set, its answers are parsed like replies to requests: a fault is a refusal.
    // ERROR_INPUT: the protocol cannot say such a thing. NULL: it knows no login.
    int (*log_in)(const struct login *login, struct login_words *words, struct error *err);
    bool greets; // a greeting goes in front of the first request, and its reply is no request's
    // Of a protocol whose servers form clusters: the slot of a request's key (CLUSTER_SLOTS of
    // them), which says which server has it. The operation behind the last then asks a server to
    // answer the next request although the slot is not its own yet. NULL: it has no clusters.
    unsigned (*slot)(const struct request *request);
    // Whether that kind of reply can answer that operation.
    bool (*answers)(unsigned operation, enum reply_kind kind);
};

// NAME_protocol and NAME_name of each row.
#define PROTOCOL(symbol, text)                                                                     \
    extern const struct protocol symbol##_protocol;                                                \
    static const char symbol##_name[] = text;
#include "workloads/protocols/protocols.tbl.h"

// Whether they are its first two operations.
bool protocol_has_get_and_set(const struct protocol *protocol);

// Whether one server, at one port, may speak both: dialects of one cache, or versions of HTTP.
bool protocol_shares_server(const struct protocol *one, const struct protocol *other);

// The index of the operation of that name, or -1.
int protocol_operation_find(const struct protocol *protocol, const char *name);

// "get, set": for error messages. Returns out.
char *protocol_operation_names(const struct protocol *protocol, char *out, size_t out_bytes);

#endif
