// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_capture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "profiler/bpf/capsule_trailer.h"
#include "profiler/capsule/capsule_skeleton.h"
#include "profiler/capsule/hop_attachment.h"
#include "profiler/capsule/hop_link.h"
#include "profiler/capsule/hop_queue.h"
#include "profiler/capsule/hop_rings.h"
#include "profiler/capsule/packet_words.h"
#include "profiler/capsule/translations.h"
#include "profiler/host/host_facts.h"

struct hop {
    struct capsule_bpf *programs; // maybe those of others, too
    struct hop_attachment attachment;
    struct hop_link link;
    struct translation_reader reader; // of its namespace, where it is the first there
    enum hop_role role;
    enum hop_direction direction;
    uint8_t number; // in its records
    bool gone, cut;
    bool may_follow; // packets into the queueing discipline
    struct hop_device device;
    uint32_t room_bytes; // of an IP packet: its MTU
    uint32_t link_bytes; // before the IP packet
};

struct hop_capture {
    struct hop hops[HOPS_MAX];
    size_t hop_count;
    struct capsule_bpf *copies[HOPS_MAX]; // of the programs
    size_t copy_count;
    struct hop_queue queue;
    struct hop_rings rings;
    struct hop_record_array records;
    // Taken from the rings, by the hops' numbers: records of a packet's passing, and of carried
    // ones.
    uint64_t passed[HOPS_MAX], ended[HOPS_MAX];
    struct translations translations;
    uint64_t translated; // records of flows that are known by another before a translation
    uint64_t flow_key, run, most_records, forgotten;
    uint64_t carried;    // packets whose stamps were taken in
    uint32_t room_bytes; // of those that begin to carry; 0: none do
};

// --- one hop -------------------------------------------------------------------------------------

static int refuse_privileges(struct error *err)
{
    char lacking[64];
    return error_set(err, ERROR_FAILED,
                     "cannot attach hops: this process lacks %s; run as root (it takes CAP_BPF, "
                     "CAP_PERFMON and CAP_NET_ADMIN, and CAP_SYS_ADMIN for other network "
                     "namespaces)",
                     privilege_lacking_for_bpf(lacking, sizeof lacking)[0] ? lacking
                                                                           : "CAP_NET_ADMIN");
}

static struct bpf_program *program_of(const struct hop *hop)
{
    switch (hop->role) {
    case HOP_LOOKS:
        return hop->programs->progs.hop_look;
    case HOP_BEGINS:
        return hop->programs->progs.hop_begin;
    case HOP_CARRIES:
        return hop->programs->progs.hop_carry;
    case HOP_ENDS:
        return hop->programs->progs.hop_end;
    }
    return NULL;
}

static bool is_set(const char *path)
{
    char answer[8];
    return host_read_line(path, answer, sizeof answer) && answer[0] == '1';
}

// Whether bridges of this namespace hand packets to iptables, which sees IP packets without what
// lies behind them. The settings are those of the namespace that the reader is in.
static bool bridges_cut(int socket)
{
    enum { GET_BRIDGES = 1, MOST = 1 }; // of <linux/if_bridge.h>
    int bridges[MOST];
    unsigned long request[3] = {GET_BRIDGES, (unsigned long)bridges, MOST};
    return ioctl(socket, SIOCGIFBR, request) > 0 &&
           (is_set("/proc/sys/net/bridge/bridge-nf-call-iptables") ||
            is_set("/proc/sys/net/bridge/bridge-nf-call-ip6tables"));
}

static uint32_t namespace_here(void)
{
    struct stat file;
    return stat("/proc/thread-self/ns/net", &file) == 0 ? (uint32_t)file.st_ino : 0;
}

// The names of the interfaces that there are: "lo, eth0", and no more than fit.
static void list_interfaces(char *out, size_t out_bytes)
{
    struct if_nameindex *all = if_nameindex();
    out[0] = '\0';
    for (const struct if_nameindex *at = all; at && at->if_index; at++)
        text_append(out, out_bytes, "%s%s", out[0] ? ", " : "", at->if_name);
    if (all)
        if_freenameindex(all);
}

