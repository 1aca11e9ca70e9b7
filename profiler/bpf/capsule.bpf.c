// SPDX-License-Identifier: MIT
//
// A hop of Time Capsule (Suo et al., APSys '16): a program at the ingress or egress of an interface
// that stamps the packets it is asked for. Either it only looks: it writes into a ring when a
// packet passed and by what it is known again at other hops, and changes no byte. Or packets carry
// their stamps in a trailer (profiler/bpf/capsule_trailer.h), which the first hop of their way
// gives them and the last takes off and writes into the ring.
//
// It runs for every packet of the interface, so it looks at the headers and is done with what the
// filter does not want. Where the kernel lets it see whose interface it runs for (Linux 6.2), a
// copy of these programs serves several hops, since one that did not run just now has to come from
// memory; all write into the same rings.
#include "profiler/bpf/kernel.h"

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "profiler/bpf/capsule_trailer.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/bpf/hop_rings.bpf.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/bpf/queue_waiting.bpf.h"

struct hop_counts counts[HOP_COUNTS];
// How long an IP packet may be with its trailer. 0, before all hops are attached and when they
// go: no packet begins to carry.
uint32_t room_bytes;
uint32_t queues; // packets wait behind these hops, and are followed there: one bit each
// Filled in before the programs are loaded, whose verifier then leaves out what is not asked.
const volatile struct packet_filter filter;
const volatile bool shared; // these programs serve several hops, else this one:
const volatile uint8_t hop;
const volatile struct hop_at hops[HOP_PLACES];
const volatile uint32_t sample_limit; // see packet_is_sampled()
const volatile uint64_t key;          // of packet_flow(), and of trailers
const volatile bool may_follow;       // what waits; of egress hops that look
// Of hops that carry.
const volatile uint64_t run;        // the trailers' number
const volatile uint16_t asked;      // hops that are to stamp, one bit each
const volatile uint8_t stamps_room; // how many stamps a trailer has room for
const volatile uint32_t link_bytes; // before the IP packet, without VLAN tags: 14, or 0

// By the low bits of a flow: its high half, and how far it has been carried. Where two flows share
// a place, one of them may be carried twice.
uint64_t carried_up_to[CAPSULE_FLOWS];

enum { LEAST_FRAME_BYTES = 60 }; // Ethernet fills shorter ones up
enum { CONTINUE = -1 }; // TCX_NEXT, and TC_ACT_UNSPEC of clsact: as if this program were not here

static __always_inline uint8_t core_after(void)
{
    uint32_t core = bpf_get_smp_processor_id();
    return core < 255 ? (uint8_t)(core + 1) : 0;
}

static __always_inline void count(uint64_t *counter)
{
    __sync_fetch_and_add(counter, 1);
}

extern void *bpf_cast_to_kern_ctx(void *object) __ksym __weak;

// Which hop this is; HOPS_MAX: none, since the interface was moved to another namespace, where it
// may have another's number.
static __always_inline uint8_t hop_here(struct __sk_buff *skb)
{
    if (!shared)
        return hop;
    const struct sk_buff *buffer = bpf_cast_to_kern_ctx(skb);
    const struct net_device *device = buffer->dev;
    uint32_t interface = (uint32_t)device->ifindex;
    uint32_t namespace =
        bpf_core_field_exists(device->nd_net.net) ? device->nd_net.net->ns.inum : 0;
    const volatile struct hop_at *at = &hops[hop_place(interface, namespace)];
    return at->device.interface == interface && at->device.namespace == namespace ? (uint8_t)at->hop
                                                                                  : HOPS_MAX;
}

static __always_inline struct hop_counts *counts_of(uint8_t number)
{
    return &counts[number & (HOP_COUNTS - 1)];
}

// As a place that the compiler knows nothing of: it would take the zeros for what the filter is.
static __always_inline const struct packet_filter *asked_for(void)
{
    const volatile struct packet_filter *at = &filter;
    asm volatile("" : "+r"(at));
    return (const struct packet_filter *)at;
}

