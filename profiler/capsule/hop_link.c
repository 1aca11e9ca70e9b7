// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_link.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

// The one of that type, of `least` bytes or more, among attributes; NULL: there is none.
static const struct rtattr *pick_attribute(const void *attributes, size_t bytes, int type,
                                           size_t least)
{
    for (const struct rtattr *at = attributes; RTA_OK(at, bytes); at = RTA_NEXT(at, bytes))
        if (at->rta_type == type && RTA_PAYLOAD(at) >= least)
            return at;
    return NULL;
}

// The same of those behind a message's body.
static const struct rtattr *find_attribute(const struct nlmsghdr *message, size_t body, int type,
                                           size_t least)
{
    if (message->nlmsg_len < NLMSG_SPACE(body))
        return NULL;
    return pick_attribute((const char *)message + NLMSG_SPACE(body),
                          message->nlmsg_len - NLMSG_SPACE(body), type, least);
}

// The same of those within an attribute, which may be NULL.
static const struct rtattr *find_within(const struct rtattr *outer, int type, size_t least)
{
    return outer ? pick_attribute(RTA_DATA(outer), RTA_PAYLOAD(outer), type, least) : NULL;
}

static void take_qdisc(struct hop_link *link, const struct nlmsghdr *message)
{
    const struct tcmsg *is = NLMSG_DATA(message);
    const struct rtattr *kind = find_attribute(message, sizeof *is, TCA_KIND, 1);
    if (!kind || is->tcm_ifindex != link->interface || is->tcm_parent != TC_H_ROOT)
        return;
    bool is_none = strncmp(RTA_DATA(kind), "noqueue", RTA_PAYLOAD(kind)) == 0;
    if (!is_none || link->qdisc[0] == '\0')
        snprintf(link->qdisc, sizeof link->qdisc, "%.*s", (int)RTA_PAYLOAD(kind),
                 (const char *)RTA_DATA(kind));
}

static bool says(const struct rtattr *attribute, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    return attribute && RTA_PAYLOAD(attribute) >= bytes &&
           memcmp(RTA_DATA(attribute), text, bytes) == 0;
}

// Whether the interface's driver gives what is sent through it to the IP layer again
// (ip_local_out() of ipvlan's layer 3 modes and of VRFs; that of xfrm in its transport mode).
static bool sends_anew(const struct rtattr *info)
{
    const struct rtattr *kind = find_within(info, IFLA_INFO_KIND, 1);
    const struct rtattr *mode =
        find_within(find_within(info, IFLA_INFO_DATA, 0), IFLA_IPVLAN_MODE, sizeof(uint16_t));
    uint16_t ipvlan = IPVLAN_MODE_L3;
    if (mode)
        memcpy(&ipvlan, RTA_DATA(mode), sizeof ipvlan);
    return says(kind, "vrf") || says(kind, "xfrm") ||
           (says(kind, "ipvlan") && ipvlan != IPVLAN_MODE_L2);
}

static void take_link(struct hop_link *link, const struct nlmsghdr *message)
{
    const struct ifinfomsg *is = NLMSG_DATA(message);
    const struct rtattr *peer = find_attribute(message, sizeof *is, IFLA_LINK, sizeof link->peer),
                        *mtu = find_attribute(message, sizeof *is, IFLA_MTU, sizeof(uint32_t));
    uint32_t mtu_bytes = UINT32_MAX;
    if (is->ifi_index != link->interface)
        return;
    // What does not say the kind changes nothing.
    link->sends_anew |= sends_anew(find_attribute(message, sizeof *is, IFLA_LINKINFO, 0));
    if (peer)
        memcpy(&link->peer, RTA_DATA(peer), sizeof link->peer);
    if (mtu)
        memcpy(&mtu_bytes, RTA_DATA(mtu), sizeof mtu_bytes);
    if (mtu_bytes < link->least_mtu)
        link->least_mtu = mtu_bytes;
}

// A bridge says the same of a port that it has no more.
static void take_leaving(struct hop_link *link, const struct nlmsghdr *message)
{
    const struct ifinfomsg *is = NLMSG_DATA(message);
    link->left |= is->ifi_index == link->interface && is->ifi_family == AF_UNSPEC;
}

// Takes in what the socket has. 1: the answer is at its end; 0: there is no more by now; -1: there
// is no answer, or some of it is lost.
static int take_in(struct hop_link *link, int flags)
{
    _Alignas(struct nlmsghdr) char bytes[32768];
    for (;;) {
        ssize_t got = recv(link->socket, bytes, sizeof bytes, flags);
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        size_t left = (size_t)got;
        for (const struct nlmsghdr *at = (void *)bytes; NLMSG_OK(at, left);
             at = NLMSG_NEXT(at, left)) {
            const struct nlmsgerr *ended = NLMSG_DATA(at);
            if (at->nlmsg_type == NLMSG_DONE)
                return 1;
            if (at->nlmsg_type == NLMSG_ERROR)
                return at->nlmsg_len >= NLMSG_LENGTH(sizeof *ended) && !ended->error ? 1 : -1;
            if (at->nlmsg_type == RTM_NEWQDISC)
                take_qdisc(link, at);
            else if (at->nlmsg_type == RTM_NEWLINK)
                take_link(link, at);
            else if (at->nlmsg_type == RTM_DELLINK)
                take_leaving(link, at);
        }
    }
}

static bool ask(struct hop_link *link, uint16_t type)
{
    struct {
        struct nlmsghdr head;
        union {
            struct tcmsg qdisc;
            struct ifinfomsg link;
        } of;
    } request = {.head = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST}};
    if (type == RTM_GETLINK) {
        request.of.link.ifi_index = link->interface;
        request.head.nlmsg_flags |= NLM_F_ACK;
        request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.of.link);
    } else {
        request.head.nlmsg_flags |= NLM_F_DUMP;
        request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.of.qdisc);
    }
    return send(link->socket, &request, request.head.nlmsg_len, 0) == request.head.nlmsg_len &&
           take_in(link, 0) == 1;
}

bool hop_link_queues(const struct hop_link *link)
{
    return link->qdisc[0] && strcmp(link->qdisc, "noqueue") != 0;
}

void hop_link_begin(struct hop_link *link, unsigned interface)
{
    const struct sockaddr_nl changes = {.nl_family = AF_NETLINK,
                                        .nl_groups = RTMGRP_TC | RTMGRP_LINK};
    const struct timeval patience = {.tv_sec = 1};
    *link = (struct hop_link){.socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE),
                              .interface = (int)interface,
                              .least_mtu = UINT32_MAX};
    if (link->socket < 0)
        return;
    setsockopt(link->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(link->socket, (const struct sockaddr *)&changes, sizeof changes) == 0 &&
        ask(link, RTM_GETLINK) && ask(link, RTM_GETQDISC))
        return;
    link->qdisc[0] = '\0';
    close(link->socket);
    link->socket = -1;
}

void hop_link_look(struct hop_link *link)
{
    if (link->socket < 0 || take_in(link, MSG_DONTWAIT) >= 0)
        return;
    link->missed = true; // too many changes for the socket's buffer
    ask(link, RTM_GETLINK);
}

void hop_link_end(struct hop_link *link)
{
    if (link->socket < 0)
        return;
    hop_link_look(link);
    if (link->missed)
        link->qdisc[0] = '\0';
    close(link->socket);
    link->socket = -1;
}
