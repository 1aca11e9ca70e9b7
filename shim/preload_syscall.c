// SPDX-License-Identifier: MIT
//
// syscall(): programs make their socket calls through it, too (libuv closes so). Those that the
// shim cares for are seen as their namesakes are, and made by the same instruction as ever: they
// are no cancellation points, and what they are given is not checked. All others go on untouched.
#include "shim/preload_wait.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { NUMBERS = 512 };

// The system calls that shim_syscall_seen() is for.
__attribute__((visibility("hidden"), used)) const uint8_t shim_syscalls[NUMBERS] = {
    [SYS_read] = 1,       [SYS_readv] = 1,       [SYS_preadv2] = 1,      [SYS_recvfrom] = 1,
    [SYS_recvmsg] = 1,    [SYS_recvmmsg] = 1,    [SYS_write] = 1,        [SYS_writev] = 1,
    [SYS_pwritev2] = 1,   [SYS_sendto] = 1,      [SYS_sendmsg] = 1,      [SYS_sendmmsg] = 1,
    [SYS_sendfile] = 1,   [SYS_splice] = 1,      [SYS_accept] = 1,       [SYS_accept4] = 1,
    [SYS_connect] = 1,    [SYS_close] = 1,       [SYS_close_range] = 1,  [SYS_dup] = 1,
    [SYS_dup2] = 1,       [SYS_dup3] = 1,        [SYS_fcntl] = 1,        [SYS_pidfd_getfd] = 1,
    [SYS_epoll_wait] = 1, [SYS_epoll_pwait] = 1, [SYS_epoll_pwait2] = 1, [SYS_poll] = 1,
    [SYS_ppoll] = 1,      [SYS_select] = 1,      [SYS_pselect6] = 1,     [SYS_prctl] = 1,
    [SYS_seccomp] = 1,
};

struct words {
    long number, a, b, c, d, e, f;
};

static long make(const struct words *w)
{
    return shim_kernel(w->number, w->a, w->b, w->c, w->d, w->e, w->f);
}

static long receive_messages(const struct words *w)
{
    const bool many = w->number == SYS_recvmmsg;
    const long flags = many ? w->d : w->c;
    const uint32_t watched = flags & NOT_OF_THE_STREAM ? 0 : shim_watched((int)w->a);
    struct observation observation;
    if (watched)
        observation = observe_begin((int)w->a, watched);
    if (watched && is_of_datagrams(&observation) && w->b)
        observation.peer_bytes =
            many ? shim_smallest_room((const struct mmsghdr *)w->b, (unsigned)w->c)
                 : ((const struct msghdr *)w->b)->msg_namelen;
    long result = make(w);
    if (many)
        shim_messages_received(watched ? &observation : NULL, (struct mmsghdr *)w->b, (int)flags,
                               (int)result);
    else
        shim_message_received(watched ? &observation : NULL, (struct msghdr *)w->b, (int)flags,
                              result);
    return result;
}

static long send_messages(const struct words *w)
{
    const uint32_t watched = shim_watched((int)w->a);
    if (!watched)
        return make(w);
    struct observation observation = observe_begin((int)w->a, watched);
    long result = make(w);
    if (w->number == SYS_sendmmsg)
        shim_messages_sent(&observation, (struct mmsghdr *)w->b, (int)result);
    else
        shim_message_sent(&observation, (const struct msghdr *)w->b, result);
    return result;
}

// recvfrom and sendto: who is at the other end stands in the call.
static long move_addressed(const struct words *w)
{
    const bool receives = w->number == SYS_recvfrom;
    const uint32_t watched = receives && (w->d & NOT_OF_THE_STREAM) ? 0 : shim_watched((int)w->a);
    if (!watched)
        return make(w);
    struct observation observation = observe_begin((int)w->a, watched);
    const bool asks = receives && is_of_datagrams(&observation) && w->e && w->f;
    const socklen_t *bytes = asks ? (const socklen_t *)w->f : NULL;
    const socklen_t room = asks ? *bytes : receives ? 0 : (socklen_t)w->f;
    long result = make(w);
    note_payload(&observation, (const void *)w->b,
                 receives && (w->d & MSG_TRUNC) ? 0 : (size_t)w->c);
    if (asks || !receives)
        note_peer(&observation, (const void *)w->e, asks ? *bytes : room, room);
    observe_end(&observation, receives ? CALL_RECEIVE : CALL_SEND, result);
    return result;
}

static long move_by_pipe(const struct words *w)
{
    uint32_t sending = shim_watched((int)w->c);
    PASS_ON_AS(long, (int)(sending ? w->c : w->a), sending ? sending : shim_watched((int)w->a),
               sending ? CALL_SEND : CALL_RECEIVE, make(w));
}