// Whether what begins to carry there would reach its receiver with the trailer as a part of it.
static bool would_grow(const struct hop *hop)
{
    return hop->role == HOP_BEGINS && hop->direction == HOP_EGRESS && hop->link.sends_anew;
}

// In the namespace of the hop: what its interface is.
static int hop_inspect(struct hop *hop, const struct hop_spec *spec, struct error *err)
{
    struct ifreq request = {.ifr_ifindex = 0};
    char others[160];
    int result = 0;
    hop->device = (struct hop_device){if_nametoindex(spec->interface), namespace_here()};
    if (!hop->device.interface) {
        list_interfaces(others, sizeof others);
        return error_set(err, ERROR_INPUT, "--hop %s: there is no interface %s%s; there are %s",
                         spec->name, spec->interface,
                         spec->namespace[0] ? " in that namespace" : "", others);
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
    memcpy(request.ifr_name, spec->interface, HOP_INTERFACE_BYTES);
    if (ioctl(fd, SIOCGIFMTU, &request) < 0)
        result = error_set_errno(err, ERROR_FAILED, "--hop %s: its MTU is not known", spec->name);
    hop->room_bytes = (uint32_t)request.ifr_mtu;
    bool is_ethernet = ioctl(fd, SIOCGIFHWADDR, &request) == 0 &&
                       (request.ifr_hwaddr.sa_family == ARPHRD_ETHER ||
                        request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
    hop->link_bytes = is_ethernet ? ETH_HLEN : 0;
    hop->cut = bridges_cut(fd);
    close(fd);
    hop_link_begin(&hop->link, hop->device.interface);
    translation_reader_begin(&hop->reader);
    tap_holder_find(spec->interface, hop->device.namespace, &hop->link.holder);
    if (result == 0 && would_grow(hop))
        return error_set(err, ERROR_INPUT,
                         "--hop %s: packets cannot begin to carry where what is sent passes the IP "
                         "layer once more (ipvlan in its layer 3 modes, VRF, xfrm), which would "
                         "make the trailer a part of them; begin at the interface below it, or "
                         "look, without --carry",
                         spec->name);
    return result;
}

// The same: attaches its program.
static int hop_attach(struct hop *hop, const struct hop_spec *spec, struct error *err)
{
    int result = hop_attachment_make(&hop->attachment, bpf_program__fd(program_of(hop)),
                                     hop->device.interface, spec->direction, hop->attachment.made);
    if (result == -EPERM)
        return refuse_privileges(err);
    if (result == -EINVAL || result == -EOPNOTSUPP)
        return error_set(err, ERROR_FAILED,
                         "cannot attach %s: this kernel has neither tcx, which came with Linux 6.6 "
                         "(CONFIG_NET_XGRESS), nor filters of clsact (CONFIG_NET_SCH_INGRESS, "
                         "CONFIG_NET_CLS_BPF)",
                         spec->name);
    errno = -result;
    return result < 0 ? error_set_errno(err, ERROR_FAILED, "cannot attach %s", spec->name) : 0;
}

typedef int hop_action(struct hop *hop, const struct hop_spec *spec, struct error *err);

// Does something in the hop's namespace.
static int in_namespace(struct hop *hop, const struct hop_spec *spec, hop_action *action,
                        struct error *err)
{
    if (!spec->namespace[0])
        return action(hop, spec, err);
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
        result = action(hop, spec, err);
        if (setns(home, CLONE_NEWNET) < 0)
            abort(); // nothing after this would be where it belongs
    }
    if (other >= 0)
        close(other);
    if (home >= 0)
        close(home);
    return result;
}

uint32_t hop_capture_room(const struct hop_capture *capture)
{
    uint32_t room = UINT16_MAX;
    for (size_t i = 0; i < capture->hop_count; i++) {
        const struct hop *hop = &capture->hops[i];
        room = hop->room_bytes < room ? hop->room_bytes : room;
        room = hop->link.least_mtu < room ? hop->link.least_mtu : room;
        if (would_grow(hop))
            room = 1; // for none: they are left alone, and counted
    }
    return room;
}

// How many stamps a packet may get: it passes an interface on its way in or out, and where it ends
// none is written.
static uint8_t stamps_room_of(const struct hop_capture_settings *settings)
{
    uint8_t interfaces = 0;
    for (size_t i = 0; i < settings->way_count; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= hop_specs_share(&settings->way[i], &settings->way[k]);
        interfaces += !again;
    }
    return interfaces > TRAILER_STAMPS_MAX ? TRAILER_STAMPS_MAX : interfaces;
}

// All hops write into the same rings, and have the map of what waits from who looks behind queues.
static int share_maps(const struct hop_capture *capture, const struct capsule_bpf *programs)
{
    int result = hop_rings_share(&capture->rings, programs->maps.slots, programs->maps.rings);
    if (result == 0 && capture->queue.programs)
        result = bpf_map__reuse_fd(programs->maps.waiting, hop_queue_waiting(&capture->queue));
    return result;
}

// Whether the programs of one hop can serve another one.
static bool hops_are_alike(const struct hop *a, const struct hop *b)
{
    return a->role == b->role && a->may_follow == b->may_follow && a->link_bytes == b->link_bytes;
}

static uint32_t place_of(const struct hop *hop)
{
    return hop_place(hop->device.interface, hop->device.namespace);
}

// Whether these programs already serve an interface in the place of this hop's.
static bool place_is_taken(const struct hop_capture *capture, const struct capsule_bpf *programs,
                           size_t index)
{
    bool taken = false;
    for (size_t i = 0; i < index; i++)
        taken |= capture->hops[i].programs == programs &&
                 place_of(&capture->hops[i]) == place_of(&capture->hops[index]);
    return taken;
}

// Makes the programs of the hop number `index`, or takes those of an earlier one.
static int hop_make(struct hop_capture *capture, size_t index, bool shared,
                    const struct hop_capture_settings *settings, struct error *err)
{
    struct hop *hop = &capture->hops[index];
    for (size_t i = 0; i < index && shared && !hop->programs; i++)
        if (hops_are_alike(&capture->hops[i], hop) &&
            !place_is_taken(capture, capture->hops[i].programs, index))
            hop->programs = capture->hops[i].programs;
    if (!hop->programs)
        hop->programs = capture->copies[capture->copy_count++] = capsule_bpf__open();
    if (!hop->programs)
        return error_set_errno(err, ERROR_FAILED, "cannot open the BPF programs of a hop");
    struct capsule_bpf__rodata *of = hop->programs->rodata;
    struct hop_at *at = (struct hop_at *)&of->hops[place_of(hop)];
    *at = (struct hop_at){.device = hop->device, .hop = hop->number};
    of->shared = shared;
    of->hop = hop->number;
    of->may_follow = hop->may_follow;
    of->key = capture->flow_key;
    of->sample_limit = packet_sample_limit(settings->one_in);
    of->run = capture->run;
    of->asked = (uint16_t)((1u << settings->way_count) - 1);
    of->stamps_room = stamps_room_of(settings);
    of->link_bytes = hop->link_bytes;
    of->filter = settings->filter;
    for (int i = 0; i < hop->programs->skeleton->prog_cnt; i++)
        bpf_program__set_autoload(*hop->programs->skeleton->progs[i].prog, false);
    bpf_program__set_autoload(program_of(hop), true);
    return 0;
}

static void free_programs(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->copy_count; i++)
        capsule_bpf__destroy(capture->copies[i]);
    for (size_t i = 0; i < capture->hop_count; i++)
        capture->hops[i].programs = NULL;
    capture->copy_count = 0;
}

