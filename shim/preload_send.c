// SPDX-License-Identifier: MIT
//
// The calls that put bytes into a connection. What counts is what the kernel took.
#include "shim/preload.h"

SHIM_EXPORT ssize_t write(int fd, const void *buffer, size_t bytes)
{
    PASS_ON(shim_watched(fd), CALL_SEND, real.write(fd, buffer, bytes));
}
SHIM_EXPORT ssize_t __write(int fd, const void *buffer, size_t bytes)
    __attribute__((alias("write")));

SHIM_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    PASS_ON(shim_watched(fd), CALL_SEND, real.writev(fd, parts, count));
}

SHIM_EXPORT ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
    PASS_ON(shim_watched(fd), CALL_SEND, real.send(fd, buffer, bytes, flags));
}
SHIM_EXPORT ssize_t __send(int fd, const void *buffer, size_t bytes, int flags)
    __attribute__((alias("send")));

SHIM_EXPORT ssize_t sendto(int fd, const void *buffer, size_t bytes, int flags,
                           __CONST_SOCKADDR_ARG to, socklen_t to_bytes)
{
    PASS_ON(shim_watched(fd), CALL_SEND, real.sendto(fd, buffer, bytes, flags, to, to_bytes));
}

SHIM_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    PASS_ON(shim_watched(fd), CALL_SEND, real.sendmsg(fd, message, flags));
}

SHIM_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    uint32_t watched = shim_watched(fd);
    if (likely(!watched))
        return real.sendmmsg(fd, messages, count, flags);
    struct observation observation = observe_begin(watched);
    int taken = real.sendmmsg(fd, messages, count, flags);
    struct call_exit exit = {0};
    if (observation.recording)
        exit.tsc = tsc_now_on_core(&exit.core);
    for (int i = 0; i < taken; i++)
        if (messages[i].msg_len > 0)
            observe_moved(&observation, &exit, CALL_SEND, messages[i].msg_len, 0);
    return taken;
}

SHIM_EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t bytes)
{
    PASS_ON(shim_watched(to), CALL_SEND, real.sendfile(to, from, offset, bytes));
}
SHIM_EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t bytes)
    __attribute__((alias("sendfile")));

// One of the two ends is a pipe, so at most one is watched.
SHIM_EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t bytes,
                           unsigned flags)
{
    uint32_t sending = shim_watched(to);
    PASS_ON(sending ? sending : shim_watched(from), sending ? CALL_SEND : CALL_RECEIVE,
            real.splice(from, from_offset, to, to_offset, bytes, flags));
}
