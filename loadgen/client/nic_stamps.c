// SPDX-License-Identifier: MIT
#include "loadgen/client/nic_stamps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// --- the NIC's clock -----------------------------------------------------------------------------

enum { READINGS = 5 };

static int64_t ns_of(const struct ptp_clock_time *time)
{
    return time->sec * 1000000000 + time->nsec;
}

// Reads both clocks at one instant if the hardware can, else between two readings of the host's.
static int read_both(int fd, struct clock_knot *knot)
{
    struct ptp_sys_offset_precise precise = {0};
    struct ptp_sys_offset_extended extended = {.n_samples = READINGS};
    if (ioctl(fd, PTP_SYS_OFFSET_PRECISE, &precise) == 0) {
        *knot = (struct clock_knot){ns_of(&precise.device), ns_of(&precise.sys_realtime), 0};
        return 0;
    }
    if (ioctl(fd, PTP_SYS_OFFSET_EXTENDED, &extended) < 0)
        return -1;
    for (unsigned i = 0; i < READINGS; i++) {
        int64_t before = ns_of(&extended.ts[i][0]), after = ns_of(&extended.ts[i][2]);
        uint64_t half = (uint64_t)(after > before ? after - before : 0) / 2;
        if (i == 0 || half < knot->error)
            *knot = (struct clock_knot){ns_of(&extended.ts[i][1]), before + (int64_t)half, half};
    }
    return 0;
}

