// SPDX-License-Identifier: MIT
#include "profiler/events/receive_stamps.h"

#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Sends a datagram to the socket itself and looks for a stamp on it. Returns 1 with a stamp, 0
// without, -1 when nothing can be sent here.
static int try_stamp(int fd, const struct sockaddr_in *self)
{
    char data = 's', control[256];
    if (sendto(fd, &data, 1, 0, (const struct sockaddr *)self, sizeof *self) != 1)
        return -1;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, 10) <= 0)
        return -1;
    struct iovec part = {&data, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_DONTWAIT) != 1)
        return -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING) {
            struct timespec stamps[3];
            memcpy(stamps, CMSG_DATA(c), sizeof stamps);
            return stamps[0].tv_sec != 0;
        }
    return 0;
}

int receive_stamps_hold(enum receive_stamps_state *state, struct error *err)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a UDP socket for receive stamps");
    int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof self;
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) < 0) {
        error_set_errno(err, ERROR_FAILED,
                        "cannot ask the kernel for receive stamps (SO_TIMESTAMPING)");
        close(fd);
        return -ERROR_FAILED;
    }
    const struct timespec pause = {.tv_nsec = 2000000};
    *state = RECEIVE_STAMPS_UNCHECKED;
    bool reachable = bind(fd, (struct sockaddr *)&self, sizeof self) == 0 &&
                     getsockname(fd, (struct sockaddr *)&self, &bytes) == 0;
    // The kernel switches stamps on from a work queue, so the first packets may come without.
    for (int tries = 0; tries < 25 && *state != RECEIVE_STAMPS_ON; tries++) {
        int stamped = reachable ? try_stamp(fd, &self) : -1;
        *state = stamped > 0    ? RECEIVE_STAMPS_ON
                 : stamped == 0 ? RECEIVE_STAMPS_OFF
                                : RECEIVE_STAMPS_UNCHECKED;
        if (stamped < 0)
            reachable = false;
        if (stamped <= 0)
            nanosleep(&pause, NULL);
    }
    return fd;
}

const char *receive_stamps_name(enum receive_stamps_state state)
{
    switch (state) {
    case RECEIVE_STAMPS_ON:
        return "on";
    case RECEIVE_STAMPS_UNCHECKED:
        return "unchecked";
    case RECEIVE_STAMPS_OFF:
        break;
    }
    return "off";
}