#include "profiler/bpf/packet_reading.bpf.h"

// --- hops that look ------------------------------------------------------------------------------

// The payload's first bytes, zeros after its end; of a fragment, all that it has of them.
static __always_inline void read_prefix(struct __sk_buff *skb, const struct reading_state *state,
                                        uint64_t prefix[PACKET_PREFIX_WORDS])
{
    uint32_t bytes = state->head.ip_bytes - (state->payload_at - state->ip_at);
    if (bytes > state->head.payload_bytes)
        bytes = state->head.payload_bytes;
    if (bytes >= PACKET_PREFIX_WORDS * 8) {
        load(skb, state, state->payload_at, prefix, PACKET_PREFIX_WORDS * 8);
        return;
    }
    if (bytes == 0)
        return;
    uint32_t more = bytes - 1;
    asm volatile("" : "+r"(more)); // so that the verifier, of older kernels too, sees the bounds
    more &= PACKET_PREFIX_WORDS * 8 - 1;
    load_by_kernel(skb, state, state->payload_at, prefix, more + 1);
}

// True if any byte of a stream's packet is sampled; if not the last one, the record says so.
static __always_inline bool stream_is_sampled(struct hop_record *record)
{
    if (sample_limit == PACKET_SAMPLE_ALL ||
        packet_is_sampled(packet_block(key, record->end - 1), sample_limit))
        return true;
    record->flags |= HOP_ONLY_COVERS;
    uint32_t block = record->first / PACKET_BLOCK_BYTES * PACKET_BLOCK_BYTES;
    for (int i = 0; i < PACKET_BLOCKS_MAX; i++, block += PACKET_BLOCK_BYTES) {
        if ((int32_t)(record->end - block) <= 0)
            break;
        if (packet_is_sampled(packet_block(key, block), sample_limit))
            return true;
    }
    return false;
}

static __always_inline bool datagram_is_sampled(struct __sk_buff *skb,
                                                const struct reading_state *state,
                                                struct hop_record *record)
{
    uint64_t prefix[PACKET_PREFIX_WORDS] = {0};
    read_prefix(skb, state, prefix);
    record->datagram = packet_datagram(&state->head, key, prefix);
    record->first = number16((const uint8_t *)prefix);
    record->end = record->first + 1;
    record->flags |= state->is_fragment ? HOP_FRAGMENT : 0;
    record->flags |= skb->gso_size ? HOP_BUNDLE : 0;
    return packet_is_sampled(record->datagram, sample_limit);
}

// Fills in by what the packet is known. False: it is not to be recorded, and counted.
static __always_inline bool identify(struct __sk_buff *skb, const struct reading_state *state,
                                     struct hop_record *record)
{
    const struct packet_head *head = &state->head;
    record->ip_bytes = head->ip_bytes;
    record->protocol = head->protocol;
    record->hop = state->hop;
    bool sampled = true;
    if (head->protocol == PACKET_UDP) {
        sampled = datagram_is_sampled(skb, state, record);
    } else if (head->payload_bytes) {
        record->first = head->sequence;
        record->end = head->sequence + head->payload_bytes;
        sampled = stream_is_sampled(record);
    } else if (state->opens) {
        record->first = record->end = head->sequence + 1;
        record->flags |= HOP_OPENS;
    } else {
        count(&counts_of(state->hop)->bare);
        return false;
    }
    if (!sampled) {
        count(&counts_of(state->hop)->unsampled);
        return false;
    }
    record->flow = packet_flow(head, key);
    return true;
}

// Nobody is woken: the reader looks by itself, every few milliseconds.
static __always_inline bool write_record(const struct hop_record *record)
{
    struct hop_slot *slot = slot_take();
    if (!slot) {
        count(&counts_of(record->hop)->dropped);
        return false;
    }
    slot->record = *record;
    slot_finish(slot, HOP_SLOT_RECORD);
    return true;
}

