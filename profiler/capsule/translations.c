// SPDX-License-Identifier: MIT
#include "profiler/capsule/translations.h"

#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "profiler/bpf/packet_head.h"

// --- one connection ------------------------------------------------------------------------------

// The attribute of that type and at least that many bytes. NULL: there is none.
static const void *find(const void *attributes, size_t bytes, int type, size_t least,
                        size_t *found_bytes)
{
    struct nlattr head;
    while (bytes >= sizeof head) {
        memcpy(&head, attributes, sizeof head);
        if (head.nla_len < sizeof head || head.nla_len > bytes)
            return NULL;
        *found_bytes = head.nla_len - sizeof head;
        if ((head.nla_type & NLA_TYPE_MASK) == type && *found_bytes >= least)
            return (const char *)attributes + sizeof head;
        const size_t step = ((size_t)head.nla_len + 3) / 4 * 4;
        if (step > bytes)
            return NULL;
        attributes = (const char *)attributes + step;
        bytes -= step;
    }
    return NULL;
}

static bool take_address(const void *attributes, size_t bytes, int type_four, int type_six,
                         struct packet_address *out)
{
    const uint32_t mapped = 0xffff0000u; // as packet_address_is_four() has it
    size_t found;
    const void *address = find(attributes, bytes, type_four, 4, &found);
    memset(out, 0, sizeof *out);
    if (address) {
        memcpy((char *)out + 8, &mapped, sizeof mapped);
        memcpy((char *)out + 12, address, 4);
        return true;
    }
    address = find(attributes, bytes, type_six, sizeof *out, &found);
    if (address)
        memcpy(out, address, sizeof *out);
    return address;
}

static bool take_port(const void *attributes, size_t bytes, int type, uint16_t *out)
{
    size_t found;
    const uint8_t *port = find(attributes, bytes, type, 2, &found);
    if (port)
        *out = (uint16_t)(port[0] << 8 | port[1]);
    return port;
}

// One direction of a connection. False: it is of another protocol, or something is missing.
static bool take_tuple(const void *attributes, size_t bytes, int type, struct packet_head *out)
{
    size_t tuple_bytes, part_bytes, found;
    const void *tuple = find(attributes, bytes, type, 0, &tuple_bytes), *part;
    *out = (struct packet_head){.family = 0};
    if (!tuple || !(part = find(tuple, tuple_bytes, CTA_TUPLE_IP, 0, &part_bytes)) ||
        !take_address(part, part_bytes, CTA_IP_V4_SRC, CTA_IP_V6_SRC, &out->source) ||
        !take_address(part, part_bytes, CTA_IP_V4_DST, CTA_IP_V6_DST, &out->destination))
        return false;
    part = find(tuple, tuple_bytes, CTA_TUPLE_PROTO, 0, &part_bytes);
    const uint8_t *protocol = part ? find(part, part_bytes, CTA_PROTO_NUM, 1, &found) : NULL;
    if (!protocol || (*protocol != PACKET_TCP && *protocol != PACKET_UDP))
        return false;
    out->protocol = *protocol;
    return take_port(part, part_bytes, CTA_PROTO_SRC_PORT, &out->source_port) &&
           take_port(part, part_bytes, CTA_PROTO_DST_PORT, &out->destination_port);
}

static struct packet_head turned(const struct packet_head *head)
{
    return (struct packet_head){.source = head->destination,
                                .destination = head->source,
                                .source_port = head->destination_port,
                                .destination_port = head->source_port,
                                .protocol = head->protocol};
}

// Without memory it is not followed, as if nobody had known.
static void add(struct translations *to, uint64_t behind, uint64_t before)
{
    if (behind == before)
        return;
    uint32_t found = map_find(&to->by_behind, behind, at, to->all.items[at].behind == behind);
    if (found == MAP_NONE) {
        if (array_push(&to->all, ((struct translation){behind, before})) == 0 &&
            map_add(&to->by_behind, behind, to->all.count - 1) < 0)
            to->all.count--;
    } else if (to->all.items[found].before != before) {
        to->all.items[found].before = behind; // a port that was another connection's before
    }
}

