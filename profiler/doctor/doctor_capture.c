// SPDX-License-Identifier: MIT
//
// The doctor's checks of capture: what of the kernel and the processor can be observed from here.
#include <bpf/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/doctor/doctor_checks.h"
#include "profiler/events/events_capture.h"
#include "profiler/trace/function_tracer.h"
#include "profiler/host/host_facts.h"
#include "profiler/trace/perf_recorder.h"
#include "profiler/trace/processor_trace.h"
#include "profiler/events/receive_stamps.h"
#include "base/text.h"

static void check_btf(struct doctor_items *items)
{
    struct doctor_item *item =
        doctor_add(items, DOCTOR_CAPTURE, "BTF", "BPF programs that fit the running kernel");
    if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
        doctor_found(item, DOCTOR_YES, "/sys/kernel/btf/vmlinux");
    else
        doctor_missing(item, DOCTOR_NO,
                       "a kernel built with CONFIG_DEBUG_INFO_BTF (every Debian kernel since 5.10)",
                       "no /sys/kernel/btf/vmlinux");
}

static void check_transmit_stamps(struct doctor_items *items)
{
    struct doctor_item *item = doctor_add(items, DOCTOR_CAPTURE, "transmit stamps by sockops",
                                          "when replies left, by the NIC's clock where it has one");
    struct btf *btf = btf__load_vmlinux_btf();
    bool there =
        btf && btf__find_by_name_kind(btf, "bpf_sock_ops_enable_tx_tstamp", BTF_KIND_FUNC) > 0;
    btf__free(btf);
    if (there)
        doctor_found(item, DOCTOR_YES, "the kernel has bpf_sock_ops_enable_tx_tstamp");
    else
        doctor_missing(item, DOCTOR_NO, "Linux 6.15; until then replies are stamped at the device",
                       "this kernel has no bpf_sock_ops_enable_tx_tstamp");
}

// Loads and attaches every program for a moment, into rings of a few records.
void doctor_check_events(struct doctor_items *items)
{
    struct events_capture_settings settings = {
        .ring_bytes = 1, .connections = 16, .groups = EVENT_GROUPS_ALL};
    struct events_capture *capture;
    struct error err;
    char disabled[16];
    check_transmit_stamps(items);
    struct doctor_item *bpf = doctor_add(items, DOCTOR_CAPTURE, "BPF (events backend)",
                                         "task runs, interrupts, M(n), M(h), replies");
    size_t at = items->count - 1, attached = 0, needed = 0;
    host_read_line("/proc/sys/kernel/unprivileged_bpf_disabled", disabled, sizeof disabled);
    if (events_capture_open(&settings, &capture, &err) < 0) {
        doctor_missing(bpf, DOCTOR_NO,
                       "run as root, or setcap cap_bpf,cap_perfmon+ep on the program", "%s",
                       err.text);
        return;
    }
    const struct event_program_state *states = events_capture_programs(capture);
    for (size_t i = 0; i < EVENT_PROGRAMS; i++) {
        struct doctor_item *item =
            doctor_add(items, DOCTOR_EVENTS, event_programs[i].name, event_programs[i].gives);
        attached += states[i].attached;
        needed += states[i].asked;
        if (!states[i].asked)
            doctor_found(item, DOCTOR_YES, "%s", states[i].reason);
        else if (states[i].attached && states[i].stood_in)
            doctor_found(item, DOCTOR_YES, "attaches, at the entry or exit of %s",
                         event_programs[i].stand_in);
        else if (states[i].attached)
            doctor_found(item, DOCTOR_YES, "attaches");
        else
            doctor_missing(item, DOCTOR_NO, "a newer kernel (6.16 has all of them)", "%s",
                           states[i].reason);
    }
    bpf = &items->items[at];
    doctor_found(bpf, DOCTOR_YES, "%s of %zu programs attach; unprivileged_bpf_disabled is %s",
                 TEXT_COUNT(attached), needed, disabled[0] ? disabled : "unknown");
    if (attached < needed)
        doctor_missing(bpf, DOCTOR_LIMITED, "a newer kernel (6.16 has all of them)",
                       "%zu programs do not attach: see `doctor --json`", needed - attached);
    events_capture_free(capture);
}