// How far behind what the kernel has for the network's header the IP header lies.
static __always_inline uint32_t ip_behind(struct __sk_buff *skb, const struct reading_state *state)
{
    uint64_t here = 0, there = 0;
    if (!state->tag_bytes || !load_by_kernel(skb, state, 0, &here, sizeof here) ||
        bpf_skb_load_bytes_relative(skb, 0, &there, sizeof there, BPF_HDR_START_NET) < 0)
        return 0;
    return here == there ? 0 : state->tag_bytes;
}

// What is in this buffer passes the hop; where it is recorded, it is looked for at the device.
static __always_inline void follow(struct __sk_buff *skb, const struct reading_state *state,
                                   const struct hop_record *record, bool recorded)
{
    uint64_t buffer = (uint64_t)skb;
    const struct packet_head *head = &state->head;
    if (!recorded) {
        if (bpf_map_lookup_elem(&waiting, &buffer))
            bpf_map_delete_elem(&waiting, &buffer);
        return;
    }
    bool is_four = head->family == PACKET_IPV4, is_tcp = head->protocol == PACKET_TCP;
    uint32_t behind = ip_behind(skb, state);
    uint64_t second = is_tcp ? bpf_htonl(head->sequence)
                             : bpf_htons((uint16_t)(head->payload_bytes + UDP_HEADER));
    struct waiting_packet packet = {
        .entered = record->time,
        .flow = record->flow,
        .ports = (uint64_t)bpf_htons(head->source_port) |
                 (uint64_t)bpf_htons(head->destination_port) << 16 | second << 32,
        .addresses = is_four ? head->source.word[1] >> 32 |
                                   (head->destination.word[1] & 0xffffffff00000000ull)
                             : head->destination.word[1],
        .ports_at = (uint16_t)(behind + state->transport_at),
        .addresses_at = (uint16_t)(behind + state->ip_at + (is_four ? 12 : 32)),
        .hop = record->hop,
        .protocol = head->protocol};
    if (bpf_map_update_elem(&waiting, &buffer, &packet, BPF_ANY) == 0)
        count(&counts_of(state->hop)->queued);
}

SEC("tc")
int hop_look(struct __sk_buff *skb)
{
    struct reading_state state = {.hop = hop_here(skb)};
    struct hop_record record = {.time = 0};
    if (state.hop >= HOPS_MAX)
        return CONTINUE;
    bool recorded = false, follows = may_follow && *(volatile uint32_t *)&queues >> state.hop & 1;
    enum reading reading = read_head(skb, &state);
    count_unread(&state, reading);
    if (reading == READ_LATER_FRAGMENT && packet_filter_matches_ends(asked_for(), &state.head))
        count(&counts_of(state.hop)->fragments);
    if (is_asked(skb, &reading, &state) && identify(skb, &state, &record)) {
        record.time = bpf_ktime_get_ns();
        record.core_after = core_after();
        if (follows)
            record.flags |= skb->gso_size ? HOP_FOLLOWED | HOP_DIVISIBLE : HOP_FOLLOWED;
        recorded = write_record(&record);
    }
    if (follows)
        follow(skb, &state, &record, recorded);
    return CONTINUE;
}

// --- hops that carry -----------------------------------------------------------------------------

// Where the IP packet begins. Negative: not where it should.
static __always_inline int packet_begin(struct __sk_buff *skb, const struct reading_state *state)
{
    uint8_t type[2];
    uint8_t here[6], there[6];
    uint32_t at = link_bytes;
    if (at == 0 || state->is_plain || state->tag_bytes)
        return (int)(at + state->tag_bytes);
    if (bpf_skb_load_bytes(skb, at - 2, type, sizeof type) < 0)
        return -1;
    if (number16(type) == VLAN_TAG || number16(type) == OUTER_VLAN_TAG)
        at += 4;
    if (bpf_skb_load_bytes(skb, at, here, sizeof here) < 0 ||
        bpf_skb_load_bytes_relative(skb, 0, there, sizeof there, BPF_HDR_START_NET) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof here; i++)
        if (here[i] != there[i])
            return -1;
    return (int)at;
}

