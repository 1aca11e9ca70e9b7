// SPDX-License-Identifier: MIT
//
// The calls that wait for work.
#include "shim/preload_wait.h"

SHIM_EXPORT int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    if (!wait_watched())
        return real.epoll_wait(fd, events, most, timeout_ms);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.epoll_wait(fd, events, most, timeout_ms));
}

SHIM_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout_ms,
                            const sigset_t *mask)
{
    if (!wait_watched())
        return real.epoll_pwait(fd, events, most, timeout_ms, mask);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.epoll_pwait(fd, events, most, timeout_ms, mask));
}

SHIM_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int most,
                             const struct timespec *timeout, const sigset_t *mask)
{
    if (!wait_watched())
        return real.epoll_pwait2(fd, events, most, timeout, mask);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.epoll_pwait2(fd, events, most, timeout, mask));
}

SHIM_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!wait_watched())
        return real.poll(fds, count, timeout_ms);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.poll(fds, count, timeout_ms));
}
SHIM_EXPORT int __poll(struct pollfd *fds, nfds_t count, int timeout_ms)
    __attribute__((alias("poll")));

SHIM_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                      const sigset_t *mask)
{
    if (!wait_watched())
        return real.ppoll(fds, count, timeout, mask);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.ppoll(fds, count, timeout, mask));
}

SHIM_EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out,
                       fd_set *restrict failed, struct timeval *restrict timeout)
{
    if (!wait_watched())
        return real.select(count, in, out, failed, timeout);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.select(count, in, out, failed, timeout));
}
SHIM_EXPORT int __select(int count, fd_set *restrict in, fd_set *restrict out,
                         fd_set *restrict failed, struct timeval *restrict timeout)
    __attribute__((alias("select")));

SHIM_EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out,
                        fd_set *restrict failed, const struct timespec *restrict timeout,
                        const sigset_t *restrict mask)
{
    if (!wait_watched())
        return real.pselect(count, in, out, failed, timeout, mask);
    struct observation observation = wait_begin();
    return wait_end(&observation, real.pselect(count, in, out, failed, timeout, mask));
}

extern void __chk_fail(void) __attribute__((noreturn));

SHIM_EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
    if (room / sizeof *fds < count)
        __chk_fail();
    return poll(fds, count, timeout_ms);
}

SHIM_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                            const sigset_t *mask, size_t room)
{
    if (room / sizeof *fds < count)
        __chk_fail();
    return ppoll(fds, count, timeout, mask);
}
