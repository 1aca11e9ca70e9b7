// SPDX-License-Identifier: MIT
#include "loadgen/client/server_route.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The bytes of an IPv4 or IPv6 address, without its port.
static const void *address_bytes(const struct sockaddr *address, size_t *bytes)
{
    if (address->sa_family == AF_INET) {
        *bytes = sizeof(struct in_addr);
        return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    }
    *bytes = sizeof(struct in6_addr);
    return &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static bool same_address(const struct sockaddr *one, const struct sockaddr *other)
{
    size_t bytes, other_bytes;
    const void *left = address_bytes(one, &bytes), *right = address_bytes(other, &other_bytes);
    return one->sa_family == other->sa_family && memcmp(left, right, bytes) == 0;
}

// Connecting a datagram socket sends nothing, but makes the kernel choose the route, and with it
// the local address. For an address of this host that is lo, whichever interface has the address.
int server_route(const struct sockaddr *server, socklen_t server_bytes, char interface[IF_NAMESIZE],
                 struct error *err)
{
    struct sockaddr_storage local = {0};
    struct ifaddrs *all = NULL;
    socklen_t bytes = sizeof local;
    int probe = socket(server->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool routed = probe >= 0 && connect(probe, server, server_bytes) == 0 &&
                  getsockname(probe, (struct sockaddr *)&local, &bytes) == 0;
    if (probe >= 0)
        close(probe);
    if (!routed || getifaddrs(&all) < 0)
        return error_set_errno(err, ERROR_FAILED,
                               "cannot find the interface that leads to the server");
    interface[0] = '\0';
    if (same_address((const struct sockaddr *)&local, server))
        snprintf(interface, IF_NAMESIZE, "lo");
    for (const struct ifaddrs *i = all; i && !interface[0]; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == local.ss_family &&
            same_address(i->ifa_addr, (const struct sockaddr *)&local))
            snprintf(interface, IF_NAMESIZE, "%s", i->ifa_name);
    freeifaddrs(all);
    return interface[0]
               ? 0
               : error_set(err, ERROR_FAILED, "cannot find the interface that leads to the server");
}