// The programs of all hops.
static int load_programs(struct hop_capture *capture, bool shared,
                         const struct hop_capture_settings *settings, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < settings->hop_count && result == 0; i++)
        result = hop_make(capture, i, shared, settings, err);
    for (size_t i = 0; i < capture->copy_count && result == 0; i++) {
        if (share_maps(capture, capture->copies[i]) == 0 &&
            capsule_bpf__load(capture->copies[i]) == 0)
            continue;
        const bool refused =
            errno == EPERM || (errno == EACCES && !privilege_held(PRIVILEGE_PERFMON));
        if (shared && !refused) { // an older kernel does not say whose interface it is
            free_programs(capture);
            return load_programs(capture, false, settings, err);
        }
        result = refused
                     ? refuse_privileges(err)
                     : error_set_errno(err, ERROR_FAILED, "cannot load the BPF programs of a hop");
    }
    return result;
}

// --- all of them ---------------------------------------------------------------------------------

static void record_keep(struct hop_capture *capture, const struct hop_record *record)
{
    if (capture->records.count >= capture->most_records ||
        array_push(&capture->records, *record) < 0)
        capture->forgotten++;
}

// A carried packet: a record for each of its stamps.
static void carried_take(struct hop_capture *capture, const struct hop_record *packet,
                         const uint64_t *stamps, size_t stamp_count)
{
    struct hop_record record = *packet;
    record.datagram = capture->carried++;
    for (size_t i = 0; i < stamp_count; i++) {
        record.time = trailer_stamp_time(stamps[i]);
        record.hop = (uint8_t)trailer_stamp_hop(stamps[i]);
        record_keep(capture, &record);
    }
}

