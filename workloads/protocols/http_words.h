// SPDX-License-Identifier: MIT
//
// What the requests of an HTTP workload say besides their method and key: the target around the
// key, the host, and headers (RFC 9110, RFC 9112).
#ifndef WORKLOADS_PROTOCOLS_HTTP_WORDS_H
#define WORKLOADS_PROTOCOLS_HTTP_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

// Zeroed: GET /<key>, for a host that is called taillight.
struct http_words {
    char *path, *host, *headers; // as given, each header with CR LF behind it; NULL: not given
    char *before, *after;        // what goes around the key: " /a/", ".png HTTP/1.1 ... CR LF"
    size_t before_bytes, after_bytes;
    bool fixed; // the target has no key: all requests ask for the same
};

// Sets what is not NULL and keeps the rest. path: "/a/{key}?b", where {key} stands for the key, or
// a target without one; headers: each "Name: value". What cannot stand in a request, or what the
// load writes itself (Content-Length), is ERROR_INPUT.
int http_words_set(struct http_words *words, const char *path, const char *host,
                   const char *const *headers, size_t header_count, struct error *err);

// By how much they make the longest request longer.
size_t http_words_bytes(const struct http_words *words);

// As they are given in YAML; NULL: nothing was given, or no memory. The caller owns it.
json_t *http_words_to_json(const struct http_words *words);

void http_words_free(struct http_words *words);

#endif
