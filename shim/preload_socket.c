// SPDX-License-Identifier: MIT
//
// What the kernel says of a socket: its addresses, the cookie that names it for as long as the
// machine runs, and how many bytes have gone through it.
#include "shim/preload_local.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

enum { TRIES = 4 }; // to read numbers that belong together

bool shim_address_read(const struct sockaddr_storage *address, uint8_t out[16], uint16_t *port)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        memcpy(out, mapped, sizeof mapped);
        memcpy(out + 12, &v4->sin_addr, 4);
        *port = ntohs(v4->sin_port);
        return true;
    }
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        memcpy(out, &v6->sin6_addr, 16);
        *port = ntohs(v6->sin6_port);
        return true;
    }
    return false;
}

uint64_t shim_cookie(int fd)
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

enum { // include/net/tcp_states.h: part of the user interface, so fixed
    FIN_WAIT1 = 4,
    FIN_WAIT2 = 5,
    TIME_WAIT = 6,
    CLOSED = 7,
    CLOSE_WAIT = 8,
    LAST_ACK = 9,
    CLOSING = 11,
};

static uint64_t in_states(uint8_t state, unsigned states)
{
    return states >> state & 1;
}

static bool info_read(int fd, struct tcp_info *info)
{
    socklen_t bytes = sizeof *info;
    memset(info, 0, sizeof *info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes) == 0 &&
           bytes >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
}

// The kernel counts what has arrived and what was acknowledged; what is still in its queues is
// between that and the program. A FIN counts as 1.
bool shim_count_kernel(int fd, bool outgoing, struct kernel_counts *out)
{
    const unsigned fin_received =
        1u << CLOSE_WAIT | 1u << LAST_ACK | 1u << CLOSING | 1u << TIME_WAIT;
    const unsigned fin_sent =
        1u << FIN_WAIT1 | 1u << FIN_WAIT2 | 1u << CLOSING | 1u << LAST_ACK | 1u << TIME_WAIT;
    struct tcp_info before, after;
    for (int tries = 0; tries < TRIES; tries++) {
        int unread, unacknowledged;
        if (!info_read(fd, &before) || ioctl(fd, SIOCINQ, &unread) < 0 ||
            ioctl(fd, SIOCOUTQ, &unacknowledged) < 0 || !info_read(fd, &after))
            return false;
        if (before.tcpi_bytes_received != after.tcpi_bytes_received ||
            before.tcpi_bytes_acked != after.tcpi_bytes_acked ||
            before.tcpi_state != after.tcpi_state)
            continue;
        uint8_t state = after.tcpi_state;
        out->ended = state == CLOSED;
        const uint64_t received = after.tcpi_bytes_received, acknowledged = after.tcpi_bytes_acked;
        out->bytes[DIRECTION_IN] = received - (uint64_t)unread - in_states(state, fin_received);
        // The SYN of whoever connects is acknowledged, too, and before anything else. Where nobody
        // has taken the connection, nothing was carried, and the queue's length means nothing.
        out->bytes[DIRECTION_OUT] =
            acknowledged + (uint64_t)unacknowledged - in_states(state, fin_sent) - outgoing;
        if (outgoing && acknowledged == 0)
            out->bytes[DIRECTION_OUT] = 0;
        return true;
    }
    return false; // it is never quiet: another time
}
