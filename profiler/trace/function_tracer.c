// SPDX-License-Identifier: MIT
#include "profiler/trace/function_tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Receive and transmit, sockets, epoll, the scheduler, system calls, page faults, timers.
static const char *const function_tracer_default_patterns =
    "tcp_*,__tcp_*,udp_*,ip_*,__ip_*,ip6_*,inet_*,sock_*,__sock_*,sk_*,__sk_*,skb_*,__skb_*,net_*,"
    "__netif_*,netif_*,napi_*,__napi_*,dev_*,__dev_*,process_backlog,loopback_xmit,veth_*,"
    "ep_*,do_epoll_*,schedule*,__schedule,try_to_wake_up,ttwu_*,pick_next_*,enqueue_*,dequeue_*,"
    "finish_task_switch*,do_futex,futex_*,__x64_sys_*,__sys_*,ksys_*,vfs_*,handle_mm_fault,"
    "do_user_addr_fault,hrtimer_*,__hrtimer_*,run_timer_softirq,__do_softirq,handle_softirqs";

// In the order of setting up, undone in reverse: the tracer is set last, and undone first.
enum { CORES, CLOCK, SIZE, FILTER, TRACER, TRACING };
static const char *const files[TRACER_SETTINGS] = {"tracing_cpumask", "trace_clock",
                                                   "buffer_size_kb",  "set_ftrace_filter",
                                                   "current_tracer",  "tracing_on"};

static ssize_t read_file(const char *path, char *out, size_t out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = fd < 0 ? -1 : 0;
    while (fd >= 0 && used + 1 < out_bytes &&
           (got = read(fd, out + used, out_bytes - 1 - used)) > 0)
        used += (size_t)got;
    if (fd >= 0)
        close(fd);
    out[used] = '\0';
    return got < 0 ? -1 : (ssize_t)used;
}

// Only system calls, because the guard writes too.
static int write_file(const char *path, const char *text, int more)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | more);
    size_t bytes = strlen(text);
    if (fd < 0)
        return -1;
    ssize_t written = bytes ? write(fd, text, bytes) : 0;
    int number = errno;
    int closed = close(fd);
    errno = written < 0 ? number : errno;
    return written == (ssize_t)bytes && closed == 0 ? 0 : -1;
}

static bool has_word(const char *text, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += bytes)
        if ((at == text || at[-1] == ' ') && (!at[bytes] || strchr(" \n", at[bytes])))
            return true;
    return false;
}

