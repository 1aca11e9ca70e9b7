// SPDX-License-Identifier: MIT
#include "loadgen/client/client_stamps.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>

enum {
    OPT_ID_TCP = 1 << 16, // Linux 6.2; older headers do not have it
    UNTAKEN_MAX = 64,
};

static const unsigned stamp_flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
                                    SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;

// The NIC's stamps are asked for in addition to the kernel's, so there is a substitute for each
// that the NIC does not deliver.
static const unsigned hardware_flags = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
                                       SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_OPT_TX_SWHW;

static int set_flags(int socket_fd, unsigned flags)
{
    return setsockopt(socket_fd, SOL_SOCKET, SO_TIMESTAMPING_NEW, &flags, sizeof flags);
}

static int stamps_refuse(struct error *err)
{
    return error_set_errno(err, ERROR_FAILED,
                           "this kernel gives no software time stamps (SO_TIMESTAMPING_NEW needs "
                           "Linux 5.1); use --stamps user");
}

int client_stamps_enable(int socket_fd, bool hardware, enum stamped_sends sends, struct error *err)
{
    unsigned flags = stamp_flags | (hardware ? hardware_flags : 0);
    if (sends == STAMPED_ASKED)
        flags &= ~(unsigned)SOF_TIMESTAMPING_TX_SOFTWARE;
    if (set_flags(socket_fd, flags | SOF_TIMESTAMPING_OPT_ID | OPT_ID_TCP) == 0)
        return 0;
    // Without OPT_ID_TCP the count begins at the first unacknowledged byte: the same on a
    // connection that has not sent anything.
    if (errno == EINVAL && set_flags(socket_fd, flags | SOF_TIMESTAMPING_OPT_ID) == 0)
        return 0;
    return stamps_refuse(err);
}

int client_stamps_supported(int socket_fd, struct error *err)
{
    // OPT_ID is refused on a socket that is not connected; every kernel with the rest has it.
    return set_flags(socket_fd, stamp_flags) == 0 ? 0 : stamps_refuse(err);
}

ssize_t client_stamps_send(int socket_fd, const char *bytes, size_t count, int flags)
{
    const unsigned asked = SOF_TIMESTAMPING_TX_SOFTWARE;
    char control[CMSG_SPACE(sizeof asked)] __attribute__((aligned(16))) = {0};
    struct iovec whole = {(void *)(uintptr_t)bytes, count};
    const struct msghdr message = {.msg_iov = &whole,
                                   .msg_iovlen = 1,
                                   .msg_control = control,
                                   .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SO_TIMESTAMPING;
    header->cmsg_len = CMSG_LEN(sizeof asked);
    memcpy(CMSG_DATA(header), &asked, sizeof asked);
    return sendmsg(socket_fd, &message, flags);
}

// ts[0] is the kernel's, ts[2] the NIC's.
static struct kernel_stamp stamp_in(const struct cmsghdr *header)
{
    struct scm_timestamping64 stamps;
    if (header->cmsg_len < CMSG_LEN(sizeof stamps))
        return (struct kernel_stamp){0};
    memcpy(&stamps, CMSG_DATA(header), sizeof stamps);
    bool hardware = stamps.ts[2].tv_sec || stamps.ts[2].tv_nsec;
    const struct __kernel_timespec *at = &stamps.ts[hardware ? 2 : 0];
    uint64_t ns = (uint64_t)at->tv_sec * 1000000000u + (uint64_t)at->tv_nsec;
    return (struct kernel_stamp){ns, !ns ? STAMP_NONE : hardware ? STAMP_HARDWARE : STAMP_SOFTWARE};
}

struct kernel_stamp client_stamps_receive(struct msghdr *message)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING_NEW)
            return stamp_in(h);
    return (struct kernel_stamp){0};
}

bool client_stamps_parse_error(struct msghdr *message, struct tx_stamp *stamp)
{
    bool named = false;
    *stamp = (struct tx_stamp){0};
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING_NEW) {
            stamp->at = stamp_in(h);
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
    return named && stamp->at.ns != 0;
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
    waits->untaken++;
    *wait_at(waits, waits->next++) =
        (struct stamp_wait){last_byte, first_slot, requests, false, false};
}

const struct stamp_wait *stamp_waits_match(struct stamp_waits *waits, uint32_t last_byte, bool last)
{
    const struct stamp_wait *found = NULL;
    for (uint64_t i = waits->first; i < waits->next && !found; i++) {
        struct stamp_wait *wait = wait_at(waits, i);
        if ((uint32_t)wait->last_byte == last_byte && !wait->stamped &&
            (last || !wait->half_stamped)) {
            wait->stamped = last;
            wait->half_stamped = true;
            found = wait;
        }
    }
    while (waits->first < waits->next && wait_at(waits, waits->first)->stamped)
        waits->first++;
    return found;
}

enum stamp_fate stamp_waits_fate(const struct stamp_waits *waits, uint32_t last_byte, bool last)
{
    uint64_t oldest = waits->next > STAMP_WAITS ? waits->next - STAMP_WAITS : 0;
    for (uint64_t i = waits->next; i > oldest; i--) {
        const struct stamp_wait *wait = &waits->items[(i - 1) % STAMP_WAITS];
        if ((uint32_t)wait->last_byte == last_byte)
            return wait->stamped || (wait->half_stamped && !last) ? STAMP_DOUBLE : STAMP_LATE;
    }
    return STAMP_UNKNOWN;
}

void stamp_waits_forget_before(struct stamp_waits *waits, uint64_t slot)
{
    while (waits->first < waits->next && wait_at(waits, waits->first)->first_slot < slot)
        waits->first++;
}

void stamp_waits_note_empty(struct stamp_waits *waits, uint64_t next_slot)
{
    waits->untaken = 0;
    waits->untaken_slot = next_slot;
}

bool stamp_waits_urgent(const struct stamp_waits *waits, uint64_t next_slot, uint64_t slots)
{
    return waits->untaken >= UNTAKEN_MAX ||
           (waits->untaken && next_slot - waits->untaken_slot >= slots / 2);
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
