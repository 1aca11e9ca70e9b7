// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_capture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profiler/capsule/capsule_skeleton.h"
#include "profiler/capsule/packet_words.h"
#include "profiler/host_facts.h"

struct hop {
    struct capsule_bpf *programs; // with counts of its own
    int link;                     // -1: not attached
    bool gone;
    char name[HOP_NAME_BYTES];
};

struct hop_capture {
    struct hop hops[HOPS_MAX];
    size_t hop_count;
    struct ring_buffer *ring;
    struct hop_record_array records;
    uint64_t flow_key, most_records, forgotten;
    size_t left; // how many records the drain under way still takes
};

enum { DRAIN_RECORDS = 65536 }; // at a time, however fast more come

// --- one hop -------------------------------------------------------------------------------------

// Of <linux/bpf.h> since 6.6, which may be newer than the headers and the libbpf this is built
// with.
enum { TCX_INGRESS = 46, TCX_EGRESS = 47 };

struct tcx_link_request {
    uint32_t program, interface, attach_type, flags;
    uint64_t rest[6]; // relative to which other program: zeros, after those that are there
};

static int tcx_attach(int program, unsigned interface, enum hop_direction direction)
{
    struct tcx_link_request request = {
        .program = (uint32_t)program,
        .interface = interface,
        .attach_type = direction == HOP_INGRESS ? TCX_INGRESS : TCX_EGRESS,
    };
    return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &request, sizeof request);
}

// The kernel keeps the link of an interface that is gone, and says that it is of none.
static bool link_is_dead(int link)
{
    enum { TCX_INTERFACE = 16 }; // where bpf_link_info.tcx.ifindex lies
    union {
        struct bpf_link_info info;
        uint8_t bytes[sizeof(struct bpf_link_info)];
    } answer;
    uint32_t bytes = sizeof answer, interface = 0;
    memset(&answer, 0, sizeof answer);
    if (bpf_obj_get_info_by_fd(link, &answer, &bytes) < 0)
        return false;
    memcpy(&interface, answer.bytes + TCX_INTERFACE, sizeof interface);
    return interface == 0;
}

static int refuse_privileges(struct error *err)
{
    char lacking[64];
    return error_set(err, ERROR_FAILED,
                     "cannot attach hops: this process lacks %s; run as root (it takes CAP_BPF and "
                     "CAP_NET_ADMIN, and CAP_SYS_ADMIN for other network namespaces)",
                     privilege_lacking_for_bpf(lacking, sizeof lacking)[0] ? lacking
                                                                           : "CAP_NET_ADMIN");
}

// In the namespace of the hop.
static int hop_attach_here(struct hop *hop, const struct hop_spec *spec, struct error *err)
{
    unsigned interface = if_nametoindex(spec->interface);
    if (!interface)
        return error_set(err, ERROR_INPUT, "--hop %s: there is no interface %s%s", spec->name,
                         spec->interface, spec->namespace[0] ? " in that namespace" : "");
    hop->link =
        tcx_attach(bpf_program__fd(hop->programs->progs.hop_look), interface, spec->direction);
    if (hop->link >= 0)
        return 0;
    if (errno == EPERM)
        return refuse_privileges(err);
    if (errno == EINVAL || errno == EOPNOTSUPP)
        return error_set(err, ERROR_FAILED,
                         "cannot attach %s: this kernel has no tcx, which came with Linux 6.6 "
                         "(CONFIG_NET_XGRESS)",
                         spec->name);
    return error_set_errno(err, ERROR_FAILED, "cannot attach %s", spec->name);
}