void function_tracer_find(struct function_tracer_support *out)
{
    static const char *const folders[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    char path[64], tracers[256] = "";
    *out = (struct function_tracer_support){.folder = ""};
    for (size_t i = 0; i < 2 && !tracers[0]; i++) {
        snprintf(path, sizeof path, "%s/available_tracers", folders[i]);
        if (read_file(path, tracers, sizeof tracers) > 0)
            out->folder = folders[i];
    }
    tracers[strcspn(tracers, "\n")] = '\0';
    if (has_word(tracers, "function_graph")) {
        snprintf(out->found, sizeof out->found, "function_graph");
        snprintf(path, sizeof path, "%s/current_tracer", out->folder);
        out->ready = access(path, W_OK) == 0;
        if (!out->ready) {
            snprintf(out->reason, sizeof out->reason, "this process may not set tracers");
            snprintf(out->how, sizeof out->how, "run as root");
        }
    } else if (tracers[0]) {
        snprintf(out->reason, sizeof out->reason, "this kernel's tracers: %s", tracers);
        snprintf(out->how, sizeof out->how, "a kernel built with CONFIG_FUNCTION_GRAPH_TRACER");
    } else {
        snprintf(out->reason, sizeof out->reason, "no tracers to be seen");
        snprintf(out->how, sizeof out->how,
                 "root, mount -t tracefs none /sys/kernel/tracing, and a kernel with "
                 "CONFIG_FUNCTION_GRAPH_TRACER");
    }
}

// --- saving the old settings ---------------------------------------------------------------------

static void put_back(const void *context)
{
    const struct function_tracer *tracer = context;
    const struct tracer_setting *chosen = &tracer->settings[TRACER];
    write_file(tracer->settings[TRACING].path, "0", 0);
    // The tracer cannot be changed while the buffer's files are open, and a killed process may
    // close the guard's pipe before those files.
    for (int tries = 0; tries < 500 && write_file(chosen->path, chosen->before, 0) < 0; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    for (int i = TRACER - 1; i >= 0; i--)
        write_file(tracer->settings[i].path, tracer->settings[i].before, O_TRUNC);
    write_file(tracer->settings[TRACING].path, tracer->settings[TRACING].before, 0);
}

// The current one of "local [global] mono": the word in brackets.
static void keep_chosen(char *text)
{
    char *begin = strchr(text, '['), *end = strchr(text, ']');
    if (!begin || !end || end < begin)
        return;
    size_t bytes = (size_t)(end - begin - 1);
    memmove(text, begin + 1, bytes);
    text[bytes] = '\0';
}

static int settings_save(struct function_tracer *tracer, struct error *err)
{
    char *before;
    for (size_t i = 0; i < TRACER_SETTINGS; i++) {
        struct tracer_setting *setting = &tracer->settings[i];
        snprintf(setting->path, sizeof setting->path, "%s/%s", tracer->folder, files[i]);
        before = setting->before;
        if (read_file(setting->path, before, TRACER_VALUE_BYTES) < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot read %s", setting->path);
        before[strcspn(before, "\n")] = '\0';
    }
    if (strcmp(tracer->settings[TRACER].before, "nop") != 0)
        return error_set(err, ERROR_FAILED,
                         "the kernel's tracer is in use (%s is \"%s\"): end that first",
                         tracer->settings[TRACER].path, tracer->settings[TRACER].before);
    before = tracer->settings[FILTER].before;
    if (before[0] && before[0] != '#')
        return error_set(err, ERROR_FAILED,
                         "%s is in use (\"%s\", ...): empty it first, for it could not be put back",
                         tracer->settings[FILTER].path, before);
    before[0] = '\0';
    keep_chosen(tracer->settings[CLOCK].before);
    before = tracer->settings[SIZE].before; // "7 (expanded: 1408)", or "X" if cores differ
    before[strcspn(before, " ")] = '\0';
    return 0;
}

// --- setting up ----------------------------------------------------------------------------------

static int setting_write(const struct function_tracer *tracer, int which, const char *text,
                         struct error *err)
{
    return write_file(tracer->settings[which].path, text, O_TRUNC) == 0
               ? 0
               : error_set_errno(err, ERROR_FAILED, "cannot write \"%s\" to %s", text,
                                 tracer->settings[which].path);
}

// Words of 32 cores in hex, the highest first.
int function_tracer_set_cores(const struct function_tracer *tracer, const cpu_set_t *cores,
                              struct error *err)
{
    char text[TRACER_VALUE_BYTES];
    size_t used = 0;
    long count = sysconf(_SC_NPROCESSORS_CONF);
    if (CPU_COUNT(cores) == 0)
        return 0;
    for (long word = (count - 1) / 32; word >= 0; word--) {
        uint32_t bits = 0;
        for (unsigned bit = 0; bit < 32; bit++)
            bits |= (uint32_t)(CPU_ISSET((unsigned)word * 32 + bit, cores) != 0) << bit;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%08x", used ? "," : "", bits);
    }
    return setting_write(tracer, CORES, text, err);
}

static int set_filter(struct function_tracer *tracer, const char *patterns, struct error *err)
{
    bool given = patterns != NULL;
    char pattern[128];
    const char *at = given ? patterns : function_tracer_default_patterns;
    while (*at) {
        size_t bytes = strcspn(at, ",");
        // the output can only be read when the command has ended
        snprintf(pattern, sizeof pattern, "%.*s\n", (int)bytes, at);
        at += bytes + (at[bytes] == ',');
        if (write_file(tracer->settings[FILTER].path, pattern, O_APPEND) == 0)
            tracer->functions++;
        else if (given)
            return error_set_errno(err, ERROR_INPUT,
                                   "--functions: this kernel has no function \"%.*s\" to trace",
                                   (int)strcspn(pattern, "\n"), pattern);
    }
    return tracer->functions ? 0
                             : error_set_errno(err, ERROR_FAILED, "cannot choose functions in %s",
                                               tracer->settings[FILTER].path);
}

int function_tracer_begin(struct function_tracer *tracer,
                          const struct function_tracer_settings *settings, struct error *err)
{
    struct function_tracer_support support;
    char size[32];
    *tracer = (struct function_tracer){0};
    function_tracer_find(&support);
    if (!support.ready)
        return error_set(err, ERROR_FAILED, "cannot trace kernel functions: %s; needed: %s",
                         support.reason, support.how);
    tracer->folder = support.folder;
    snprintf(size, sizeof size, "%llu", (unsigned long long)(settings->buffer_bytes >> 10));
    int result = settings_save(tracer, err);
    if (result == 0)
        result = guard_begin(&tracer->guard, put_back, tracer, -1, err);
    if (result < 0)
        return result;
    if ((result = setting_write(tracer, TRACING, "0", err)) < 0 ||
        (result = function_tracer_set_cores(tracer, &settings->cores, err)) < 0 ||
        (result = setting_write(tracer, CLOCK, "mono_raw", err)) < 0 ||
        (result = setting_write(tracer, SIZE, size, err)) < 0 ||
        (result = set_filter(tracer, settings->patterns, err)) < 0 ||
        (result = setting_write(tracer, TRACER, "function_graph", err)) < 0)
        function_tracer_end(tracer);
    return result;
}

int function_tracer_switch(const struct function_tracer *tracer, bool on, struct error *err)
{
    return setting_write(tracer, TRACING, on ? "1" : "0", err);
}

void function_tracer_end(struct function_tracer *tracer)
{
    guard_end(&tracer->guard);
}