static void check_receive_stamps(struct doctor_items *items)
{
    enum receive_stamps_state state;
    struct error err;
    struct doctor_item *item = doctor_add(items, DOCTOR_CAPTURE, "software receive stamps",
                                          "M(n): when the kernel got each packet");
    int fd = receive_stamps_hold(&state, &err);
    if (fd < 0) {
        doctor_missing(item, DOCTOR_NO, "a kernel with network timestamping", "%s", err.text);
        return;
    }
    close(fd);
    if (state == RECEIVE_STAMPS_ON)
        doctor_found(item, DOCTOR_YES, "a packet over loopback came with one");
    else
        doctor_missing(item, state == RECEIVE_STAMPS_OFF ? DOCTOR_NO : DOCTOR_LIMITED,
                       "ip link set lo up", "no packet over loopback came with one");
}

void doctor_check_processor_trace(struct doctor_items *items)
{
    struct processor_trace trace;
    char event[128];
    struct doctor_item *item =
        doctor_add(items, DOCTOR_CAPTURE, "Intel PT", "every function call, user and kernel");
    processor_trace_find("", NULL, &trace);
    if (trace.obstacle == PROCESSOR_TRACE_READY)
        doctor_found(item, DOCTOR_YES, "%s",
                     processor_trace_event(&trace, PROCESSOR_TRACE_NORMAL, event, sizeof event));
    else
        doctor_missing(item, trace.pmu_type ? DOCTOR_LIMITED : DOCTOR_NO, trace.how, "%s",
                       trace.reason);
}

static void check_counters(struct doctor_items *items)
{
    char type[16], paranoid[16];
    struct doctor_item *item =
        doctor_add(items, DOCTOR_CAPTURE, "performance counters", "cycles, cache misses, samples");
    host_read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
    if (!host_read_line("/sys/bus/event_source/devices/cpu/type", type, sizeof type) &&
        !host_read_line("/sys/bus/event_source/devices/cpu_core/type", type, sizeof type)) {
        doctor_missing(item, DOCTOR_NO, "bare metal, or a hypervisor with a virtual PMU",
                       "no PMU here; samples come from the timer (cpu-clock)");
        return;
    }
    doctor_found(item, DOCTOR_YES, "perf_event_paranoid is %s", paranoid);
    if (!privilege_held(PRIVILEGE_PERFMON) && strcmp(paranoid, "-1") != 0)
        doctor_missing(item, DOCTOR_LIMITED, "run as root, or sysctl kernel.perf_event_paranoid=-1",
                       "only this user's own programs can be sampled");
}

void doctor_check_samples(struct doctor_items *items)
{
    struct sampling sampling;
    struct doctor_item *item = doctor_add(items, DOCTOR_CAPTURE, "samples backend",
                                          "in which functions the cores were, now and then");
    sampling_find(NULL, &sampling);
    if (sampling.ready)
        doctor_found(item, DOCTOR_YES, "%s opens; at most %s samples a second", sampling.event,
                     TEXT_COUNT(sampling_most_allowed()));
    else
        doctor_missing(item, DOCTOR_NO, sampling.how, "%s", sampling.reason);
}

void doctor_check_functions(struct doctor_items *items)
{
    struct function_tracer_support support;
    struct doctor_item *item = doctor_add(items, DOCTOR_CAPTURE, "kernel function tracing",
                                          "function calls in software, at a cost");
    function_tracer_find(&support);
    if (support.ready)
        doctor_found(item, DOCTOR_YES, "%s", support.found);
    else
        doctor_missing(item, DOCTOR_NO, support.how, "%s", support.reason);
}

static void check_shim(struct doctor_items *items)
{
    char path[4096];
    struct doctor_item *item = doctor_add(items, DOCTOR_CAPTURE, "shim",
                                          "M(a): the server's own socket calls, with batches");
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 64);
    path[bytes > 0 ? bytes : 0] = '\0';
    char *slash = strrchr(path, '/');
    char *folder_end = slash ? slash : path;
    static const char *const places[] = {"/libtaillight-shim.so", "/../lib/libtaillight-shim.so",
                                         "/../lib/taillight/libtaillight-shim.so"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        strcpy(folder_end, places[i]);
        if (access(path, R_OK) == 0) {
            char *plain = realpath(path, NULL); // without the "/../" in it
            doctor_found(item, DOCTOR_YES, "%s", plain ? plain : path);
            free(plain);
            return;
        }
    }
    doctor_missing(item, DOCTOR_NO, "make, or put libtaillight-shim.so beside the program",
                   "no libtaillight-shim.so beside this program");
}

void doctor_check_capture(struct doctor_items *items)
{
    check_btf(items);
    check_receive_stamps(items);
    check_shim(items);
    check_counters(items);
}
