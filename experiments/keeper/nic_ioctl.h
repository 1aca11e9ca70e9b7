// SPDX-License-Identifier: MIT
//
// The one system call of experiments/keeper/nic_tuning.c, apart from it so that a test can put a
// card of its own in its place.
#ifndef EXPERIMENTS_KEEPER_NIC_IOCTL_H
#define EXPERIMENTS_KEEPER_NIC_IOCTL_H

// SIOCETHTOOL on a card; command: one of the structs of linux/ethtool.h. Returns 0 or an errno.
int nic_ioctl(const char *nic, void *command);

#endif
