// SPDX-License-Identifier: GPL-2.0
//
// Two Ethernet devices joined back to back (phc0, phc1), each with a clock of its own (PHC) that
// runs at a wrong rate on purpose, and stamps of that clock on every packet both ways: what a NIC
// with hardware stamps looks like to a program. For the guest of tests/guest only; it is GPL-2.0
// because the interfaces it uses are for such modules.
//
// Written against Linux 6.1: Documentation/networking/timestamping.rst (section 3, drivers),
// include/linux/ptp_clock_kernel.h.
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/ptp_clock_kernel.h>

static int drift_ppb = 50000;
module_param(drift_ppb, int, 0444);
MODULE_PARM_DESC(
    drift_ppb,
    "how much the clock of phc0 is fast, in parts per 10^9; that of phc1 is slow by as much");

static bool mute;
module_param(mute, bool, 0644);
MODULE_PARM_DESC(mute, "accept every setting, and stamp nothing");

static bool ptp_only;
module_param(ptp_only, bool, 0644);
MODULE_PARM_DESC(ptp_only, "stamp PTP packets only, as many NICs do: none here");

static bool rx_only;
module_param(rx_only, bool, 0644);
MODULE_PARM_DESC(rx_only, "stamp what is received, and refuse to stamp what is sent");

static unsigned int coalesce_us;
module_param(coalesce_us, uint, 0644);
MODULE_PARM_DESC(coalesce_us,
                 "how long a packet that was received (and stamped) may wait for others before the "
                 "processor is told; 0: not at all");

static unsigned int coalesce_packets;
module_param(coalesce_packets, uint, 0644);
MODULE_PARM_DESC(coalesce_packets, "with coalesce_us: so many do not wait any longer; 0: no limit");

static int coalesce_end = -1;
module_param(coalesce_end, int, 0644);
MODULE_PARM_DESC(coalesce_end,
                 "with coalesce_us: only what phc0 (0) or phc1 (1) receives; -1: both");

// When the first packet of each such wait of 100 us or more came (CLOCK_MONOTONIC_RAW) and
// how many ns it took, of the first few: sysfs shows a page.
static unsigned long long delays[2 * 128];
static unsigned int known;
module_param_array(delays, ullong, &known, 0444);

struct end {
    struct net_device *device;
    struct net_device *peer;
    struct hwtstamp_config config;
    struct ptp_clock_info info;
    struct ptp_clock *clock;
    struct sk_buff_head waiting; // received, and not told yet
    u64 waiting_since;
    struct hrtimer interrupt;
    spinlock_t lock; // of the four below
    u64 raw_ns;      // the raw clock when the PHC showed phc_ns
    u64 phc_ns;
    s64 drift_ppb; // of the oscillator
    s64 fine_ppb;  // what a discipline adds to it
};

static struct net_device *devices[2];
static struct platform_device *parent;

// --- the clock ---------------------------------------------------------------------------------

static u64 phc_at(const struct end *end, u64 raw_ns)
{
    u64 passed = raw_ns - end->raw_ns;
    return end->phc_ns + passed +
           div_s64((s64)passed * (end->drift_ppb + end->fine_ppb), 1000000000);
}

static u64 phc_now(struct end *end)
{
    unsigned long flags;
    u64 now;
    spin_lock_irqsave(&end->lock, flags);
    now = phc_at(end, ktime_get_raw_ns());
    spin_unlock_irqrestore(&end->lock, flags);
    return now;
}

// Goes on from what it shows, plus `step`, so that products stay small and rates may change.
static void phc_rebase(struct end *end, s64 step, bool to, u64 value)
{
    u64 raw = ktime_get_raw_ns();
    end->phc_ns = to ? value : phc_at(end, raw) + step;
    end->raw_ns = raw;
}

static int phc_gettime(struct ptp_clock_info *info, struct timespec64 *ts,
                       struct ptp_system_timestamp *system)
{
    struct end *end = container_of(info, struct end, info);
    u64 now;
    ptp_read_system_prets(system);
    now = phc_now(end);
    ptp_read_system_postts(system);
    *ts = ns_to_timespec64(now);
    return 0;
}