// A packet that is asked for, and where its trailer is or would be.
struct carried {
    struct reading_state state;
    uint32_t trailer_at;   // from the frame's first byte
    uint32_t behind_bytes; // that lie there
};

// False: there is nothing to do with this packet.
static __always_inline bool find_carried(struct __sk_buff *skb, struct carried *it)
{
    if (it->state.hop >= HOPS_MAX)
        return false;
    enum reading reading = read_head(skb, &it->state);
    count_unread(&it->state, reading);
    if (!is_asked(skb, &reading, &it->state))
        return false;
    count(&counts_of(it->state.hop)->matched);
    if (reading == READ_FRAGMENT) {
        count(&counts_of(it->state.hop)->fragments); // each of its parts would be as long as may be
        return false;
    }
    int at = packet_begin(skb, &it->state);
    it->trailer_at = (uint32_t)at + it->state.ip_at + it->state.head.ip_bytes;
    if (at < 0 || skb->len < it->trailer_at) {
        count(&counts_of(it->state.hop)->unreadable);
        return false;
    }
    it->behind_bytes = skb->len - it->trailer_at;
    return true;
}

// Of a stream, whether these bytes have not been carried before. What is sent again is left alone,
// so that a stream goes on where packets with trailers do not get through.
static __always_inline bool stream_goes_on(const struct hop_record *record)
{
    uint64_t *place = &carried_up_to[record->flow & (CAPSULE_FLOWS - 1)];
    uint64_t before = *(volatile uint64_t *)place;
    if (before >> 32 == record->flow >> 32 && (int32_t)(record->end - (uint32_t)before) <= 0)
        return false;
    *(volatile uint64_t *)place = record->flow >> 32 << 32 | record->end;
    return true;
}

// What a trailer belongs to: what no translation of addresses on the way changes.
static __always_inline uint64_t carried_by(const struct hop_record *record)
{
    return record->protocol == PACKET_UDP ? record->datagram
                                          : (uint64_t)record->first << 32 | record->end;
}

// Whether a packet gets a trailer; if not, why is counted.
static __always_inline bool may_begin(struct __sk_buff *skb, const struct carried *it,
                                      struct hop_record *record)
{
    uint32_t most = it->state.head.ip_bytes + trailer_bytes(stamps_room);
    if (!identify(skb, &it->state, record))
        return false;
    if (record->flags & HOP_OPENS) {
        record->time = bpf_ktime_get_ns();
        if (write_record(record))
            count(&counts_of(it->state.hop)->bare); // it is left alone
        return false;
    }
    if (record->flags & HOP_ONLY_COVERS) {
        count(&counts_of(it->state.hop)->unsampled);
        return false;
    }
    if (skb->gso_size) {
        count(&counts_of(it->state.hop)->bundled);
        return false;
    }
    if (it->behind_bytes && skb->len > LEAST_FRAME_BYTES) {
        count(&counts_of(it->state.hop)->foreign);
        return false;
    }
    if (most > room_bytes) {
        count(&counts_of(it->state.hop)->no_room);
        return false;
    }
    if (record->protocol == PACKET_TCP && !stream_goes_on(record)) {
        count(&counts_of(it->state.hop)->sent_again);
        return false;
    }
    return true;
}

