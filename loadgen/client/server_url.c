// SPDX-License-Identifier: MIT
#include "loadgen/client/server_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/protocols.h"

static int find_protocol(const char *text, size_t scheme_bytes, struct server_url *url,
                         struct error *err)
{
    static const char suffix[] = "+cluster";
    enum { SUFFIX_BYTES = sizeof suffix - 1 };
    url->cluster = scheme_bytes > SUFFIX_BYTES &&
                   memcmp(text + scheme_bytes - SUFFIX_BYTES, suffix, SUFFIX_BYTES) == 0;
    scheme_bytes -= url->cluster ? SUFFIX_BYTES : 0;
    char scheme[40], plain[40];
    snprintf(scheme, sizeof scheme, "%.*s", (int)scheme_bytes, text);
    snprintf(plain, sizeof plain, "%.*s", (int)strlen(scheme) - 1, scheme);
    if (scheme_bytes < sizeof scheme)
        url->protocol = protocol_find(scheme);
    url->tls = !url->protocol && scheme_bytes > 1 && scheme_bytes < sizeof scheme &&
               scheme[scheme_bytes - 1] == 's' && (url->protocol = protocol_find(plain)) != NULL;
    return url->protocol
               ? 0
               : error_set(err, ERROR_INPUT,
                           "\"%.260s\": \"%.39s\" is not one of: %s, with an s behind it for TLS",
                           text, scheme, PROTOCOL_NAMES);
}

static int take_user(const char *text, const char *user, size_t bytes,
                     const struct protocol *protocol, struct login *login, struct error *err)
{
    if (!protocol->log_in)
        return error_set(err, ERROR_INPUT, "\"%.260s\": protocol %s knows no login", text,
                         protocol->name);
    if (memchr(user, ':', bytes))
        return error_set(err, ERROR_INPUT,
                         "the password in the URL can be read by everyone on this machine: give it "
                         "by --password-file or " LOGIN_PASSWORD_VARIABLE);
    if (memchr(user, '%', bytes) || bytes >= sizeof login->user)
        return error_set(err, ERROR_INPUT, "\"%.260s\": give that user by --user", text);
    memcpy(login->user, user, bytes);
    login->user[bytes] = '\0';
    return 0;
}

// What follows the place: nothing, "/", of Redis a database, of HTTP what is asked for.
static int take_rest(const char *text, const char *rest, struct server_url *url,
                     struct login *login, struct error *err)
{
    enum { DIGITS_MOST = 9 };
    const struct protocol *protocol = url->protocol;
    if (protocol->takes_http_words && *rest == '/' && strlen(rest) < sizeof url->path) {
        memcpy(url->path, rest, strlen(rest) + 1);
        return 0;
    }
    size_t digits = *rest ? strspn(rest + 1, "0123456789") : 0;
    if (!*rest || strcmp(rest, "/") == 0)
        return 0;
    if (protocol->dataset != DATASET_REDIS || *rest != '/' || digits == 0 || rest[1 + digits])
        return error_set(err, ERROR_INPUT,
                         "\"%.260s\": only HOST:PORT is taken of a URL; what is asked for says the "
                         "workload, not \"%.100s\"",
                         text, rest);
    if (digits > DIGITS_MOST)
        return error_set(err, ERROR_INPUT, "\"%.260s\": no server has so many databases", text);
    login->database = (uint32_t)strtoul(rest + 1, NULL, 10);
    return 0;
}

// The protocol's, where a URL names none.
static unsigned usual_port(const struct server_url *url)
{
    return url->tls && url->protocol->tls_port ? url->protocol->tls_port
                                               : url->protocol->usual_port;
}

int server_url_parse(const char *text, struct server_address *address, struct server_url *url,
                     struct login *login, struct error *err)
{
    *url = (struct server_url){0};
    const char *mark = strstr(text, "://");
    if (!mark)
        return server_address_parse(text, address, err);
    int result = find_protocol(text, (size_t)(mark - text), url, err);
    if (result < 0)
        return result;
    const char *place = mark + 3;
    size_t bytes = strcspn(place, "/?#");
    if (take_rest(text, place + bytes, url, login, err) < 0)
        return -ERROR_INPUT;
    const char *at = memrchr(place, '@', bytes);
    if (at && take_user(text, place, (size_t)(at - place), url->protocol, login, err) < 0)
        return -ERROR_INPUT;
    if (at) {
        bytes -= (size_t)(at + 1 - place);
        place = at + 1;
    }
    const char *bracket = memchr(place, ']', bytes), *host_end = bracket ? bracket : place;
    char plain[sizeof address->text];
    bool has_port = memchr(host_end, ':', bytes - (size_t)(host_end - place)) != NULL;
    int used = has_port
                   ? snprintf(plain, sizeof plain, "%.*s", (int)bytes, place)
                   : snprintf(plain, sizeof plain, "%.*s:%u", (int)bytes, place, usual_port(url));
    if (used >= (int)sizeof plain || bytes >= sizeof url->authority)
        return error_set(err, ERROR_INPUT, "\"%.260s\" is not HOST:PORT", text);
    memcpy(url->authority, place, bytes);
    url->authority[bytes] = '\0';
    return server_address_parse(plain, address, err);
}