static int phc_settime(struct ptp_clock_info *info, const struct timespec64 *ts)
{
    struct end *end = container_of(info, struct end, info);
    unsigned long flags;
    spin_lock_irqsave(&end->lock, flags);
    phc_rebase(end, 0, true, timespec64_to_ns(ts));
    spin_unlock_irqrestore(&end->lock, flags);
    return 0;
}

static int phc_adjtime(struct ptp_clock_info *info, s64 delta)
{
    struct end *end = container_of(info, struct end, info);
    unsigned long flags;
    spin_lock_irqsave(&end->lock, flags);
    phc_rebase(end, delta, false, 0);
    spin_unlock_irqrestore(&end->lock, flags);
    return 0;
}

static int phc_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
    struct end *end = container_of(info, struct end, info);
    unsigned long flags;
    spin_lock_irqsave(&end->lock, flags);
    phc_rebase(end, 0, false, 0);
    end->fine_ppb = scaled_ppm_to_ppb(scaled_ppm);
    spin_unlock_irqrestore(&end->lock, flags);
    return 0;
}

// Every second or so, long before passed * ppb overflows.
static long phc_work(struct ptp_clock_info *info)
{
    phc_adjtime(info, 0);
    return HZ;
}

static int phc_enable(struct ptp_clock_info *info, struct ptp_clock_request *request, int on)
{
    return -EOPNOTSUPP;
}

static const struct ptp_clock_info phc_info = {
    .owner = THIS_MODULE,
    .name = "phcpair",
    .max_adj = 100000000,
    .gettimex64 = phc_gettime,
    .settime64 = phc_settime,
    .adjtime = phc_adjtime,
    .adjfine = phc_adjfine,
    .do_aux_work = phc_work,
    .enable = phc_enable,
};

// --- the device --------------------------------------------------------------------------------

static void pair_deliver(struct end *end)
{
    struct sk_buff *packet;
    unsigned long flags;
    u64 took;
    spin_lock_irqsave(&end->waiting.lock, flags);
    took = skb_queue_empty(&end->waiting) ? 0 : ktime_get_raw_ns() - end->waiting_since;
    if (took >= 100 * NSEC_PER_USEC && known < ARRAY_SIZE(delays)) {
        delays[known] = end->waiting_since;
        delays[known + 1] = took;
        known += 2;
    }
    spin_unlock_irqrestore(&end->waiting.lock, flags);
    while ((packet = skb_dequeue(&end->waiting)))
        if (dev_forward_skb(end->device, packet) != NET_RX_SUCCESS)
            end->device->stats.rx_dropped++;
}

static enum hrtimer_restart pair_interrupts(struct hrtimer *timer)
{
    pair_deliver(container_of(timer, struct end, interrupt));
    return HRTIMER_NORESTART;
}

// As a NIC that moderates its interrupts: the first packet that waits starts the clock.
static int pair_receive(struct end *end, struct sk_buff *packet)
{
    unsigned int us = READ_ONCE(coalesce_us), most = READ_ONCE(coalesce_packets);
    int only = READ_ONCE(coalesce_end);
    unsigned long flags;
    bool first;
    if (only >= 0 && end->device != devices[only])
        us = 0;
    if (!us && skb_queue_empty(&end->waiting))
        return dev_forward_skb(end->device, packet);
    // At once, for what finds others waiting relies on their clock.
    spin_lock_irqsave(&end->waiting.lock, flags);
    first = skb_queue_empty(&end->waiting);
    if (first)
        end->waiting_since = ktime_get_raw_ns();
    __skb_queue_tail(&end->waiting, packet);
    spin_unlock_irqrestore(&end->waiting.lock, flags);
    if (!us || (most && skb_queue_len(&end->waiting) >= most)) {
        hrtimer_try_to_cancel(&end->interrupt);
        pair_deliver(end);
    } else if (first) {
        hrtimer_start(&end->interrupt, ns_to_ktime((u64)us * NSEC_PER_USEC), HRTIMER_MODE_REL_SOFT);
    }
    return NET_RX_SUCCESS;
}

