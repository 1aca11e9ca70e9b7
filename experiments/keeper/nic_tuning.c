// SPDX-License-Identifier: MIT
#include "experiments/keeper/nic_tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ethtool.h>

#include "experiments/keeper/nic_ioctl.h"

static const struct {
    const char *name;
    size_t offset;
} coalescing_keys[] = {
    {"adaptive_rx", offsetof(struct ethtool_coalesce, use_adaptive_rx_coalesce)},
    {"adaptive_tx", offsetof(struct ethtool_coalesce, use_adaptive_tx_coalesce)},
    {"rx_usecs", offsetof(struct ethtool_coalesce, rx_coalesce_usecs)},
    {"rx_frames", offsetof(struct ethtool_coalesce, rx_max_coalesced_frames)},
    {"tx_usecs", offsetof(struct ethtool_coalesce, tx_coalesce_usecs)},
    {"tx_frames", offsetof(struct ethtool_coalesce, tx_max_coalesced_frames)},
};

static uint32_t *value_of(struct ethtool_coalesce *all, const char *name)
{
    for (size_t i = 0; i < sizeof coalescing_keys / sizeof *coalescing_keys; i++)
        if (strcmp(coalescing_keys[i].name, name) == 0)
            return (uint32_t *)(void *)((char *)all + coalescing_keys[i].offset);
    return NULL;
}

// For each "key=value" of `wanted`: stores the value in *all, or, when `now` is given, writes the
// present value there.
static int each_setting(struct ethtool_coalesce *all, const char *wanted, char *now,
                        size_t now_bytes)
{
    char key[32];
    unsigned number;
    int used;
    size_t written = 0;
    for (; *wanted; wanted += used + (wanted[used] == ' ')) {
        used = 0;
        if (sscanf(wanted, "%31[a-z_]=%u%n", key, &number, &used) != 2 || !used)
            return EINVAL;
        uint32_t *value = value_of(all, key);
        if (!value)
            return EINVAL;
        if (!now)
            *value = number;
        else if (written < now_bytes)
            written += (size_t)snprintf(now + written, now_bytes - written, "%s%s=%u",
                                        written ? " " : "", key, *value);
    }
    return now && written >= now_bytes ? ENOSPC : 0;
}

int nic_coalescing_get(const char *nic, const char *wanted, char *now, size_t now_bytes)
{
    struct ethtool_coalesce all = {.cmd = ETHTOOL_GCOALESCE};
    int number = nic_ioctl(nic, &all);
    now[0] = '\0';
    return number ? number : each_setting(&all, wanted, now, now_bytes);
}

int nic_coalescing_set(const char *nic, const char *wanted)
{
    struct ethtool_coalesce all = {.cmd = ETHTOOL_GCOALESCE};
    int number = nic_ioctl(nic, &all);
    if (number == 0)
        number = each_setting(&all, wanted, NULL, 0);
    all.cmd = ETHTOOL_SCOALESCE;
    return number ? number : nic_ioctl(nic, &all);
}

int nic_queues(const char *nic, uint32_t *queues)
{
    struct ethtool_rxnfc rings = {.cmd = ETHTOOL_GRXRINGS};
    int number = nic_ioctl(nic, &rings);
    *queues = number ? 0 : (uint32_t)rings.data;
    return number;
}

int nic_rss_get(const char *nic, struct nic_rss *table)
{
    struct ethtool_rxfh_indir size = {.cmd = ETHTOOL_GRXFHINDIR};
    *table = (struct nic_rss){0};
    int number = nic_ioctl(nic, &size);
    if (number || size.size == 0)
        return number ? number : EOPNOTSUPP;
    struct ethtool_rxfh_indir *whole = calloc(1, sizeof *whole + size.size * sizeof(uint32_t));
    uint32_t *queues = calloc(size.size, sizeof *queues);
    if (!whole || !queues) {
        number = ENOMEM;
    } else {
        whole->cmd = ETHTOOL_GRXFHINDIR;
        whole->size = size.size;
        number = nic_ioctl(nic, whole);
    }
    if (number == 0) {
        memcpy(queues, whole->ring_index, size.size * sizeof *queues);
        *table = (struct nic_rss){size.size, queues};
    } else {
        free(queues);
    }
    free(whole);
    return number;
}

int nic_rss_set(const char *nic, const struct nic_rss *table)
{
    struct ethtool_rxfh_indir *whole = calloc(1, sizeof *whole + table->count * sizeof(uint32_t));
    if (!whole)
        return ENOMEM;
    whole->cmd = ETHTOOL_SRXFHINDIR;
    whole->size = table->count;
    memcpy(whole->ring_index, table->queues, table->count * sizeof(uint32_t));
    int number = nic_ioctl(nic, whole);
    free(whole);
    return number;
}

void nic_rss_spread(struct nic_rss *table, uint32_t queues)
{
    for (uint32_t i = 0; i < table->count; i++)
        table->queues[i] = i % queues;
}
