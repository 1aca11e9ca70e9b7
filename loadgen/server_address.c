// SPDX-License-Identifier: MIT
#include "loadgen/server_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int server_address_parse(const char *text, struct server_address *address, struct error *err)
{
    memset(address, 0, sizeof *address);
    const char *colon = strrchr(text, ':');
    const char *host = text, *host_end = colon;
    if (!colon || strlen(text) >= sizeof address->host)
        return error_set(err, ERROR_INPUT, "\"%.260s\" is not HOST:PORT", text);
    if (text[0] == '[') {
        host = text + 1;
        host_end = colon - 1;
        if (colon == text + 1 || *host_end != ']')
            return error_set(err, ERROR_INPUT, "\"%s\" is not [IPv6 address]:PORT", text);
    } else if (memchr(text, ':', (size_t)(colon - text))) {
        return error_set(err, ERROR_INPUT,
                         "\"%s\": write an IPv6 address in brackets, like [::1]:11211", text);
    }
    if (host_end == host)
        return error_set(err, ERROR_INPUT, "\"%s\" names no host", text);
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || port < 1 || port > 65535)
        return error_set(err, ERROR_INPUT, "\"%s\": the port must be a number from 1 to 65535",
                         text);
    snprintf(address->text, sizeof address->text, "%s", text);
    memcpy(address->host, host, (size_t)(host_end - host));
    address->port = (uint16_t)port;
    return 0;
}

int server_address_resolve(struct server_address *address, struct error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", address->port);
    int status = getaddrinfo(address->host, port, &hints, &found);
    if (status != 0)
        return error_set(err, ERROR_INPUT, "cannot resolve \"%s\": %s", address->host,
                         gai_strerror(status));
    memcpy(&address->socket_address, found->ai_addr, found->ai_addrlen);
    address->socket_address_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

void server_address_bytes(const struct sockaddr_storage *socket_address, uint8_t bytes[16],
                          uint16_t *port)
{
    memset(bytes, 0, 16);
    *port = 0;
    if (socket_address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)socket_address;
        memcpy(bytes, &six->sin6_addr, 16);
        *port = ntohs(six->sin6_port);
    } else if (socket_address->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const void *)socket_address;
        bytes[10] = bytes[11] = 0xff;
        memcpy(bytes + 12, &four->sin_addr, 4);
        *port = ntohs(four->sin_port);
    }
}