static netdev_tx_t pair_xmit(struct sk_buff *skb, struct net_device *device)
{
    struct end *end = netdev_priv(device), *far = netdev_priv(end->peer);
    struct sk_buff *copy;
    bool stamp =
        (skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP) && end->config.tx_type == HWTSTAMP_TX_ON;
    unsigned int bytes = skb->len;
    if (stamp)
        skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
    skb_tx_timestamp(skb);
    if (stamp && !mute) {
        struct skb_shared_hwtstamps sent = {.hwtstamp = ns_to_ktime(phc_now(end))};
        skb_tstamp_tx(skb, &sent);
    }
    // A copy, for the sender's own stamps and flags lie in the part that clones share.
    copy = netif_running(end->peer) ? skb_copy(skb, GFP_ATOMIC) : NULL;
    if (copy) {
        skb_shinfo(copy)->tx_flags = 0;
        if (far->config.rx_filter == HWTSTAMP_FILTER_ALL && !mute)
            skb_hwtstamps(copy)->hwtstamp = ns_to_ktime(phc_now(far));
    }
    if (copy && pair_receive(far, copy) == NET_RX_SUCCESS)
        dev_sw_netstats_tx_add(device, 1, bytes);
    else
        device->stats.tx_dropped++;
    consume_skb(skb);
    return NETDEV_TX_OK;
}

static int pair_set_stamps(struct end *end, struct ifreq *request)
{
    struct hwtstamp_config config;
    if (copy_from_user(&config, request->ifr_data, sizeof(config)))
        return -EFAULT;
    if (config.flags || (config.tx_type != HWTSTAMP_TX_OFF && config.tx_type != HWTSTAMP_TX_ON))
        return -ERANGE;
    if (config.tx_type != HWTSTAMP_TX_OFF && rx_only)
        return -ERANGE;
    if (config.rx_filter != HWTSTAMP_FILTER_NONE)
        config.rx_filter = ptp_only ? HWTSTAMP_FILTER_PTP_V2_EVENT : HWTSTAMP_FILTER_ALL;
    end->config = config;
    return copy_to_user(request->ifr_data, &config, sizeof(config)) ? -EFAULT : 0;
}

static int pair_ioctl(struct net_device *device, struct ifreq *request, int command)
{
    struct end *end = netdev_priv(device);
    switch (command) {
    case SIOCSHWTSTAMP:
        return pair_set_stamps(end, request);
    case SIOCGHWTSTAMP:
        return copy_to_user(request->ifr_data, &end->config, sizeof(end->config)) ? -EFAULT : 0;
    default:
        return -EOPNOTSUPP;
    }
}

static int pair_open(struct net_device *device)
{
    netif_start_queue(device);
    return 0;
}

static int pair_stop(struct net_device *device)
{
    struct end *end = netdev_priv(device);
    netif_stop_queue(device);
    hrtimer_cancel(&end->interrupt);
    skb_queue_purge(&end->waiting);
    return 0;
}

static const struct net_device_ops pair_ops = {
    .ndo_open = pair_open,
    .ndo_stop = pair_stop,
    .ndo_start_xmit = pair_xmit,
    .ndo_eth_ioctl = pair_ioctl,
    .ndo_get_stats64 = dev_get_tstats64,
    .ndo_validate_addr = eth_validate_addr,
    .ndo_set_mac_address = eth_mac_addr,
};

static int pair_ts_info(struct net_device *device, struct ethtool_ts_info *info)
{
    struct end *end = netdev_priv(device);
    info->so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
                            SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE |
                            SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    info->phc_index = ptp_clock_index(end->clock);
    info->tx_types = BIT(HWTSTAMP_TX_OFF) | (rx_only ? 0 : BIT(HWTSTAMP_TX_ON));
    info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) |
                       BIT(ptp_only ? HWTSTAMP_FILTER_PTP_V2_EVENT : HWTSTAMP_FILTER_ALL);
    return 0;
}