void translations_take(struct translations *translations, const void *message, size_t bytes)
{
    struct packet_head there, back; // as each is sent
    if (bytes < sizeof(struct nfgenmsg))
        return;
    message = (const char *)message + sizeof(struct nfgenmsg);
    bytes -= sizeof(struct nfgenmsg);
    if (!take_tuple(message, bytes, CTA_TUPLE_ORIG, &there) ||
        !take_tuple(message, bytes, CTA_TUPLE_REPLY, &back))
        return;
    const struct packet_head arrives = turned(&back), returns = turned(&there);
    add(translations, packet_flow(&arrives, translations->key),
        packet_flow(&there, translations->key));
    add(translations, packet_flow(&back, translations->key),
        packet_flow(&returns, translations->key));
}

uint64_t translations_before(const struct translations *translations, uint64_t flow)
{
    enum { MOST = 8 }; // one behind the other
    for (int i = 0; i < MOST; i++) {
        uint32_t found = map_find(&translations->by_behind, flow, at,
                                  translations->all.items[at].behind == flow);
        if (found == MAP_NONE)
            break;
        flow = translations->all.items[found].before;
    }
    return flow;
}

void translations_free(struct translations *translations)
{
    array_free(&translations->all);
    map_free(&translations->by_behind);
}

// --- the kernel's answer -------------------------------------------------------------------------

#define EVERY_NS INT64_C(5000000000)

// Whether the namespace tracks any connection; without knowing, as if it did.
static bool tracks_any(const struct translation_reader *reader)
{
    char text[2] = "";
    return pread(reader->count, text, sizeof text, 0) < 1 || text[0] != '0';
}

static bool ask(struct translation_reader *reader)
{
    const struct {
        struct nlmsghdr head;
        struct nfgenmsg of;
    } request = {.head = {.nlmsg_len = sizeof request,
                          .nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                 .of = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0}};
    return send(reader->socket, &request, sizeof request, 0) == sizeof request;
}

enum answer { ANSWER_GOES_ON, ANSWER_IS_NOT_THERE, ANSWER_ENDED };

static enum answer take_piece(const struct translation_reader *reader, int flags,
                              struct translations *out)
{
    _Alignas(struct nlmsghdr) char bytes[32768];
    ssize_t got = recv(reader->socket, bytes, sizeof bytes, flags);
    if (got <= 0)
        return ANSWER_IS_NOT_THERE;
    size_t left = (size_t)got;
    for (const struct nlmsghdr *at = (void *)bytes; NLMSG_OK(at, left); at = NLMSG_NEXT(at, left)) {
        if (at->nlmsg_type == NLMSG_DONE || at->nlmsg_type == NLMSG_ERROR)
            return ANSWER_ENDED;
        translations_take(out, NLMSG_DATA(at), at->nlmsg_len - NLMSG_HDRLEN);
    }
    return ANSWER_GOES_ON;
}

void translation_reader_begin(struct translation_reader *reader)
{
    const struct timeval patience = {.tv_sec = 1};
    // Who asks where there is none makes the kernel load it. The file stays that of this namespace.
    reader->socket = -1;
    reader->count = open("/proc/sys/net/netfilter/nf_conntrack_count", O_RDONLY | O_CLOEXEC);
    if (reader->count >= 0)
        reader->socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    reader->next_ns = monotonic_ns() + EVERY_NS;
    if (reader->socket >= 0)
        setsockopt(reader->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    else if (reader->count >= 0)
        close(reader->count);
}

void translation_reader_look(struct translation_reader *reader, struct translations *out)
{
    if (reader->socket < 0)
        return;
    if (reader->next_ns == 0) {
        if (take_piece(reader, MSG_DONTWAIT, out) == ANSWER_ENDED)
            reader->next_ns = monotonic_ns() + EVERY_NS;
    } else if (monotonic_ns() >= reader->next_ns) {
        reader->next_ns = tracks_any(reader) && ask(reader) ? 0 : monotonic_ns() + EVERY_NS;
    }
}

void translation_reader_end(struct translation_reader *reader, struct translations *out)
{
    if (reader->socket < 0)
        return;
    while (reader->next_ns == 0 && take_piece(reader, 0, out) == ANSWER_GOES_ON)
        ; // the rest of what was asked before
    if (tracks_any(reader) && ask(reader))
        while (take_piece(reader, 0, out) == ANSWER_GOES_ON)
            ;
    translation_reader_close(reader);
}

void translation_reader_close(struct translation_reader *reader)
{
    if (reader->socket >= 0) {
        close(reader->socket);
        close(reader->count);
    }
    reader->socket = -1;
}