SEC("tc")
int hop_begin(struct __sk_buff *skb)
{
    struct {
        struct capsule_trailer head;
        uint64_t stamp;
    } trailer;
    struct carried it = {.state = {.hop = hop_here(skb)}};
    struct hop_record record = {.time = 0};
    if (!*(volatile uint32_t *)&room_bytes || !find_carried(skb, &it) ||
        !may_begin(skb, &it, &record))
        return CONTINUE;
    uint32_t before = skb->len;
    trailer.stamp = trailer_stamp(bpf_ktime_get_ns(), it.state.hop);
    trailer.head = trailer_begin(key, run, asked, stamps_room, carried_by(&record), trailer.stamp);
    // In a tunnel it would have to grow with all that is around it.
    if (it.state.ip_at ||
        bpf_skb_change_tail(skb, it.trailer_at + trailer_bytes(stamps_room), 0) < 0) {
        count(&counts_of(it.state.hop)->not_stamped);
    } else if (bpf_skb_store_bytes(skb, it.trailer_at, &trailer, sizeof trailer, 0) < 0) {
        bpf_skb_change_tail(skb, before, 0);
        count(&counts_of(it.state.hop)->not_stamped);
    } else {
        count(&counts_of(it.state.hop)->begun);
    }
    return CONTINUE;
}

// Reads the head of this run's trailer. False: there is none, and what there is, is counted.
static __always_inline bool read_trailer(struct __sk_buff *skb, const struct carried *it,
                                         struct capsule_trailer *head)
{
    if (it->behind_bytes >= sizeof *head + 8 &&
        load(skb, &it->state, it->state.ip_at + it->state.head.ip_bytes, head, sizeof *head) &&
        trailer_is_ours(head, run, it->behind_bytes))
        return true;
    if (it->behind_bytes && skb->len > LEAST_FRAME_BYTES)
        count(&counts_of(it->state.hop)->foreign);
    else
        count(&counts_of(it->state.hop)->unsampled);
    return false;
}

// Writes one more stamp behind a trailer's head, and what changes of that. False: they do not lie
// in the packet's first part, where programs may write.
static __always_inline bool write_stamp(struct __sk_buff *skb, const struct carried *it,
                                        struct capsule_trailer head, uint64_t stamp)
{
    uint8_t *end = (uint8_t *)(long)skb->data_end;
    if (it->trailer_at > DIRECT_MAX)
        return false;
    uint8_t *at = (uint8_t *)(long)skb->data + bounded(it->trailer_at);
    uint8_t *stamp_at = at + sizeof head + 8 * trailer_count(&head);
    if (at + sizeof head > end || stamp_at + sizeof stamp > end)
        return false;
    trailer_append(&head, stamp);
    *(volatile uint64_t *)stamp_at = stamp;
    *(volatile uint64_t *)at = *(uint64_t *)&head;
    *(volatile uint64_t *)(at + offsetof(struct capsule_trailer, chain)) = head.chain;
    return true;
}

SEC("tc")
int hop_carry(struct __sk_buff *skb)
{
    struct carried it = {.state = {.hop = hop_here(skb)}};
    struct capsule_trailer head;
    if (!find_carried(skb, &it) || !read_trailer(skb, &it, &head))
        return CONTINUE;
    if (!(head.asked >> it.state.hop & 1)) {
        count(&counts_of(it.state.hop)->unsampled);
        return CONTINUE;
    }
    uint64_t stamp = trailer_stamp(bpf_ktime_get_ns(), it.state.hop);
    uint32_t trailer_end = it.trailer_at + trailer_bytes(trailer_room(&head));
    if (trailer_count(&head) < trailer_room(&head) &&
        (write_stamp(skb, &it, head, stamp) ||
         (bpf_skb_pull_data(skb, trailer_end) == 0 && write_stamp(skb, &it, head, stamp))))
        count(&counts_of(it.state.hop)->stamped);
    else
        count(&counts_of(it.state.hop)->not_stamped);
    return CONTINUE;
}

// A function that is not static, as read_packet(): each of the stamps doubled the ways that the
// verifier followed.
__noinline int read_stamp(struct __sk_buff *skb, const struct reading_state *state, uint32_t at,
                          uint64_t *stamp)
{
    return state && stamp && load(skb, state, at, stamp, sizeof *stamp);
}