static const struct ethtool_ops pair_ethtool = {
    .get_link = ethtool_op_get_link,
    .get_ts_info = pair_ts_info,
};

static void pair_setup(struct net_device *device)
{
    ether_setup(device);
    strscpy(device->name, "phc%d", IFNAMSIZ);
    device->netdev_ops = &pair_ops;
    device->ethtool_ops = &pair_ethtool;
    eth_hw_addr_random(device);
}

// For tests without a program for SIOCGHWTSTAMP: the settings of phc0 and phc1, "TX RX" in numbers.
static int setting_get(char *text, const struct kernel_param *parameter)
{
    const struct end *end = netdev_priv(devices[*(const int *)parameter->arg]);
    return sysfs_emit(text, "%d %d\n", end->config.tx_type, end->config.rx_filter);
}

static int setting_set(const char *text, const struct kernel_param *parameter)
{
    struct end *end = netdev_priv(devices[*(const int *)parameter->arg]);
    return sscanf(text, "%d %d", &end->config.tx_type, &end->config.rx_filter) == 2 ? 0 : -EINVAL;
}

static const struct kernel_param_ops setting_ops = {.get = setting_get, .set = setting_set};
static int first_end = 0, second_end = 1;
module_param_cb(setting, &setting_ops, &first_end, 0644);
module_param_cb(setting1, &setting_ops, &second_end, 0644);

// --- making and unmaking -----------------------------------------------------------------------

static void pair_remove(int i)
{
    struct end *end = netdev_priv(devices[i]);
    if (devices[i]->reg_state == NETREG_REGISTERED)
        unregister_netdev(devices[i]);
    if (end->clock)
        ptp_clock_unregister(end->clock);
}

static void pair_free(int i)
{
    free_percpu(devices[i]->tstats);
    free_netdev(devices[i]);
}

static int pair_make(int i)
{
    struct end *end;
    struct net_device *device = alloc_netdev(sizeof(*end), "phc%d", NET_NAME_ENUM, pair_setup);
    if (!device)
        return -ENOMEM;
    devices[i] = device;
    SET_NETDEV_DEV(device, &parent->dev);
    end = netdev_priv(device);
    end->device = device;
    spin_lock_init(&end->lock);
    skb_queue_head_init(&end->waiting);
    hrtimer_init(&end->interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
    end->interrupt.function = pair_interrupts;
    end->drift_ppb = i ? -drift_ppb : drift_ppb;
    // Far from any other clock, so that nobody takes one for the other.
    end->phc_ns = (u64)(i + 1) * 1000000000000000ULL;
    end->raw_ns = ktime_get_raw_ns();
    end->info = phc_info;
    device->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
    if (!device->tstats)
        return -ENOMEM;
    end->clock = ptp_clock_register(&end->info, &parent->dev);
    if (IS_ERR_OR_NULL(end->clock)) {
        end->clock = NULL;
        return -ENODEV;
    }
    ptp_schedule_worker(end->clock, HZ);
    return 0;
}

static void unmake(void)
{
    int i;
    for (i = 0; i < 2; i++)
        if (devices[i])
            pair_remove(i);
    for (i = 0; i < 2; i++)
        if (devices[i])
            pair_free(i);
    platform_device_unregister(parent);
}

static int __init phcpair_init(void)
{
    int i, status = 0;
    parent = platform_device_register_simple("phcpair", -1, NULL, 0);
    if (IS_ERR(parent))
        return PTR_ERR(parent);
    for (i = 0; i < 2 && !status; i++)
        status = pair_make(i);
    for (i = 0; i < 2 && !status; i++) {
        struct end *end = netdev_priv(devices[i]);
        end->peer = devices[!i];
        status = register_netdev(devices[i]);
    }
    if (status)
        unmake();
    return status;
}

static void __exit phcpair_exit(void)
{
    unmake();
}

module_init(phcpair_init);
module_exit(phcpair_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Two Ethernet devices back to back that stamp every packet");
