// SPDX-License-Identifier: MIT
//
// The calls that take bytes out of a connection. Peeking takes none, and the error queue holds no
// bytes of the stream: both go straight through.
#include "shim/preload.h"

#include <linux/errqueue.h>
#include <string.h>

enum { NOT_OF_THE_STREAM = MSG_PEEK | MSG_ERRQUEUE };

extern void __chk_fail(void) __attribute__((noreturn));

SHIM_EXPORT ssize_t read(int fd, void *buffer, size_t bytes)
{
    PASS_ON(shim_watched(fd), CALL_RECEIVE, real.read(fd, buffer, bytes));
}
SHIM_EXPORT ssize_t __read(int fd, void *buffer, size_t bytes) __attribute__((alias("read")));

SHIM_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    PASS_ON(shim_watched(fd), CALL_RECEIVE, real.readv(fd, parts, count));
}

SHIM_EXPORT ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
    PASS_ON(flags & NOT_OF_THE_STREAM ? 0 : shim_watched(fd), CALL_RECEIVE,
            real.recv(fd, buffer, bytes, flags));
}
SHIM_EXPORT ssize_t __recv(int fd, void *buffer, size_t bytes, int flags)
    __attribute__((alias("recv")));

SHIM_EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t bytes, int flags,
                             __SOCKADDR_ARG from, socklen_t *restrict from_bytes)
{
    PASS_ON(flags & NOT_OF_THE_STREAM ? 0 : shim_watched(fd), CALL_RECEIVE,
            real.recvfrom(fd, buffer, bytes, flags, from, from_bytes));
}

// The kernel's RX stamp, where the application has asked for one: the software stamp of
// SO_TIMESTAMPING, or SO_TIMESTAMPNS. 0: none.
static uint64_t rx_stamp(struct msghdr *message)
{
    if (!message->msg_control || message->msg_controllen < sizeof(struct cmsghdr))
        return 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET ||
            part->cmsg_len < CMSG_LEN(2 * sizeof(int64_t)) || // {seconds, nanoseconds}
            (part->cmsg_type != SO_TIMESTAMPING_OLD && part->cmsg_type != SO_TIMESTAMPING_NEW &&
             part->cmsg_type != SO_TIMESTAMPNS_OLD && part->cmsg_type != SO_TIMESTAMPNS_NEW))
            continue;
        int64_t time[2];
        memcpy(time, CMSG_DATA(part), sizeof time);
        if (time[0] > 0)
            return (uint64_t)time[0] * 1000000000U + (uint64_t)time[1];
    }
    return 0;
}

SHIM_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    uint32_t watched = shim_watched(fd);
    if (likely(!watched) || (flags & NOT_OF_THE_STREAM))
        return real.recvmsg(fd, message, flags);
    struct observation observation = observe_begin(watched);
    ssize_t moved = real.recvmsg(fd, message, flags);
    if (moved > 0) {
        struct call_exit exit = {0};
        if (observation.recording)
            exit.tsc = tsc_now_on_core(&exit.core);
        observe_moved(&observation, &exit, CALL_RECEIVE, (uint64_t)moved, rx_stamp(message));
    }
    return moved;
}

SHIM_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                         struct timespec *timeout)
{
    uint32_t watched = shim_watched(fd);
    if (likely(!watched) || (flags & NOT_OF_THE_STREAM))
        return real.recvmmsg(fd, messages, count, flags, timeout);
    struct observation observation = observe_begin(watched);
    int filled = real.recvmmsg(fd, messages, count, flags, timeout);
    struct call_exit exit = {0};
    if (observation.recording)
        exit.tsc = tsc_now_on_core(&exit.core);
    for (int i = 0; i < filled; i++)
        if (messages[i].msg_len > 0)
            observe_moved(&observation, &exit, CALL_RECEIVE, messages[i].msg_len,
                          rx_stamp(&messages[i].msg_hdr));
    return filled;
}

// The variants that -D_FORTIFY_SOURCE uses: the same, after a check of the buffer's size.
SHIM_EXPORT ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
    if (bytes > room)
        __chk_fail();
    return read(fd, buffer, bytes);
}

SHIM_EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags)
{
    if (bytes > room)
        __chk_fail();
    return recv(fd, buffer, bytes, flags);
}

SHIM_EXPORT ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t bytes, size_t room,
                                   int flags, __SOCKADDR_ARG from, socklen_t *restrict from_bytes)
{
    if (bytes > room)
        __chk_fail();
    return recvfrom(fd, buffer, bytes, flags, from, from_bytes);
}