// Goes into the hop's namespace for as long as it takes.
static int hop_attach(struct hop *hop, const struct hop_spec *spec, struct error *err)
{
    if (!spec->namespace[0])
        return hop_attach_here(hop, spec, err);
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int other = open(spec->namespace, O_RDONLY | O_CLOEXEC);
    int result = 0;
    if (home < 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot open /proc/thread-self/ns/net");
    else if (other < 0)
        result = error_set_errno(err, ERROR_INPUT, "--hop %s: no network namespace at %s",
                                 spec->name, spec->namespace);
    else if (setns(other, CLONE_NEWNET) < 0)
        result = errno == EPERM ? refuse_privileges(err)
                                : error_set_errno(err, ERROR_INPUT, "--hop %s: cannot enter %s",
                                                  spec->name, spec->namespace);
    else {
        result = hop_attach_here(hop, spec, err);
        if (setns(home, CLONE_NEWNET) < 0)
            abort(); // nothing after this would be where it belongs
    }
    if (other >= 0)
        close(other);
    if (home >= 0)
        close(home);
    return result;
}

// The ring's size must be a power of two of pages.
static uint32_t ring_bytes_of(uint64_t wanted)
{
    uint32_t bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    while (bytes < wanted && bytes < UINT32_C(1) << 30)
        bytes *= 2;
    return bytes;
}

// Loads the programs of hop number `index`, with the first hop's ring.
static int hop_load(struct hop_capture *capture, size_t index,
                    const struct hop_capture_settings *settings, struct error *err)
{
    struct capsule_bpf *programs = capsule_bpf__open();
    if (!programs)
        return error_set_errno(err, ERROR_FAILED, "cannot open the BPF programs of a hop");
    capture->hops[index].programs = programs;
    programs->rodata->hop = (uint8_t)index;
    programs->rodata->key = capture->flow_key;
    programs->rodata->sample_limit = packet_sample_limit(settings->one_in);
    programs->bss->filter = settings->filter;
    int failed =
        index == 0
            ? bpf_map__set_max_entries(programs->maps.records, ring_bytes_of(settings->ring_bytes))
            : bpf_map__reuse_fd(programs->maps.records,
                                bpf_map__fd(capture->hops[0].programs->maps.records));
    if (failed || capsule_bpf__load(programs) < 0)
        return errno == EPERM
                   ? refuse_privileges(err)
                   : error_set_errno(err, ERROR_FAILED, "cannot load the BPF programs of a hop");
    return 0;
}

// --- all of them ---------------------------------------------------------------------------------

static int record_take(void *context, void *data, size_t bytes)
{
    struct hop_capture *capture = context;
    if (bytes < sizeof(struct hop_record) || capture->records.count >= capture->most_records ||
        array_push(&capture->records, *(const struct hop_record *)data) < 0)
        capture->forgotten++;
    return --capture->left ? 0 : -EAGAIN; // negative: libbpf stops after this one
}

static int hops_open(struct hop_capture *capture, const struct hop_capture_settings *settings,
                     struct error *err)
{
    int result = 0;
    if (getrandom(&capture->flow_key, sizeof capture->flow_key, 0) != sizeof capture->flow_key)
        return error_set_errno(err, ERROR_FAILED, "cannot get a random number");
    for (size_t i = 0; i < settings->hop_count && result == 0; i++) {
        capture->hops[i].link = -1;
        snprintf(capture->hops[i].name, sizeof capture->hops[i].name, "%s", settings->hops[i].name);
        capture->hop_count = i + 1;
        result = hop_load(capture, i, settings, err);
    }
    if (result == 0) {
        capture->ring = ring_buffer__new(bpf_map__fd(capture->hops[0].programs->maps.records),
                                         record_take, capture, NULL);
        if (!capture->ring)
            result = error_set_errno(err, ERROR_FAILED, "cannot map the ring of the hops");
    }
    // One after the other, and only when all of them can be.
    for (size_t i = 0; i < settings->hop_count && result == 0; i++)
        result = hop_attach(&capture->hops[i], &settings->hops[i], err);
    return result;
}

int hop_capture_open(const struct hop_capture_settings *settings, struct hop_capture **out,
                     struct error *err)
{
    *out = NULL;
    struct hop_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return error_set(err, ERROR_FAILED, "no memory for a capture");
    capture->most_records = settings->memory_bytes / sizeof(struct hop_record);
    libbpf_print_fn_t printer = libbpf_set_print(NULL); // what matters is in the errors
    int result = hops_open(capture, settings, err);
    libbpf_set_print(printer);
    if (result < 0)
        hop_capture_free(capture);
    else
        *out = capture;
    return result;
}

bool hop_capture_drain(struct hop_capture *capture)
{
    capture->left = DRAIN_RECORDS;
    ring_buffer__consume(capture->ring);
    return capture->left == 0;
}

void hop_capture_stop(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++) {
        struct hop *hop = &capture->hops[i];
        if (hop->link < 0)
            continue;
        hop->gone = link_is_dead(hop->link);
        close(hop->link);
        hop->link = -1;
    }
    // Programs that were running on other cores end within microseconds.
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    while (capture->ring && hop_capture_drain(capture))
        ; // nobody writes any more: what the ring holds, and no more
}

struct hop_counts hop_capture_counts(const struct hop_capture *capture, size_t hop)
{
    return *(volatile struct hop_counts *)&capture->hops[hop].programs->bss->counts;
}

bool hop_capture_is_gone(const struct hop_capture *capture, size_t hop)
{
    const struct hop *it = &capture->hops[hop];
    return it->gone || (it->link >= 0 && link_is_dead(it->link));
}

size_t hop_capture_attached(const struct hop_capture *capture)
{
    size_t attached = 0;
    for (size_t i = 0; i < capture->hop_count; i++)
        attached += capture->hops[i].link >= 0 && !hop_capture_is_gone(capture, i);
    return attached;
}

struct hop_record_array *hop_capture_records(struct hop_capture *capture)
{
    return &capture->records;
}

uint64_t hop_capture_flow_key(const struct hop_capture *capture)
{
    return capture->flow_key;
}

uint64_t hop_capture_forgotten(const struct hop_capture *capture)
{
    return capture->forgotten;
}

void hop_capture_free(struct hop_capture *capture)
{
    if (!capture)
        return;
    hop_capture_stop(capture);
    ring_buffer__free(capture->ring);
    for (size_t i = 0; i < capture->hop_count; i++)
        capsule_bpf__destroy(capture->hops[i].programs);
    array_free(&capture->records);
    free(capture);
}
