// SPDX-License-Identifier: MIT
//
// The calls that take bytes out of a connection. Peeking takes none, and the error queue holds no
// bytes of the stream: both go straight through.
#include "shim/preload_local.h"

#include <string.h>
#include <sys/syscall.h>

extern void __chk_fail(void) __attribute__((noreturn));

SHIM_EXPORT ssize_t read(int fd, void *buffer, size_t bytes)
{
    PASS_ON_RECEIVED(ssize_t, fd, shim_watched(fd), buffer, bytes, real.read(fd, buffer, bytes));
}
SHIM_EXPORT ssize_t __read(int fd, void *buffer, size_t bytes) __attribute__((alias("read")));

SHIM_EXPORT ssize_t __read_nocancel(int fd, void *buffer, size_t bytes)
{
    PASS_ON_RECEIVED(ssize_t, fd, shim_watched(fd), buffer, bytes,
                     shim_kernel(SYS_read, fd, buffer, bytes));
}

SHIM_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    PASS_ON_PARTS(ssize_t, fd, shim_watched(fd), parts, count, real.readv(fd, parts, count));
}

SHIM_EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    PASS_ON_PARTS(ssize_t, fd, shim_watched(fd), parts, count,
                  real.preadv2(fd, parts, count, offset, flags));
}
SHIM_EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset,
                               int flags) __attribute__((alias("preadv2")));

SHIM_EXPORT ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
    PASS_ON_RECEIVED(ssize_t, fd, flags & NOT_OF_THE_STREAM ? 0 : shim_watched(fd), buffer,
                     flags & MSG_TRUNC ? 0 : bytes, real.recv(fd, buffer, bytes, flags));
}
SHIM_EXPORT ssize_t __recv(int fd, void *buffer, size_t bytes, int flags)
    __attribute__((alias("recv")));

SHIM_EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t bytes, int flags,
                             __SOCKADDR_ARG from, socklen_t *restrict from_bytes)
{
    const uint32_t watched = flags & NOT_OF_THE_STREAM ? 0 : shim_watched(fd);
    if (likely(!watched))
        return real.recvfrom(fd, buffer, bytes, flags, from, from_bytes);
    struct observation observation = observe_begin(fd, watched);
    const bool asks = is_of_datagrams(&observation) && from.__sockaddr__ && from_bytes;
    const socklen_t room = asks ? *from_bytes : 0;
    const ssize_t moved = real.recvfrom(fd, buffer, bytes, flags, from, from_bytes);
    note_payload(&observation, buffer, flags & MSG_TRUNC ? 0 : bytes);
    if (unlikely(asks))
        note_peer(&observation, from.__sockaddr__, *from_bytes, room);
    observe_end(&observation, CALL_RECEIVE, moved);
    return moved;
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

// A message that was received; MSG_TRUNC: nobody may look for its bytes. peer_bytes holds how much
// room there was for the address.
static void note_message(struct observation *observation, const struct msghdr *message, int flags)
{
    if (flags & MSG_TRUNC)
        observation->room = 0;
    else
        note_parts(observation, message);
    note_peer(observation, message->msg_name, message->msg_namelen, observation->peer_bytes);
}

void shim_message_received(struct observation *observation, struct msghdr *message, int flags,
                           long moved)
{
    if (observation && moved > 0) {
        struct call_exit exit = {0};
        note_message(observation, message, flags);
        if (observation->recording)
            exit.tsc = tsc_now_on_core(&exit.core);
        observe_moved(observation, &exit, CALL_RECEIVE, (uint64_t)moved, rx_stamp(message));
    } else if (moved >= 0 && message->msg_controllen) {
        shim_rights_received(message);
    }
}

SHIM_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    uint32_t watched = flags & NOT_OF_THE_STREAM ? 0 : shim_watched(fd);
    if (likely(!watched)) {
        ssize_t moved = real.recvmsg(fd, message, flags);
        shim_message_received(NULL, message, flags, moved);
        return moved;
    }
    struct observation observation = observe_begin(fd, watched);
    if (unlikely(is_of_datagrams(&observation)) && message)
        observation.peer_bytes = message->msg_namelen;
    ssize_t moved = real.recvmsg(fd, message, flags);
    shim_message_received(&observation, message, flags, moved);
    return moved;
}

void shim_messages_received(struct observation *observation, struct mmsghdr *messages, int flags,
                            int filled)
{
    struct call_exit exit = {0};
    const socklen_t room = observation ? observation->peer_bytes : 0;
    if (observation && observation->recording)
        exit.tsc = tsc_now_on_core(&exit.core);
    for (int i = 0; i < filled; i++) {
        if (!observation) {
            shim_rights_received(&messages[i].msg_hdr);
        } else if (messages[i].msg_len > 0) {
            observation->peer_bytes = room;
            note_message(observation, &messages[i].msg_hdr, flags);
            observe_moved(observation, &exit, CALL_RECEIVE, messages[i].msg_len,
                          rx_stamp(&messages[i].msg_hdr));
        }
    }
}

SHIM_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                         struct timespec *timeout)
{
    uint32_t watched = flags & NOT_OF_THE_STREAM ? 0 : shim_watched(fd);
    if (likely(!watched)) {
        int filled = real.recvmmsg(fd, messages, count, flags, timeout);
        shim_messages_received(NULL, messages, flags, filled);
        return filled;
    }
    struct observation observation = observe_begin(fd, watched);
    if (unlikely(is_of_datagrams(&observation)) && messages)
        observation.peer_bytes = shim_smallest_room(messages, count);
    int filled = real.recvmmsg(fd, messages, count, flags, timeout);
    shim_messages_received(&observation, messages, flags, filled);
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
