// SPDX-License-Identifier: MIT
#include "workloads/protocols/http_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

enum { PATH_BYTES_MAX = 2000, HOST_BYTES_MAX = 260, HEADERS_BYTES_MAX = 16384 };

static const char key_mark[] = "{key}";

// --- what may stand in a request -----------------------------------------------------------------

static int check_path(const char *path, struct error *err)
{
    const char *mark = strstr(path, key_mark);
    if (path[0] != '/')
        return error_set(err, ERROR_INPUT, "path: \"%.200s\" does not begin with /", path);
    if (strlen(path) > PATH_BYTES_MAX)
        return error_set(err, ERROR_INPUT, "path: more than %d bytes", PATH_BYTES_MAX);
    for (const char *at = path; *at; at++)
        if (*at <= ' ' || *at > '~' || *at == '#')
            return error_set(err, ERROR_INPUT,
                             "path: byte %zu of \"%.200s\" cannot stand there; write it as %%%02X",
                             (size_t)(at - path) + 1, path, (unsigned char)*at);
    if (mark && strstr(mark + 1, key_mark))
        return error_set(err, ERROR_INPUT, "path: \"%.200s\" has %s more than once", path,
                         key_mark);
    return 0;
}

static int check_host(const char *host, struct error *err)
{
    size_t bytes = strlen(host);
    if (bytes == 0 || bytes > HOST_BYTES_MAX)
        return error_set(err, ERROR_INPUT, "host: a name has 1 to %d bytes", HOST_BYTES_MAX);
    for (const char *at = host; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("/@?#", *at))
            return error_set(err, ERROR_INPUT, "host: \"%.200s\" is not HOST or HOST:PORT", host);
    return 0;
}

// The length of the name before the colon; 0: that is no header (RFC 9110 5.6.2).
static size_t header_name_bytes(const char *header)
{
    size_t bytes = 0;
    while (isalnum((unsigned char)header[bytes]) ||
           (header[bytes] && strchr("!#$%&'*+-.^_`|~", header[bytes])))
        bytes++;
    return header[bytes] == ':' ? bytes : 0;
}

static bool header_is(const char *header, const char *name)
{
    size_t bytes = header_name_bytes(header);
    return bytes == strlen(name) && strncasecmp(header, name, bytes) == 0;
}

static int check_header(const char *header, struct error *err)
{
    static const char *const own[] = {"Host",       "Content-Length", "Transfer-Encoding",
                                      "Connection", "Expect",         "Upgrade"};
    if (header_name_bytes(header) == 0)
        return error_set(err, ERROR_INPUT, "headers: \"%.100s\" is not \"Name: value\"", header);
    for (const char *at = header; *at; at++)
        if ((*at < ' ' && *at != '\t') || *at == 0x7f)
            return error_set(err, ERROR_INPUT, "headers: %.40s has a byte that cannot stand there",
                             header);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (header_is(header, own[i]))
            return error_set(err, ERROR_INPUT,
                             i == 0 ? "headers: %s is said by `host`"
                                    : "headers: %s is what the load decides itself",
                             own[i]);
    return 0;
}

static int join_headers(const char *const *headers, size_t count, char **out, struct error *err)
{
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++) {
        if (check_header(headers[i], err) < 0)
            return -ERROR_INPUT;
        bytes += strlen(headers[i]) + 2;
    }
    if (bytes > HEADERS_BYTES_MAX)
        return error_set(err, ERROR_INPUT, "headers: more than %d bytes", HEADERS_BYTES_MAX);
    char *end = *out = malloc(bytes);
    if (!end)
        return error_set(err, ERROR_FAILED, "out of memory");
    *end = '\0';
    for (size_t i = 0; i < count; i++)
        end += snprintf(end, bytes - (size_t)(end - *out), "%s\r\n", headers[i]);
    return 0;
}

// --- what is sent --------------------------------------------------------------------------------

static bool names_agent(const char *headers)
{
    for (; headers && *headers; headers = strstr(headers, "\r\n") + 2)
        if (header_is(headers, "User-Agent"))
            return true;
    return false;
}

static int build(struct http_words *words, struct error *err)
{
    const char *path = words->path ? words->path : "/{key}", *mark = strstr(path, key_mark);
    const char *rest = mark ? mark + sizeof key_mark - 1 : "";
    char *before = NULL, *after = NULL;
    int before_bytes = mark ? (int)(mark - path) : (int)strlen(path);
    bool made = asprintf(&before, " %.*s", before_bytes, path) >= 0 &&
                asprintf(&after, "%s HTTP/1.1\r\nHost: %s\r\n%s%s", rest,
                         words->host ? words->host : "taillight",
                         names_agent(words->headers) ? "" : "User-Agent: taillight\r\n",
                         words->headers ? words->headers : "") >= 0;
    if (!made) {
        free(before);
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    free(words->before);
    free(words->after);
    words->before = before;
    words->after = after;
    words->before_bytes = strlen(before);
    words->after_bytes = strlen(after);
    words->fixed = !mark;
    return 0;
}

// Replaces a text, if there is another.
static int take(char **text, const char *other, struct error *err)
{
    char *copy = other ? strdup(other) : NULL;
    if (!copy)
        return other ? error_set(err, ERROR_FAILED, "out of memory") : 0;
    free(*text);
    *text = copy;
    return 0;
}

int http_words_set(struct http_words *words, const char *path, const char *host,
                   const char *const *headers, size_t header_count, struct error *err)
{
    char *joined = NULL;
    if ((path && check_path(path, err) < 0) || (host && check_host(host, err) < 0) ||
        (headers && join_headers(headers, header_count, &joined, err) < 0))
        return -(int)err->kind;
    int status = take(&words->path, path, err);
    if (status == 0)
        status = take(&words->host, host, err);
    if (status == 0)
        status = take(&words->headers, joined, err);
    free(joined);
    return status < 0 ? status : build(words, err);
}

size_t http_words_bytes(const struct http_words *words)
{
    return words->before_bytes + words->after_bytes;
}

json_t *http_words_to_json(const struct http_words *words)
{
    if (!words->before)
        return NULL;
    json_t *json = json_object();
    if (words->path)
        json_object_set_new(json, "path", json_string(words->path));
    if (words->host)
        json_object_set_new(json, "host", json_string(words->host));
    json_t *headers = words->headers ? json_array() : NULL;
    for (const char *at = words->headers, *end; at && *at; at = end + 2) {
        end = strstr(at, "\r\n");
        json_array_append_new(headers, json_stringn(at, (size_t)(end - at)));
    }
    if (headers)
        json_object_set_new(json, "headers", headers);
    return json;
}

void http_words_free(struct http_words *words)
{
    free(words->path);
    free(words->host);
    free(words->headers);
    free(words->before);
    free(words->after);
    *words = (struct http_words){0};
}