int nic_clock_begin(int index, struct clock_follower *clock, struct error *err)
{
    char path[32], what[64];
    *clock = (struct clock_follower){.fd = -1, .wake = -1};
    snprintf(path, sizeof path, "/dev/ptp%d", index);
    snprintf(what, sizeof what, "the NIC's clock %s", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open %s", what);
    return clock_follower_begin(clock, read_both, fd, what, err);
}

// The bytes of an IPv4 or IPv6 address, without its port.
static const void *address_bytes(const struct sockaddr *address, size_t *bytes)
{
    if (address->sa_family == AF_INET) {
        *bytes = sizeof(struct in_addr);
        return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    }
    *bytes = sizeof(struct in6_addr);
    return &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static bool same_address(const struct sockaddr *one, const struct sockaddr *other)
{
    size_t bytes, other_bytes;
    const void *left = address_bytes(one, &bytes), *right = address_bytes(other, &other_bytes);
    return one->sa_family == other->sa_family && memcmp(left, right, bytes) == 0;
}

// Connecting a datagram socket sends nothing, but makes the kernel choose the route, and with it
// the local address. For an address of this host that is lo, whichever interface has the address.
static int find_interface(const struct sockaddr *server, socklen_t server_bytes,
                          char interface[IF_NAMESIZE], struct error *err)
{
    struct sockaddr_storage local = {0};
    struct ifaddrs *all = NULL;
    socklen_t bytes = sizeof local;
    int probe = socket(server->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool routed = probe >= 0 && connect(probe, server, server_bytes) == 0 &&
                  getsockname(probe, (struct sockaddr *)&local, &bytes) == 0;
    if (probe >= 0)
        close(probe);
    if (!routed || getifaddrs(&all) < 0)
        return error_set_errno(err, ERROR_FAILED,
                               "cannot find the interface that leads to the server");
    interface[0] = '\0';
    if (same_address((const struct sockaddr *)&local, server))
        snprintf(interface, IF_NAMESIZE, "lo");
    for (const struct ifaddrs *i = all; i && !interface[0]; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == local.ss_family &&
            same_address(i->ifa_addr, (const struct sockaddr *)&local))
            snprintf(interface, IF_NAMESIZE, "%s", i->ifa_name);
    freeifaddrs(all);
    return interface[0]
               ? 0
               : error_set(err, ERROR_FAILED, "cannot find the interface that leads to the server");
}

static int interface_refuse(const char *interface, const char *why, struct error *err)
{
    return error_set(err, ERROR_FAILED, "%s gives no hardware stamps: %s; use --stamps sw",
                     interface, why);
}

// Asks the driver for its capabilities (as ethtool -T does).
static int interface_examine(int control, struct nic_stamps *stamps, struct error *err)
{
    const unsigned any = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE;
    struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
    struct ifreq request = {.ifr_data = (char *)&info};
    memcpy(request.ifr_name, stamps->interface, IF_NAMESIZE);
    if (ioctl(control, SIOCETHTOOL, &request) < 0)
        return interface_refuse(stamps->interface, strerror(errno), err);
    if (!(info.so_timestamping & any) || !(info.so_timestamping & SOF_TIMESTAMPING_RAW_HARDWARE) ||
        info.phc_index < 0)
        return interface_refuse(stamps->interface, "its driver stamps in software only", err);
    stamps->tx = (info.so_timestamping & SOF_TIMESTAMPING_TX_HARDWARE) &&
                 (info.tx_types & 1U << HWTSTAMP_TX_ON);
    stamps->rx = (info.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE) &&
                 (info.rx_filters & 1U << HWTSTAMP_FILTER_ALL);
    if (!stamps->tx && !stamps->rx)
        return interface_refuse(stamps->interface,
                                "the NIC stamps every packet in neither direction", err);
    stamps->clock_index = info.phc_index;
    return 0;
}

static int interface_set(int control, const char *interface, struct hwtstamp_config *config)
{
    struct ifreq request = {.ifr_data = (char *)config};
    memcpy(request.ifr_name, interface, IF_NAMESIZE);
    return ioctl(control, SIOCSHWTSTAMP, &request);
}

// What the guard needs to restore the setting.
struct setting {
    int control;
    char interface[IF_NAMESIZE];
    struct hwtstamp_config config;
};

static void put_back(const void *context)
{
    struct setting before = *(const struct setting *)context;
    interface_set(before.control, before.interface, &before.config);
}

// The guard must exist before anything changes.
static int turn_on(int control, struct nic_stamps *stamps, struct error *err)
{
    struct setting before = {.control = control};
    struct ifreq request = {.ifr_data = (char *)&before.config};
    memcpy(before.interface, stamps->interface, IF_NAMESIZE);
    memcpy(request.ifr_name, stamps->interface, IF_NAMESIZE);
    if (ioctl(control, SIOCGHWTSTAMP, &request) < 0)
        return interface_refuse(stamps->interface,
                                "its present setting cannot be read, thus not be put back", err);
    // A direction in which it does not stamp every packet is left as it is.
    struct hwtstamp_config config = before.config;
    if (stamps->tx)
        config.tx_type = HWTSTAMP_TX_ON;
    if (stamps->rx)
        config.rx_filter = HWTSTAMP_FILTER_ALL;
    if (before.config.tx_type == config.tx_type && before.config.rx_filter == config.rx_filter)
        return 0;
    int status = guard_begin(&stamps->guard, put_back, &before, control, err);
    if (status < 0)
        return status;
    if (interface_set(control, stamps->interface, &config) < 0)
        return interface_refuse(stamps->interface,
                                errno == EPERM ? "setting it takes CAP_NET_ADMIN" : strerror(errno),
                                err);
    if ((stamps->tx && config.tx_type != HWTSTAMP_TX_ON) ||
        (stamps->rx && config.rx_filter != HWTSTAMP_FILTER_ALL))
        return interface_refuse(stamps->interface,
                                "told to stamp every packet, the driver stamps others", err);
    return 0;
}

int nic_stamps_begin(const struct sockaddr *server, socklen_t server_bytes,
                     struct nic_stamps *stamps, struct error *err)
{
    *stamps = (struct nic_stamps){0};
    int status = find_interface(server, server_bytes, stamps->interface, err);
    if (status < 0)
        return status;
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
    status = interface_examine(control, stamps, err);
    if (status == 0)
        status = turn_on(control, stamps, err);
    close(control);
    if (status < 0)
        nic_stamps_end(stamps);
    return status;
}

void nic_stamps_end(struct nic_stamps *stamps)
{
    guard_end(&stamps->guard);
}
