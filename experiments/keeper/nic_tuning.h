// SPDX-License-Identifier: MIT
//
// Settings of network cards that have no file: interrupt coalescing and the RSS table, through the
// kernel's ethtool ioctls (linux/ethtool.h), as `ethtool -C` and `ethtool -X` do.
#ifndef EXPERIMENTS_KEEPER_NIC_TUNING_H
#define EXPERIMENTS_KEEPER_NIC_TUNING_H

#include <stddef.h>
#include <stdint.h>

// All return 0 or an errno: ENODEV no such card, EOPNOTSUPP its driver has no such setting, EINVAL
// not a setting of these, or a value the card refuses.

// Writes the present values of the keys that `wanted` has, "adaptive_rx=0 rx_usecs=50", as text
// that nic_coalescing_set takes.
int nic_coalescing_get(const char *nic, const char *wanted, char *now, size_t now_bytes);

// Sets the keys named and leaves the others.
int nic_coalescing_set(const char *nic, const char *wanted);

// The table that spreads received flows over queues; entries are queue numbers.
struct nic_rss {
    uint32_t count;
    uint32_t *queues; // the caller frees
};
int nic_rss_get(const char *nic, struct nic_rss *table);
int nic_rss_set(const char *nic, const struct nic_rss *table);

// Fills a table so that flows are spread evenly over the first queues.
void nic_rss_spread(struct nic_rss *table, uint32_t queues);

// The number of queues on which the card receives.
int nic_queues(const char *nic, uint32_t *queues);

#endif
