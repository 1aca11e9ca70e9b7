// SPDX-License-Identifier: MIT
//
// Processes that forbid themselves system calls. A filter may kill the process for a call that it
// would never have made without the shim, so nothing is tried: where a filter is in force when the
// shim starts, and from the moment the process installs one, the shim is inert and says so. Of a
// filter that lets the shim's calls pass the user may say so: TAILLIGHT_SHIM_SECCOMP=allowed.
#include "shim/preload_local.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

static bool is_allowed(void)
{
    const char *word = secure_getenv("TAILLIGHT_SHIM_SECCOMP");
    return word && strcmp(word, "allowed") == 0;
}

// Uses only calls that the loader has just made.
bool shim_seccomp_present(void)
{
    static const char wanted[] = "\nSeccomp:\t";
    char text[512];
    size_t matched = 0;
    bool present = false;
    int fd = is_allowed() ? -1 : open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (bool found = false; !found;) {
        ssize_t bytes = shim_kernel(SYS_read, fd, text, sizeof text);
        if (bytes <= 0)
            break;
        for (ssize_t i = 0; i < bytes && !found; i++) {
            found = matched == sizeof wanted - 1;
            present = found && text[i] != '0';
            matched = text[i] == wanted[matched] ? matched + 1 : text[i] == wanted[0];
        }
    }
    shim_kernel(SYS_close, fd);
    return present;
}

// What is undone if the kernel refuses the filter.
struct before_filter {
    uint32_t descriptor_limit;
    uint64_t epoch;
};

// The filter may be for all threads, and some of them amid what the shim asks the kernel. That
// takes microseconds, or as long as others have their cores; a signal's handler that interrupted
// such a thread waits in vain.
static void calls_await_end(void)
{
    enum { LOOKS = 2000 };
    const struct timespec pause = {.tv_nsec = 100000};
    for (int i = 0; i < LOOKS && atomic_load(&shim.session->calling); i++)
        shim_kernel(SYS_nanosleep, &pause, NULL);
}

static struct before_filter filter_begin(void)
{
    struct before_filter before = {0};
    if (!shim.descriptor_limit || is_allowed())
        return before;
    before.descriptor_limit = shim.descriptor_limit;
    __atomic_store_n(&shim.descriptor_limit, 0, __ATOMIC_SEQ_CST);
    calls_await_end();
    before.epoch = atomic_load(&shim.session->epoch);
    atomic_store(&shim.session->epoch, 0);
    atomic_store(&shim.page->inert, INERT_SECCOMP);
    return before;
}

static void filter_end(const struct before_filter *before, long result)
{
    if (result >= 0 || !before->descriptor_limit)
        return;
    atomic_store(&shim.page->inert, INERT_NOT);
    atomic_store(&shim.session->epoch, before->epoch);
    __atomic_store_n(&shim.descriptor_limit, before->descriptor_limit, __ATOMIC_RELEASE);
}

// --- prctl ---------------------------------------------------------------------------------------

long shim_filter_call(long number, long a, long b, long c, long d, long e, long f)
{
    struct before_filter before = filter_begin();
    long result = shim_kernel(number, a, b, c, d, e, f);
    filter_end(&before, result);
    return result;
}

SHIM_EXPORT int prctl(int option, ...)
{
    long words[4];
    va_list arguments;
    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(arguments, long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP)
        return (int)shim_filter_call(SYS_prctl, option, words[0], words[1], words[2], words[3], 0);
    return (int)shim_kernel(SYS_prctl, (long)option, words[0], words[1], words[2], words[3]);
}
