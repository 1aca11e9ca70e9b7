// SPDX-License-Identifier: MIT
#include "loadgen/client/server_url.h"

#include <stdio.h>
#include <string.h>

#include "workloads/protocols.h"

static int find_protocol(const char *text, size_t scheme_bytes, const struct protocol **protocol,
                         struct error *err)
{
    char scheme[40];
    snprintf(scheme, sizeof scheme, "%.*s", (int)scheme_bytes, text);
    *protocol = scheme_bytes < sizeof scheme ? protocol_find(scheme) : NULL;
    return *protocol ? 0
                     : error_set(err, ERROR_INPUT, "\"%.260s\": \"%.39s\" is not one of: %s", text,
                                 scheme, PROTOCOL_NAMES);
}

int server_url_parse(const char *text, struct server_address *address,
                     const struct protocol **protocol, struct error *err)
{
    *protocol = NULL;
    const char *mark = strstr(text, "://");
    if (!mark)
        return server_address_parse(text, address, err);
    int result = find_protocol(text, (size_t)(mark - text), protocol, err);
    if (result < 0)
        return result;
    const char *place = mark + 3;
    size_t bytes = strcspn(place, "/?#");
    const char *rest = place + bytes;
    if (*rest && strcmp(rest, "/") != 0)
        return error_set(err, ERROR_INPUT,
                         "\"%.260s\": only HOST:PORT is taken of a URL; what is asked for says the "
                         "workload, not \"%.100s\"",
                         text, rest);
    if (memchr(place, '@', bytes))
        return error_set(err, ERROR_INPUT, "\"%.260s\": no user and no password can be given",
                         text);
    const char *bracket = memchr(place, ']', bytes), *host_end = bracket ? bracket : place;
    char plain[sizeof address->text];
    bool has_port = memchr(host_end, ':', bytes - (size_t)(host_end - place)) != NULL;
    int used = has_port ? snprintf(plain, sizeof plain, "%.*s", (int)bytes, place)
                        : snprintf(plain, sizeof plain, "%.*s:%u", (int)bytes, place,
                                   (*protocol)->usual_port);
    if (used >= (int)sizeof plain)
        return error_set(err, ERROR_INPUT, "\"%.260s\" is not HOST:PORT", text);
    return server_address_parse(plain, address, err);
}