static void slot_take(void *context, const struct hop_slot *slot, const uint64_t *stamps,
                      size_t stamp_count)
{
    struct hop_capture *capture = context;
    switch ((enum hop_slot_kind)(slot->what & 255)) {
    case HOP_SLOT_EMPTY:
        break;
    case HOP_SLOT_RECORD:
        capture->passed[slot->record.hop % HOPS_MAX]++;
        record_keep(capture, &slot->record);
        break;
    case HOP_SLOT_CARRIED:
        capture->ended[slot->record.hop % HOPS_MAX]++;
        carried_take(capture, &slot->record, stamps, stamp_count);
        break;
    case HOP_SLOT_LEAVING:
        hop_queue_take(&capture->queue, &slot->leaving);
        break;
    }
}

// Whether an earlier hop made what this one is to be attached to (hop_attachment_make()).
static bool interface_is_ours(const struct hop_capture *capture,
                              const struct hop_capture_settings *settings, size_t hop)
{
    for (size_t i = 0; i < settings->hop_count; i++)
        if (i != hop && capture->hops[i].attachment.made &&
            hop_specs_share(&settings->hops[i], &settings->hops[hop]))
            return true;
    return false;
}

// Whatever queueing discipline may come behind an egress hop, the programs must be there before.
static void prepare_queues(struct hop_capture *capture, const struct hop_capture_settings *settings)
{
    bool any = false;
    for (size_t i = 0; i < settings->hop_count; i++) {
        struct hop *hop = &capture->hops[i];
        hop->may_follow = hop->role == HOP_LOOKS && hop->direction == HOP_EGRESS;
        any |= hop->may_follow;
    }
    if (!any)
        return;
    capture->most_records =
        settings->memory_bytes / (sizeof(struct hop_record) + sizeof(struct queue_leaving));
    hop_queue_open(&capture->queue, &capture->rings, capture->most_records);
    for (size_t i = 0; i < settings->hop_count; i++)
        capture->hops[i].may_follow &= capture->queue.programs != NULL;
}

// From now on packets are followed into the queueing disciplines that are there.
static void follow_queues(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++) {
        const struct hop *hop = &capture->hops[i];
        volatile uint32_t *queues = &hop->programs->bss->queues;
        if (!hop->may_follow || *queues >> hop->number & 1 || !hop_link_queues(&hop->link))
            continue;
        hop_queue_tell(&capture->queue, hop->number, &hop->device);
        *queues |= (uint32_t)hop_queue_begin(&capture->queue) << hop->number;
    }
}

