// SPDX-License-Identifier: MIT
//
// The functions behind the ones the shim replaces: the next in line after it (RTLD_NEXT), which is
// libc or another preloaded socket library. Each pointer starts at an early version that looks all
// of them up; a call made by that very look-up, before its end, goes to the kernel directly.
#ifndef SHIM_PRELOAD_REAL_H
#define SHIM_PRELOAD_REAL_H

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

// X(result, name, parameters, arguments, the kernel's own)
#define REAL_CALLS(X)                                                                              \
    X(int, accept, (int fd, __SOCKADDR_ARG address, socklen_t *restrict bytes),                    \
      (fd, address, bytes), shim_kernel(SYS_accept, fd, address.__sockaddr__, bytes))              \
    X(int, accept4, (int fd, __SOCKADDR_ARG address, socklen_t *restrict bytes, int flags),        \
      (fd, address, bytes, flags),                                                                 \
      shim_kernel(SYS_accept4, fd, address.__sockaddr__, bytes, flags))                            \
    X(int, connect, (int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes), (fd, address, bytes), \
      shim_kernel(SYS_connect, fd, address.__sockaddr__, bytes))                                   \
    X(int, close, (int fd), (fd), shim_kernel(SYS_close, fd))                                      \
    X(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags),          \
      shim_kernel(SYS_close_range, first, last, flags))                                            \
    X(int, dup, (int fd), (fd), shim_kernel(SYS_dup, fd))                                          \
    X(int, dup2, (int fd, int to), (fd, to), shim_kernel(SYS_dup2, fd, to))                        \
    X(int, dup3, (int fd, int to, int flags), (fd, to, flags),                                     \
      shim_kernel(SYS_dup3, fd, to, flags))                                                        \
    X(ssize_t, read, (int fd, void *buffer, size_t bytes), (fd, buffer, bytes),                    \
      shim_kernel(SYS_read, fd, buffer, bytes))                                                    \
    X(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count),          \
      shim_kernel(SYS_readv, fd, parts, count))                                                    \
    X(ssize_t, preadv2, (int fd, const struct iovec *parts, int count, off_t offset, int flags),   \
      (fd, parts, count, offset, flags),                                                           \
      shim_kernel(SYS_preadv2, fd, parts, count, offset, 0, flags))                                \
    X(ssize_t, pwritev2, (int fd, const struct iovec *parts, int count, off_t offset, int flags),  \
      (fd, parts, count, offset, flags),                                                           \
      shim_kernel(SYS_pwritev2, fd, parts, count, offset, 0, flags))                               \
    X(int, vdprintf, (int fd, const char *restrict format, va_list arguments),                     \
      (fd, format, arguments), (errno = ENOSYS, -1))                                               \
    X(int, __vdprintf_chk, (int fd, int flag, const char *restrict format, va_list arguments),     \
      (fd, flag, format, arguments), (errno = ENOSYS, -1))                                         \
    X(ssize_t, aio_return, (struct aiocb * control), (control), (errno = ENOSYS, -1))              \
    X(int, aio_write, (struct aiocb * control), (control), (errno = ENOSYS, -1))                   \
    X(int, lio_listio,                                                                             \
      (int mode, struct aiocb *const *restrict list, int count, struct sigevent *restrict event),  \
      (mode, list, count, event), (errno = ENOSYS, -1))                                            \
    X(ssize_t, recv, (int fd, void *buffer, size_t bytes, int flags), (fd, buffer, bytes, flags),  \
      shim_kernel(SYS_recvfrom, fd, buffer, bytes, flags, NULL, NULL))                             \
    X(ssize_t, recvfrom,                                                                           \
      (int fd, void *restrict buffer, size_t bytes, int flags, __SOCKADDR_ARG from,                \
       socklen_t *restrict from_bytes),                                                            \
      (fd, buffer, bytes, flags, from, from_bytes),                                                \
      shim_kernel(SYS_recvfrom, fd, buffer, bytes, flags, from.__sockaddr__, from_bytes))          \
    X(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags),         \
      shim_kernel(SYS_recvmsg, fd, message, flags))                                                \
    X(int, recvmmsg,                                                                               \
      (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),     \
      (fd, messages, count, flags, timeout),                                                       \
      shim_kernel(SYS_recvmmsg, fd, messages, count, flags, timeout))                              \
    X(ssize_t, write, (int fd, const void *buffer, size_t bytes), (fd, buffer, bytes),             \
      shim_kernel(SYS_write, fd, buffer, bytes))                                                   \
    X(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count),         \
      shim_kernel(SYS_writev, fd, parts, count))                                                   \
    X(ssize_t, send, (int fd, const void *buffer, size_t bytes, int flags),                        \
      (fd, buffer, bytes, flags), shim_kernel(SYS_sendto, fd, buffer, bytes, flags, NULL, 0))      \
    X(ssize_t, sendto,                                                                             \
      (int fd, const void *buffer, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,               \
       socklen_t to_bytes),                                                                        \
      (fd, buffer, bytes, flags, to, to_bytes),                                                    \
      shim_kernel(SYS_sendto, fd, buffer, bytes, flags, to.__sockaddr__, to_bytes))                \
    X(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),   \
      shim_kernel(SYS_sendmsg, fd, message, flags))                                                \
    X(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags),                \
      (fd, messages, count, flags), shim_kernel(SYS_sendmmsg, fd, messages, count, flags))         \
    X(ssize_t, sendfile, (int to, int from, off_t *offset, size_t bytes),                          \
      (to, from, offset, bytes), shim_kernel(SYS_sendfile, to, from, offset, bytes))               \
    X(ssize_t, splice,                                                                             \
      (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t bytes, unsigned flags),  \
      (from, from_offset, to, to_offset, bytes, flags),                                            \
      shim_kernel(SYS_splice, from, from_offset, to, to_offset, bytes, flags))                     \
    X(int, epoll_wait, (int fd, struct epoll_event *events, int most, int timeout_ms),             \
      (fd, events, most, timeout_ms), shim_kernel(SYS_epoll_wait, fd, events, most, timeout_ms))   \
    X(int, epoll_pwait,                                                                            \
      (int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *mask),        \
      (fd, events, most, timeout_ms, mask),                                                        \
      shim_kernel(SYS_epoll_pwait, fd, events, most, timeout_ms, mask, KERNEL_SIGSET_BYTES))       \
    X(int, epoll_pwait2,                                                                           \
      (int fd, struct epoll_event *events, int most, const struct timespec *timeout,               \
       const sigset_t *mask),                                                                      \
      (fd, events, most, timeout, mask),                                                           \
      shim_kernel(SYS_epoll_pwait2, fd, events, most, timeout, mask, KERNEL_SIGSET_BYTES))         \
    X(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms),    \
      shim_kernel(SYS_poll, fds, count, timeout_ms))                                               \
    X(int, ppoll,                                                                                  \
      (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),   \
      (fds, count, timeout, mask),                                                                 \
      shim_kernel(SYS_ppoll, fds, count, COPY_OF_TIME(timeout), mask, KERNEL_SIGSET_BYTES))        \
    X(int, select,                                                                                 \
      (int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict failed,              \
       struct timeval *restrict timeout),                                                          \
      (count, in, out, failed, timeout), shim_kernel(SYS_select, count, in, out, failed, timeout)) \
    X(int, pselect,                                                                                \
      (int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict failed,              \
       const struct timespec *restrict timeout, const sigset_t *restrict mask),                    \
      (count, in, out, failed, timeout, mask),                                                     \
      shim_kernel(SYS_pselect6, count, in, out, failed, COPY_OF_TIME(timeout),                     \
                  (const unsigned long[]){(unsigned long)mask, KERNEL_SIGSET_BYTES}))              \
    X(FILE *, fdopen, (int fd, const char *mode), (fd, mode), (errno = ENOSYS, (FILE *)NULL))

#define REAL_MEMBER(result, name, parameters, arguments, kernel) result(*name) parameters;
struct real_calls {
    REAL_CALLS(REAL_MEMBER)
    int (*fcntl)(int fd, int command, ...);
    void (*closefrom)(int first);
};
#undef REAL_MEMBER

extern struct real_calls real;

// A system call of the shim's own, past everything that is replaced (preload_syscall.c).
long shim_kernel(long number, ...);

// Looks all of them up. Harmless when done already, or from inside itself.
void real_calls_find(void);

#endif
