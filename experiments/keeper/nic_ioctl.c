// SPDX-License-Identifier: MIT
#include "experiments/keeper/nic_ioctl.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sockios.h>

int nic_ioctl(const char *nic, void *command)
{
    struct ifreq request = {.ifr_data = command};
    if (strlen(nic) >= sizeof request.ifr_name)
        return ENODEV;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", nic);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int number = ioctl(fd, SIOCETHTOOL, &request) < 0 ? errno : 0;
    close(fd);
    return number;
}
