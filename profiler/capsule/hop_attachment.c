// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_attachment.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// --- tcx -----------------------------------------------------------------------------------------

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

// --- clsact --------------------------------------------------------------------------------------

enum { FILTER = 1 }; // its handle, of a priority of its own

// What is to be taken away: read by the guard, which may only use system calls.
struct clsact_filter {
    int socket;
    unsigned interface;
    uint32_t parent, priority;
    bool made;
};

struct clsact_request {
    struct nlmsghdr head;
    struct tcmsg what;
    struct rtattr kind;
    char name[8];
};

static bool ask(int socket, uint16_t type, uint16_t flags, const struct tcmsg *what,
                const char *kind)
{
    struct clsact_request request = {
        .head = {.nlmsg_len = kind[0] ? sizeof request : NLMSG_LENGTH(sizeof *what),
                 .nlmsg_type = type,
                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
        .what = *what,
        .kind = {.rta_len = RTA_LENGTH(sizeof request.name), .rta_type = TCA_KIND},
    };
    for (size_t i = 0; kind[i] && i < sizeof request.name - 1; i++)
        request.name[i] = kind[i];
    return send(socket, &request, request.head.nlmsg_len, 0) == (ssize_t)request.head.nlmsg_len;
}

// Whether the answer to a dump has any entry; where that cannot be known, it has.
static bool has_any(int socket)
{
    _Alignas(struct nlmsghdr) char answer[16384];
    bool any = false;
    for (;;) {
        ssize_t bytes = recv(socket, answer, sizeof answer, 0);
        if (bytes < (ssize_t)sizeof(struct nlmsghdr))
            return true;
        size_t left = (size_t)bytes;
        for (struct nlmsghdr *at = (struct nlmsghdr *)answer; NLMSG_OK(at, left);
             at = NLMSG_NEXT(at, left)) {
            if (at->nlmsg_type == NLMSG_DONE)
                return any;
            if (at->nlmsg_type == NLMSG_ERROR)
                return true;
            any |= at->nlmsg_type == RTM_NEWTFILTER;
        }
    }
}

// Whether anything of others is there, by which clsact is needed.
static bool has_filters(const struct clsact_filter *filter)
{
    static const uint32_t ways[] = {TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS),
                                    TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tcmsg what = {.tcm_ifindex = (int)filter->interface, .tcm_parent = ways[i]};
        if (!ask(filter->socket, RTM_GETTFILTER, NLM_F_DUMP, &what, "") || has_any(filter->socket))
            return true;
    }
    return false;
}

static void take_away(const void *context)
{
    const struct clsact_filter *filter = context;
    struct tcmsg what = {.tcm_ifindex = (int)filter->interface,
                         .tcm_handle = FILTER,
                         .tcm_parent = filter->parent,
                         .tcm_info = filter->priority << 16 | htons(ETH_P_ALL)};
    struct tcmsg all = {.tcm_ifindex = (int)filter->interface,
                        .tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0),
                        .tcm_parent = TC_H_CLSACT};
    ask(filter->socket, RTM_DELTFILTER, 0, &what, "bpf");
    if (filter->made && !has_filters(filter))
        ask(filter->socket, RTM_DELQDISC, 0, &all, "clsact");
}

// A socket stays in the namespace it was made in.
static int route_socket(void)
{
    const struct timeval patience = {.tv_sec = 1};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

// -EEXIST: the priority that was drawn is taken.
static int clsact_try(struct hop_attachment *attachment, int program, unsigned interface,
                      enum hop_direction direction)
{
    struct error err;
    uint16_t priority;
    bool in = direction == HOP_INGRESS;
    if (getrandom(&priority, sizeof priority, 0) != sizeof priority)
        return -errno;
    struct clsact_filter filter = {
        .socket = route_socket(),
        .interface = interface,
        .parent = TC_H_MAKE(TC_H_CLSACT, in ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS),
        .priority = priority | 1u,
    };
    LIBBPF_OPTS(bpf_tc_hook, all, .ifindex = (int)interface,
                .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)interface,
                .attach_point = in ? BPF_TC_INGRESS : BPF_TC_EGRESS);
    LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program, .handle = FILTER,
                .priority = filter.priority);
    if (filter.socket < 0)
        return -errno;
    int result = bpf_tc_hook_create(&all);
    attachment->socket = filter.socket;
    attachment->made |= result == 0;
    filter.made = attachment->made;
    if (result < 0 && result != -EEXIST)
        return result == -ENOENT ? -EOPNOTSUPP : result;
    if (guard_begin(&attachment->guard, take_away, &filter, filter.socket, &err) < 0) {
        take_away(&filter);
        return -EAGAIN;
    }
    result = bpf_tc_attach(&hook, &opts);
    if (result == -EEXIST) { // another's filter, which stays
        kill(attachment->guard.pid, SIGKILL);
        guard_end(&attachment->guard);
        close(attachment->socket);
        attachment->socket = -1;
    }
    return result;
}

static int clsact_attach(struct hop_attachment *attachment, int program, unsigned interface,
                         enum hop_direction direction)
{
    enum { DRAWS = 8 };
    int result = -EEXIST;
    for (int draw = 0; draw < DRAWS && result == -EEXIST; draw++)
        result = clsact_try(attachment, program, interface, direction);
    return result;
}

// --- either --------------------------------------------------------------------------------------

int hop_attachment_make(struct hop_attachment *attachment, int program, unsigned interface,
                        enum hop_direction direction, bool made)
{
    *attachment = HOP_ATTACHMENT_NONE;
    attachment->interface = interface;
    attachment->made = made;
    attachment->link = tcx_attach(program, interface, direction);
    if (attachment->link >= 0)
        return 0;
    if (errno != EINVAL && errno != EOPNOTSUPP)
        return -errno;
    int result = clsact_attach(attachment, program, interface, direction);
    if (result < 0)
        hop_attachment_end(attachment);
    return result;
}

bool hop_attachment_is_there(const struct hop_attachment *attachment)
{
    return attachment->link >= 0 || attachment->socket >= 0;
}

bool hop_attachment_is_gone(const struct hop_attachment *attachment)
{
    struct ifreq request = {.ifr_ifindex = (int)attachment->interface};
    if (attachment->link >= 0)
        return link_is_dead(attachment->link);
    return attachment->socket >= 0 && ioctl(attachment->socket, SIOCGIFNAME, &request) < 0 &&
           errno == ENODEV;
}

void hop_attachment_end(struct hop_attachment *attachment)
{
    if (attachment->link >= 0)
        close(attachment->link);
    guard_end(&attachment->guard);
    if (attachment->socket >= 0)
        close(attachment->socket);
    attachment->link = attachment->socket = -1;
}