// Reads the stamps. False: they are not those that the hops wrote.
static __always_inline bool read_stamps(struct __sk_buff *skb, const struct carried *it,
                                        const struct capsule_trailer *head,
                                        struct carried_record *record)
{
    uint64_t chain = trailer_chain(key, run, head->asked, carried_by(&record->packet));
    uint32_t at = it->state.ip_at + it->state.head.ip_bytes + sizeof *head;
    for (uint32_t i = 0; i < TRAILER_STAMPS_MAX && i < trailer_count(head); i++) {
        uint64_t stamp = 0;
        if (!read_stamp(skb, &it->state, at + 8 * i, &stamp))
            return false;
        record->stamps[i] = stamp;
        chain = trailer_link(chain, stamp);
    }
    return chain == head->chain;
}

static __always_inline void write_carried(const struct carried_record *carried, uint32_t stamps)
{
    uint64_t position = 0;
    const struct hop_ring *ring = slots_take(1 + hop_slots_behind(stamps), &position);
    struct hop_slot *first = ring ? slot_at(ring, position) : NULL;
    if (!first) {
        count(&counts_of(carried->packet.hop)->dropped);
        return;
    }
    for (uint32_t i = 0; i < HOP_SLOTS_BEHIND_MAX && i * HOP_SLOT_STAMPS < stamps; i++) {
        struct hop_slot *slot = slot_at(ring, position + 1 + i);
        if (slot)
            copy(slot->stamps, (const uint8_t *)&carried->stamps[i * HOP_SLOT_STAMPS],
                 sizeof slot->stamps);
    }
    first->record = carried->packet;
    slot_finish(first, HOP_SLOT_CARRIED | (uint64_t)stamps << 8);
}

// A stream that opens, where its packets will end: on another machine than where they begin, that
// is all that its clock's stamps can be counted from.
static __always_inline bool record_opening(const struct carried *it)
{
    const struct packet_head *head = &it->state.head;
    if (!it->state.opens || head->payload_bytes)
        return false;
    struct hop_record record = {.time = bpf_ktime_get_ns(),
                                .flow = packet_flow(head, key),
                                .first = head->sequence + 1,
                                .end = head->sequence + 1,
                                .ip_bytes = head->ip_bytes,
                                .hop = it->state.hop,
                                .protocol = head->protocol,
                                .flags = HOP_OPENS};
    if (write_record(&record))
        count(&counts_of(it->state.hop)->bare);
    return true;
}

SEC("tc")
int hop_end(struct __sk_buff *skb)
{
    struct carried it = {.state = {.hop = hop_here(skb)}};
    struct carried_record record = {.packet = {.time = 0}};
    struct capsule_trailer head;
    if (!find_carried(skb, &it) || record_opening(&it) || !read_trailer(skb, &it, &head))
        return CONTINUE;
    record.packet.time = bpf_ktime_get_ns();
    identify(skb, &it.state, &record.packet);
    bool whole = read_stamps(skb, &it, &head, &record);
    if (it.state.ip_at || bpf_skb_change_tail(skb, it.trailer_at, 0) < 0)
        count(&counts_of(it.state.hop)->not_stamped); // IP cuts it off
    count(&counts_of(it.state.hop)->ended);
    if (!whole) {
        count(&counts_of(it.state.hop)->damaged);
        return CONTINUE;
    }
    uint64_t stamps = trailer_count(&head);
    asm volatile("" : "+r"(stamps)); // so that the verifier sees the bounds of what is passed on
    if (stamps >= HOPS_MAX)
        return CONTINUE;
    record.stamps[stamps] = trailer_stamp(record.packet.time, record.packet.hop);
    write_carried(&record, (uint32_t)stamps + 1);
    return CONTINUE;
}

char LICENSE[] SEC("license") = "GPL";
