// SPDX-License-Identifier: MIT
#include "base/nic_stamps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
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
int nic_clock_read(int fd, struct clock_knot *knot)
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

int nic_clock_open(int index, struct error *err)
{
    char path[32];
    snprintf(path, sizeof path, "/dev/ptp%d", index);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? error_set_errno(err, ERROR_FAILED, "cannot open the NIC's clock %s", path) : fd;
}

// --- its stamps ----------------------------------------------------------------------------------

static int interface_refuse(const char *interface, const char *why, struct error *err)
{
    return error_set(err, ERROR_FAILED, "%s gives no hardware stamps: %s", interface, why);
}

// Asks the driver for its capabilities (as ethtool -T does).
static int interface_examine(int control, unsigned directions, struct nic_stamps *stamps,
                             struct error *err)
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
    stamps->tx = (directions & NIC_SENDS) &&
                 (info.so_timestamping & SOF_TIMESTAMPING_TX_HARDWARE) &&
                 (info.tx_types & 1U << HWTSTAMP_TX_ON);
    stamps->rx = (directions & NIC_RECEIVES) &&
                 (info.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE) &&
                 (info.rx_filters & 1U << HWTSTAMP_FILTER_ALL);
    if (!stamps->tx && !stamps->rx)
        return interface_refuse(stamps->interface,
                                directions == NIC_RECEIVES
                                    ? "the NIC does not stamp every packet that it receives"
                                    : "the NIC stamps every packet in neither direction",
                                err);
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

int nic_stamps_begin(const char *interface, unsigned directions, struct nic_stamps *stamps,
                     struct error *err)
{
    *stamps = (struct nic_stamps){0};
    if (strlen(interface) >= sizeof stamps->interface) // cut short it might be another's
        return error_set(err, ERROR_FAILED, "%s is no interface: a name has at most %d characters",
                         interface, IF_NAMESIZE - 1);
    snprintf(stamps->interface, sizeof stamps->interface, "%s", interface);
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
    int status = interface_examine(control, directions, stamps, err);
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
