// SPDX-License-Identifier: MIT
//
// Finding the functions behind the shim's. The first call of any of them, or the constructor, does
// it for all, so that no signal handler meets the dynamic linker later.
#include "shim/preload_real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>

#define KERNEL_SIGSET_BYTES 8 // _NSIG / 8
// The kernel writes the time left into what it is given; libc's callers do not expect that.
#define COPY_OF_TIME(time) ((time) ? &(struct timespec){(time)->tv_sec, (time)->tv_nsec} : NULL)

static __thread bool finding __attribute__((tls_model("initial-exec")));

#define REAL_EARLY(result, name, parameters, arguments, kernel)                                    \
    static result early_##name parameters                                                          \
    {                                                                                              \
        if (!finding) {                                                                            \
            real_calls_find();                                                                     \
            if (real.name != early_##name)                                                         \
                return real.name arguments;                                                        \
        }                                                                                          \
        return (result)(kernel);                                                                   \
    }
REAL_CALLS(REAL_EARLY)

static int early_fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!finding) {
        real_calls_find();
        if (real.fcntl != early_fcntl)
            return real.fcntl(fd, command, argument);
    }
    return (int)shim_kernel(SYS_fcntl, fd, command, argument);
}

static void early_closefrom(int first)
{
    if (!finding) {
        real_calls_find();
        if (real.closefrom != early_closefrom) {
            real.closefrom(first);
            return;
        }
    }
    shim_kernel(SYS_close_range, first > 0 ? first : 0, ~0U, 0);
}

#define REAL_START(result, name, parameters, arguments, kernel) .name = early_##name,
struct real_calls real = {REAL_CALLS(REAL_START).fcntl = early_fcntl, .closefrom = early_closefrom};

static void function_find(void *pointer, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found)
        __atomic_store_n((void **)pointer, found, __ATOMIC_RELEASE);
}

void real_calls_find(void)
{
    if (finding)
        return;
    int saved = errno;
    finding = true;
#define REAL_FIND(result, name, parameters, arguments, kernel) function_find(&real.name, #name);
    REAL_CALLS(REAL_FIND)
    function_find(&real.fcntl, "fcntl");
    function_find(&real.closefrom, "closefrom");
    finding = false;
    errno = saved;
}

// --- the kernel's own ---------------------------------------------------------------------------

__attribute__((visibility("hidden"), used)) long shim_kernel_refused(long result)
{
    errno = (int)-result;
    return -1;
}

__asm__(".text\n"
        ".globl shim_kernel\n"
        ".hidden shim_kernel\n"
        ".type shim_kernel, @function\n"
        "shim_kernel:\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    mov %rcx, %rdx\n"
        "    mov %r8, %r10\n"
        "    mov %r9, %r8\n"
        "    mov 8(%rsp), %r9\n"
        "    syscall\n"
        "    mov %rax, %rdi\n"
        "    cmp $-4095, %rax\n"
        "    jae shim_kernel_refused\n"
        "    ret\n"
        ".size shim_kernel, . - shim_kernel\n");
