// SPDX-License-Identifier: MIT
//
// The doctor's checks of the network: the NICs' clocks, and whether experiments can have network
// namespaces of their own.
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "profiler/doctor/doctor_checks.h"

static void check_interface(struct doctor_items *items, int control, const char *interface)
{
    char name[40];
    struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
    struct ifreq request = {0};
    snprintf(name, sizeof name, "%s hardware stamps", interface);
    struct doctor_item *item =
        doctor_add(items, DOCTOR_NETWORK, name, "M(n) and replies by the NIC's own clock");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    request.ifr_data = (char *)&info;
    if (ioctl(control, SIOCETHTOOL, &request) < 0) {
        doctor_missing(item, DOCTOR_NO, "a NIC with a PTP clock", "its driver offers none (%s)",
                       strerror(errno));
        return;
    }
    bool receive = (info.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE) &&
                   (info.rx_filters & 1U << HWTSTAMP_FILTER_ALL);
    bool some = (info.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE) != 0;
    bool transmit = (info.so_timestamping & SOF_TIMESTAMPING_TX_HARDWARE) != 0;
    if (info.phc_index >= 0)
        doctor_found(item, DOCTOR_YES, "receive %s, transmit %s, clock /dev/ptp%d",
                     receive ? "all"
                     : some  ? "PTP packets only"
                             : "none",
                     transmit ? "yes" : "no", info.phc_index);
    if (!some && !transmit)
        doctor_missing(item, DOCTOR_NO, "a NIC with a PTP clock; software stamps serve meanwhile",
                       "the driver stamps in software only");
    else if (!receive || !transmit)
        doctor_missing(item, DOCTOR_LIMITED, "a NIC that stamps every packet (filter \"all\")",
                       "the NIC does not stamp all packets both ways");
}

// Virtual ends of this or other namespaces (veth) would fill the screen; loopback has no NIC.
static bool worth_a_line(const char *interface)
{
    char path[128], link[256];
    if (strcmp(interface, "lo") == 0)
        return false;
    snprintf(path, sizeof path, "/sys/class/net/%s", interface);
    ssize_t bytes = readlink(path, link, sizeof link - 1);
    if (bytes < 0)
        return true;
    link[bytes] = '\0';
    return !strstr(link, "/virtual/");
}

static void check_interfaces(struct doctor_items *items)
{
    size_t before = items->count;
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct if_nameindex *interfaces = if_nameindex();
    for (const struct if_nameindex *i = interfaces; i && i->if_index; i++)
        if (control >= 0 && worth_a_line(i->if_name))
            check_interface(items, control, i->if_name);
    if (interfaces)
        if_freenameindex(interfaces);
    if (control >= 0)
        close(control);
    if (items->count == before)
        doctor_missing(doctor_add(items, DOCTOR_NETWORK, "NIC", "other hosts"), DOCTOR_LIMITED,
                       "run where a NIC can be seen, for experiments with other hosts",
                       "no NIC in this network namespace");
}

// Tries in a child, so that the namespace and the pair in it go away with it.
static void check_namespaces(struct doctor_items *items)
{
    enum { NO_NAMESPACE = 101, NO_PROGRAM = 102 };
    struct doctor_item *item = doctor_add(items, DOCTOR_NETWORK, "namespaces and veth",
                                          "experiments on one machine, each host its own network");
    pid_t pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        if (unshare(CLONE_NEWNET) < 0)
            _exit(NO_NAMESPACE);
        execlp("ip", "ip", "link", "add", "taillight0", "type", "veth", "peer", "name",
               "taillight1", (char *)NULL);
        _exit(NO_PROGRAM);
    }
    struct process child = {.pid = pid, .input = -1, .output = -1};
    struct error err;
    int status = 0;
    if (pid < 0 || process_wait(&child, 5000, &status, &err) != 1) {
        doctor_missing(item, DOCTOR_NO, "try `ip link add type veth` by hand",
                       "making a veth pair did not end");
        if (pid > 0)
            process_stop(&child, 0);
        return;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 0)
        doctor_found(item, DOCTOR_YES, "made a namespace with a veth pair in it");
    else if (code == NO_NAMESPACE)
        doctor_missing(item, DOCTOR_NO, "run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
                       "this process may not make network namespaces");
    else if (code == NO_PROGRAM)
        doctor_missing(item, DOCTOR_NO, "apt-get install iproute2", "no `ip` in PATH");
    else
        doctor_missing(item, DOCTOR_NO, "modprobe veth, or a kernel with CONFIG_VETH",
                       "`ip link add type veth` failed");
}

void doctor_check_network(struct doctor_items *items)
{
    check_namespaces(items);
    check_interfaces(items);
}
