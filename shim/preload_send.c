// SPDX-License-Identifier: MIT
//
// The calls that put bytes into a connection. What counts is what the kernel took.
#include "shim/preload_local.h"

#include <stdarg.h>
#include <sys/syscall.h>

SHIM_EXPORT ssize_t write(int fd, const void *buffer, size_t bytes)
{
    PASS_ON(fd, shim_watched(fd), CALL_SEND, real.write(fd, buffer, bytes));
}
SHIM_EXPORT ssize_t __write(int fd, const void *buffer, size_t bytes)
    __attribute__((alias("write")));

SHIM_EXPORT ssize_t __write_nocancel(int fd, const void *buffer, size_t bytes)
{
    PASS_ON(fd, shim_watched(fd), CALL_SEND, shim_kernel(SYS_write, fd, buffer, bytes));
}

SHIM_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    PASS_ON(fd, shim_watched(fd), CALL_SEND, real.writev(fd, parts, count));
}

SHIM_EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    PASS_ON(fd, shim_watched(fd), CALL_SEND, real.pwritev2(fd, parts, count, offset, flags));
}
SHIM_EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset,
                                int flags) __attribute__((alias("pwritev2")));

SHIM_EXPORT ssize_t send(int fd, const void *buffer, size_t bytes, int flags)
{
    PASS_ON(fd, shim_watched(fd), CALL_SEND, real.send(fd, buffer, bytes, flags));
}
SHIM_EXPORT ssize_t __send(int fd, const void *buffer, size_t bytes, int flags)
    __attribute__((alias("send")));

SHIM_EXPORT ssize_t sendto(int fd, const void *buffer, size_t bytes, int flags,
                           __CONST_SOCKADDR_ARG to, socklen_t to_bytes)
{
    const uint32_t watched = shim_watched(fd);
    if (likely(!watched))
        return real.sendto(fd, buffer, bytes, flags, to, to_bytes);
    struct observation observation = observe_begin(fd, watched);
    const ssize_t moved = real.sendto(fd, buffer, bytes, flags, to, to_bytes);
    note_payload(&observation, buffer, bytes);
    note_peer(&observation, to.__sockaddr__, to_bytes, to_bytes);
    observe_end(&observation, CALL_SEND, moved);
    return moved;
}

void shim_message_sent(struct observation *observation, const struct msghdr *message, long moved)
{
    if (moved <= 0)
        return;
    note_parts(observation, message);
    note_peer(observation, message->msg_name, message->msg_namelen, message->msg_namelen);
    observe_end(observation, CALL_SEND, moved);
}

SHIM_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const uint32_t watched = shim_watched(fd);
    if (likely(!watched))
        return real.sendmsg(fd, message, flags);
    struct observation observation = observe_begin(fd, watched);
    const ssize_t moved = real.sendmsg(fd, message, flags);
    shim_message_sent(&observation, message, moved);
    return moved;
}

void shim_messages_sent(struct observation *observation, struct mmsghdr *messages, int taken)
{
    struct call_exit exit = {0};
    if (observation->recording)
        exit.tsc = tsc_now_on_core(&exit.core);
    for (int i = 0; i < taken; i++) {
        const struct msghdr *message = &messages[i].msg_hdr;
        if (messages[i].msg_len == 0)
            continue;
        note_parts(observation, message);
        note_peer(observation, message->msg_name, message->msg_namelen, message->msg_namelen);
        observe_moved(observation, &exit, CALL_SEND, messages[i].msg_len, 0);
    }
}

SHIM_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    uint32_t watched = shim_watched(fd);
    if (likely(!watched))
        return real.sendmmsg(fd, messages, count, flags);
    struct observation observation = observe_begin(fd, watched);
    int taken = real.sendmmsg(fd, messages, count, flags);
    shim_messages_sent(&observation, messages, taken);
    return taken;
}

SHIM_EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t bytes)
{
    PASS_ON(to, shim_watched(to), CALL_SEND, real.sendfile(to, from, offset, bytes));
}
SHIM_EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t bytes)
    __attribute__((alias("sendfile")));

// One of the two ends is a pipe, so at most one is watched.
SHIM_EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t bytes,
                           unsigned flags)
{
    uint32_t sending = shim_watched(to);
    PASS_ON(sending ? to : from, sending ? sending : shim_watched(from),
            sending ? CALL_SEND : CALL_RECEIVE,
            real.splice(from, from_offset, to, to_offset, bytes, flags));
}

// dprintf writes past everything that is replaced, and returns how much.
SHIM_EXPORT int vdprintf(int fd, const char *restrict format, va_list arguments)
{
    PASS_ON_AS(int, fd, shim_watched(fd), CALL_SEND, real.vdprintf(fd, format, arguments));
}

SHIM_EXPORT int dprintf(int fd, const char *restrict format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vdprintf(fd, format, arguments);
    va_end(arguments);
    return written;
}

SHIM_EXPORT int __vdprintf_chk(int fd, int flag, const char *restrict format, va_list arguments)
{
    PASS_ON_AS(int, fd, shim_watched(fd), CALL_SEND,
               real.__vdprintf_chk(fd, flag, format, arguments));
}

SHIM_EXPORT int __dprintf_chk(int fd, int flag, const char *restrict format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = __vdprintf_chk(fd, flag, format, arguments);
    va_end(arguments);
    return written;
}