// Once the hops are gone: says of those whose packets may have waited why nobody saw how long.
static void tell_unseen(const struct hop_capture *capture, struct hop *hop)
{
    if (hop->direction != HOP_EGRESS || !hop_link_queues(&hop->link))
        return;
    snprintf(hop->link.unseen, sizeof hop->link.unseen, "%s",
             hop->role == HOP_LOOKS ? capture->queue.problem
                                    : "hops that carry do not look for it");
}

static int open_rings(struct hop_capture *capture, uint64_t bytes, struct error *err)
{
    int result = hop_rings_open(&capture->rings, bytes);
    if (result == -EPERM)
        return refuse_privileges(err);
    errno = -result;
    return result < 0 ? error_set_errno(err, ERROR_FAILED, "cannot make the rings of the hops") : 0;
}

// Connections are known to a namespace: one of its hops asks.
static void keep_one_reader_each(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++)
        for (size_t k = 0; k < i; k++)
            if (capture->hops[k].device.namespace == capture->hops[i].device.namespace)
                translation_reader_close(&capture->hops[i].reader);
}

static int hops_open(struct hop_capture *capture, const struct hop_capture_settings *settings,
                     struct error *err)
{
    int result = 0;
    if (getrandom(&capture->flow_key, sizeof capture->flow_key, 0) != sizeof capture->flow_key ||
        getrandom(&capture->run, sizeof capture->run, 0) != sizeof capture->run)
        return error_set_errno(err, ERROR_FAILED, "cannot get a random number");
    if (settings->flow_key)
        capture->flow_key = settings->flow_key;
    if (settings->run)
        capture->run = settings->run;
    capture->translations.key = capture->flow_key;
    capture->hop_count = settings->hop_count;
    for (size_t i = 0; i < settings->hop_count; i++) {
        capture->hops[i].attachment = HOP_ATTACHMENT_NONE;
        capture->hops[i].link.socket = -1;
        capture->hops[i].reader.socket = -1;
        capture->hops[i].role = settings->hops[i].role;
        capture->hops[i].direction = settings->hops[i].direction;
        capture->hops[i].number = settings->numbers[i];
    }
    for (size_t i = 0; i < settings->hop_count && result == 0; i++)
        result = in_namespace(&capture->hops[i], &settings->hops[i], hop_inspect, err);
    keep_one_reader_each(capture);
    if (result == 0)
        result = open_rings(capture, settings->ring_bytes, err);
    if (result == 0)
        prepare_queues(capture, settings);
    if (result == 0)
        result = load_programs(capture, settings->hop_count > 1, settings, err);
    if (result == 0)
        follow_queues(capture);
    // Where packets end comes first and where they begin last: none is to get a trailer that nobody
    // takes off.
    static const enum hop_role order[] = {HOP_ENDS, HOP_CARRIES, HOP_LOOKS, HOP_BEGINS};
    for (size_t role = 0; role < sizeof order / sizeof *order; role++)
        for (size_t i = 0; i < settings->hop_count && result == 0; i++)
            if (settings->hops[i].role == order[role]) {
                capture->hops[i].attachment.made = interface_is_ours(capture, settings, i);
                result = in_namespace(&capture->hops[i], &settings->hops[i], hop_attach, err);
            }
    if (result == 0 && !settings->waits)
        hop_capture_begin(capture, hop_capture_room(capture));
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

// Where an MTU shrinks, packets that begin to carry from now on are shorter.
static void look_at_links(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++) {
        hop_link_look(&capture->hops[i].link);
        translation_reader_look(&capture->hops[i].reader, &capture->translations);
    }
    follow_queues(capture);
    uint32_t room_bytes = hop_capture_room(capture);
    if (room_bytes < capture->room_bytes)
        hop_capture_begin(capture, room_bytes);
}