static long accept_one(const struct words *w)
{
    if (!shim.descriptor_limit)
        return make(w);
    struct sockaddr *address = (struct sockaddr *)w->b;
    socklen_t *bytes = (socklen_t *)w->c;
    struct observation observation = shim_connection_begin();
    socklen_t room = address && bytes ? *bytes : 0;
    long accepted = make(w);
    if (accepted >= 0)
        shim_accept_end(&observation, (int)accepted, address, room, bytes);
    return accepted;
}

static long connect_one(const struct words *w)
{
    if (!shim.descriptor_limit)
        return make(w);
    struct observation observation = shim_connection_begin();
    long result = make(w);
    if (result == 0 || errno == EINPROGRESS || errno == EINTR)
        shim_connection_made((int)w->a, (const struct sockaddr *)w->b, (socklen_t)w->c,
                             &observation);
    return result;
}

static long close_one(const struct words *w)
{
    struct ending ending;
    shim_close_begin((int)w->a, &ending);
    long result = make(w);
    shim_close_end(&ending);
    return result;
}

static long replace_one(const struct words *w)
{
    struct ending ending;
    shim_replace_begin((int)w->a, (int)w->b, &ending);
    return shim_replace_end((int)w->a, (int)w->b, &ending, (int)make(w));
}

static long copy_one(const struct words *w)
{
    long result = make(w);
    if (w->number == SYS_pidfd_getfd && result >= 0)
        shim_descriptor_forget((int)result);
    else if (w->number == SYS_dup || w->b == F_DUPFD || w->b == F_DUPFD_CLOEXEC)
        shim_descriptor_copied((int)w->a, (int)result);
    return result;
}

static long wait_for_work(const struct words *w)
{
    if (!wait_watched())
        return make(w);
    struct observation observation = wait_begin();
    return wait_end(&observation, (int)make(w));
}

__attribute__((visibility("hidden"), used)) long shim_syscall_seen(long number, long a, long b,
                                                                   long c, long d, long e, long f)
{
    const struct words w = {number, a, b, c, d, e, f};
    const int fd = (int)a;
    switch (number) {
    case SYS_read:
        PASS_ON_RECEIVED(long, fd, shim_watched(fd), (const void *)b, (size_t)c, make(&w));
    case SYS_readv:
    case SYS_preadv2:
        PASS_ON_PARTS(long, fd, shim_watched(fd), (const struct iovec *)b, c, make(&w));
    case SYS_recvfrom:
    case SYS_sendto:
        return move_addressed(&w);
    case SYS_recvmsg:
    case SYS_recvmmsg:
        return receive_messages(&w);
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendfile:
        PASS_ON_AS(long, fd, shim_watched(fd), CALL_SEND, make(&w));
    case SYS_sendmsg:
    case SYS_sendmmsg:
        return send_messages(&w);
    case SYS_splice:
        return move_by_pipe(&w);
    case SYS_accept:
    case SYS_accept4:
        return accept_one(&w);
    case SYS_connect:
        return connect_one(&w);
    case SYS_close:
        return close_one(&w);
    case SYS_close_range:
        shim_close_range((unsigned)a, (unsigned)b, (int)c);
        return make(&w);
    case SYS_dup2:
    case SYS_dup3:
        return replace_one(&w);
    case SYS_dup:
    case SYS_fcntl:
    case SYS_pidfd_getfd:
        return copy_one(&w);
    case SYS_seccomp:
        return shim_filter_call(number, a, b, c, d, e, f);
    case SYS_prctl:
        return a == PR_SET_SECCOMP ? shim_filter_call(number, a, b, c, d, e, f) : make(&w);
    default:
        return wait_for_work(&w);
    }
}

__attribute__((visibility("hidden"))) long (*shim_real_syscall)(long number, ...) = shim_kernel;

void shim_syscall_start(void)
{
    void *found = dlsym(RTLD_NEXT, "syscall");
    if (found)
        __atomic_store_n((void **)&shim_real_syscall, found, __ATOMIC_RELEASE);
}

_Static_assert(NUMBERS == 512, "the number below");

// Calls that are of no interest leave no frame here: such a call may come back twice (clone), or
// never look at its stack the same way again.
__asm__(".text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    cmp $512, %rdi\n"
        "    jae 1f\n"
        "    lea shim_syscalls(%rip), %r11\n"
        "    cmpb $0, (%r11, %rdi)\n"
        "    jne shim_syscall_seen\n"
        "1:  jmp *shim_real_syscall(%rip)\n"
        ".size syscall, . - syscall\n");
