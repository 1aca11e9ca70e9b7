// SPDX-License-Identifier: MIT
#include "loadgen/client_stamps.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>

// Linux 6.2; older headers do not have it.
enum { OPT_ID_TCP = 1 << 16 };

static const unsigned stamp_flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
                                    SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;

static int set_flags(int socket_fd, unsigned flags)
{
    return setsockopt(socket_fd, SOL_SOCKET, SO_TIMESTAMPING_NEW, &flags, sizeof flags);
}

static int refuse(struct error *err)
{
    return error_set_errno(err, ERROR_FAILED,
                           "this kernel gives no software time stamps (SO_TIMESTAMPING_NEW needs "
                           "Linux 5.1); use --stamps user");
}

int client_stamps_enable(int socket_fd, struct error *err)
{
    if (set_flags(socket_fd, stamp_flags | SOF_TIMESTAMPING_OPT_ID | OPT_ID_TCP) == 0)
        return 0;
    // Without OPT_ID_TCP the count begins at the first unacknowledged byte: the same on a
    // connection that has not sent anything.
    if (errno == EINVAL && set_flags(socket_fd, stamp_flags | SOF_TIMESTAMPING_OPT_ID) == 0)
        return 0;
    return refuse(err);
}

int client_stamps_supported(int socket_fd, struct error *err)
{
    // OPT_ID is refused on a socket that is not connected; every kernel with the rest has it.
    return set_flags(socket_fd, stamp_flags) == 0 ? 0 : refuse(err);
}

static uint64_t software_ns(const struct cmsghdr *header)
{
    struct scm_timestamping64 stamps;
    if (header->cmsg_len < CMSG_LEN(sizeof stamps))
        return 0;
    memcpy(&stamps, CMSG_DATA(header), sizeof stamps);
    return (uint64_t)stamps.ts[0].tv_sec * 1000000000u + (uint64_t)stamps.ts[0].tv_nsec;
}

uint64_t client_stamps_receive_ns(struct msghdr *message)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING_NEW)
            return software_ns(h);
    return 0;
}

bool client_stamps_parse_error(struct msghdr *message, struct tx_stamp *stamp)
{
    bool named = false;
    *stamp = (struct tx_stamp){0};
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING_NEW) {
            stamp->ns = software_ns(h);
        } else if ((h->cmsg_level == SOL_IP && h->cmsg_type == IP_RECVERR) ||
                   (h->cmsg_level == SOL_IPV6 && h->cmsg_type == IPV6_RECVERR)) {
            struct sock_extended_err what;
            if (h->cmsg_len < CMSG_LEN(sizeof what))
                continue;
            memcpy(&what, CMSG_DATA(h), sizeof what);
            named = what.ee_errno == ENOMSG && what.ee_origin == SO_EE_ORIGIN_TIMESTAMPING &&
                    what.ee_info == SCM_TSTAMP_SND;
            stamp->last_byte = what.ee_data;
        }
    }
    return named && stamp->ns != 0;
}

static struct stamp_wait *wait_at(struct stamp_waits *waits, uint64_t sequence)
{
    return &waits->items[sequence % STAMP_WAITS];
}

void stamp_waits_push(struct stamp_waits *waits, uint64_t last_byte, uint64_t first_slot,
                      uint32_t requests, uint64_t now_tsc)
{
    if (stamp_waits_count(waits) == STAMP_WAITS)
        waits->first++;
    if (waits->first == waits->next)
        waits->oldest_tsc = now_tsc;
    *wait_at(waits, waits->next++) = (struct stamp_wait){last_byte, first_slot, requests, false};
}

const struct stamp_wait *stamp_waits_match(struct stamp_waits *waits, uint32_t last_byte)
{
    const struct stamp_wait *found = NULL;
    for (uint64_t i = waits->first; i < waits->next && !found; i++) {
        struct stamp_wait *wait = wait_at(waits, i);
        if ((uint32_t)wait->last_byte == last_byte && !wait->stamped) {
            wait->stamped = true;
            found = wait;
        }
    }
    if (!found)
        waits->unknown++;
    while (waits->first < waits->next && wait_at(waits, waits->first)->stamped)
        waits->first++;
    return found;
}

void stamp_waits_forget_before(struct stamp_waits *waits, uint64_t slot)
{
    while (waits->first < waits->next && wait_at(waits, waits->first)->first_slot < slot)
        waits->first++;
}

void stamp_reader_init(struct stamp_reader *reader)
{
    memset(reader, 0, sizeof *reader);
    for (unsigned i = 0; i < STAMP_BATCH; i++)
        reader->messages[i].msg_hdr.msg_control = reader->control[i];
}

int stamp_reader_take(struct stamp_reader *reader, int socket_fd, unsigned *stamps)
{
    *stamps = 0;
    for (unsigned i = 0; i < STAMP_BATCH; i++)
        reader->messages[i].msg_hdr.msg_controllen = STAMP_CONTROL_BYTES;
    int taken =
        recvmmsg(socket_fd, reader->messages, STAMP_BATCH, MSG_ERRQUEUE | MSG_DONTWAIT, NULL);
    for (int i = 0; i < taken; i++)
        *stamps +=
            client_stamps_parse_error(&reader->messages[i].msg_hdr, &reader->stamps[*stamps]);
    return taken < 0 ? 0 : taken;
}