bool hop_capture_drain(struct hop_capture *capture)
{
    look_at_links(capture);
    return hop_rings_drain(&capture->rings, slot_take, capture);
}

static void hop_detach(struct hop *hop)
{
    if (!hop_attachment_is_there(&hop->attachment))
        return;
    hop->gone = hop_attachment_is_gone(&hop->attachment);
    hop_attachment_end(&hop->attachment);
}

void hop_capture_begin(struct hop_capture *capture, uint32_t room_bytes)
{
    capture->room_bytes = room_bytes;
    for (size_t i = 0; i < capture->hop_count; i++)
        *(volatile uint32_t *)&capture->hops[i].programs->bss->room_bytes = room_bytes;
}

void hop_capture_begin_no_more(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++)
        if (capture->hops[i].role == HOP_BEGINS)
            hop_detach(&capture->hops[i]);
}

// Flows that are translated somewhere are from here on what they were before.
static void undo_translations(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++)
        translation_reader_end(&capture->hops[i].reader, &capture->translations);
    for (size_t i = 0; i < capture->records.count; i++) {
        struct hop_record *record = &capture->records.items[i];
        const uint64_t before = translations_before(&capture->translations, record->flow);
        capture->translated += before != record->flow;
        record->flow = before;
    }
}

void hop_capture_stop(struct hop_capture *capture)
{
    for (size_t i = 0; i < capture->hop_count; i++) {
        hop_detach(&capture->hops[i]);
        hop_link_end(&capture->hops[i].link);
        tell_unseen(capture, &capture->hops[i]);
    }
    hop_queue_end(&capture->queue);
    // Programs that were running on other cores end within microseconds.
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    while (capture->rings.slots && hop_capture_drain(capture))
        ; // nobody writes any more: what the rings hold, and no more
    hop_queue_settle(&capture->queue, capture->records.items, capture->records.count);
    undo_translations(capture);
}

struct hop_counts hop_capture_counts(const struct hop_capture *capture, size_t hop)
{
    const uint8_t number = capture->hops[hop].number % HOPS_MAX;
    struct hop_counts counts =
        *(volatile struct hop_counts *)&capture->hops[hop].programs->bss->counts[number];
    bool looks = capture->hops[hop].role == HOP_LOOKS;
    counts.left = capture->queue.left[number];
    // Where packets carry, what else is recorded is how a stream opens: bare.
    counts.recorded = looks ? capture->passed[number] : capture->ended[number];
    if (looks)
        counts.matched = counts.recorded + counts.unsampled + counts.bare + counts.dropped;
    return counts;
}

const struct hop_link *hop_capture_link(const struct hop_capture *capture, size_t hop)
{
    return &capture->hops[hop].link;
}

bool hop_capture_is_cut(const struct hop_capture *capture, size_t hop)
{
    return capture->hops[hop].cut;
}

bool hop_capture_is_gone(const struct hop_capture *capture, size_t hop)
{
    const struct hop *it = &capture->hops[hop];
    return it->gone || it->link.left || hop_attachment_is_gone(&it->attachment);
}

struct hop_record_array *hop_capture_records(struct hop_capture *capture)
{
    return &capture->records;
}

uint64_t hop_capture_flow_key(const struct hop_capture *capture)
{
    return capture->flow_key;
}

uint64_t hop_capture_translated(const struct hop_capture *capture)
{
    return capture->translated;
}

uint64_t hop_capture_forgotten(const struct hop_capture *capture)
{
    return capture->forgotten + capture->queue.lost + hop_rings_left(&capture->rings);
}

void hop_capture_free(struct hop_capture *capture)
{
    if (!capture)
        return;
    hop_capture_stop(capture);
    hop_rings_close(&capture->rings);
    free_programs(capture);
    translations_free(&capture->translations);
    array_free(&capture->records);
    free(capture);
}
