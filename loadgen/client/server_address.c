// SPDX-License-Identifier: MIT
#include "loadgen/client/server_address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 250 }; // with each of several addresses (RFC 8305, 5)

static int parse_path(const char *text, const char *path, struct server_address *address,
                      struct error *err)
{
    const size_t longest = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (path[0] != '/')
        return error_set(err, ERROR_INPUT,
                         "\"%.260s\": write the whole path, like unix:/run/server.sock", text);
    if (strlen(path) > longest)
        return error_set(err, ERROR_INPUT,
                         "\"%.260s\": the path of a UNIX socket has %zu bytes at most", text,
                         longest);
    address->transport = SERVER_UNIX;
    snprintf(address->host, sizeof address->host, "%s", path);
    return 0;
}

int server_address_parse(const char *text, struct server_address *address, struct error *err)
{
    memset(address, 0, sizeof *address);
    snprintf(address->text, sizeof address->text, "%s", text);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_path(text, text + 5, address, err);
    bool udp = strncmp(text, "udp:", 4) == 0;
    const char *place = text + (udp ? 4 : 0);
    const char *colon = strrchr(place, ':');
    const char *host = place, *host_end = colon;
    if (!colon || strlen(place) >= sizeof address->host)
        return error_set(err, ERROR_INPUT, "\"%.260s\" is not HOST:PORT", text);
    if (place[0] == '[') {
        host = place + 1;
        host_end = colon - 1;
        if (colon == place + 1 || *host_end != ']')
            return error_set(err, ERROR_INPUT, "\"%s\" is not [IPv6 address]:PORT", text);
    } else if (memchr(place, ':', (size_t)(colon - place))) {
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
    address->transport = udp ? SERVER_UDP : SERVER_TCP;
    memcpy(address->host, host, (size_t)(host_end - host));
    address->port = (uint16_t)port;
    return 0;
}

static bool accepts(const struct addrinfo *at)
{
    int failure = 0;
    socklen_t bytes = sizeof failure;
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd connected = {.fd = fd, .events = POLLOUT};
    bool accepted = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0;
    if (fd >= 0 && !accepted && errno == EINPROGRESS)
        accepted = poll(&connected, 1, PATIENCE_MS) == 1 &&
                   getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &bytes) == 0 && failure == 0;
    if (fd >= 0)
        close(fd);
    return accepted;
}

void server_address_choose(struct server_address *address, const struct addrinfo *found, bool reach)
{
    const struct addrinfo *at = found;
    // With one there is no choice.
    while (reach && found->ai_next && at && !accepts(at))
        at = at->ai_next;
    at = at ? at : found;
    memcpy(&address->socket_address, at->ai_addr, at->ai_addrlen);
    address->socket_address_bytes = at->ai_addrlen;
}

static int resolve(struct server_address *address, bool reach, struct error *err)
{
    if (address->transport == SERVER_UNIX) {
        struct sockaddr_un *path = (void *)&address->socket_address;
        path->sun_family = AF_UNIX;
        memcpy(path->sun_path, address->host, strlen(address->host) + 1);
        address->socket_address_bytes = sizeof *path;
        return 0;
    }
    const struct addrinfo hints = {.ai_socktype =
                                       address->transport == SERVER_UDP ? SOCK_DGRAM : SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", address->port);
    int status = getaddrinfo(address->host, port, &hints, &found);
    if (status != 0)
        return error_set(err, ERROR_INPUT, "cannot resolve \"%s\": %s", address->host,
                         gai_strerror(status));
    server_address_choose(address, found, reach && address->transport == SERVER_TCP);
    freeaddrinfo(found);
    return 0;
}

int server_address_resolve(struct server_address *address, struct error *err)
{
    return resolve(address, false, err);
}

int server_address_reach(struct server_address *address, struct error *err)
{
    return resolve(address, true, err);
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
