// SPDX-License-Identifier: GPL-2.0
//
// A spinlock that all that a device receives has to take, before any other netfilter hook, and that
// a kernel thread on another CPU holds now and then: a contended lock of the kernel, and how long
// it was waited for. For the guest of tests/lab only; it is GPL-2.0 because the interfaces it uses
// are for such modules.
//
// Written against Linux 6.1: include/linux/netfilter.h.
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <net/net_namespace.h>

static char *device = "phc1";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "whose packets take the lock");

static unsigned int hold_ms, every_ms = 500, cpu = 2;
module_param(hold_ms, uint, 0644);
MODULE_PARM_DESC(hold_ms, "for how long it is held; 0: it is not");
module_param(every_ms, uint, 0644);
MODULE_PARM_DESC(every_ms, "from the beginning of one hold to that of the next, about");
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "on which it is held");

// When each wait of a millisecond or more began (CLOCK_MONOTONIC_RAW) and how many ns it took, of
// the first few: sysfs shows a page.
static unsigned long long waits[2 * 128];
static unsigned int known;
module_param_array(waits, ullong, &known, 0444);

static DEFINE_SPINLOCK(lock);
static struct task_struct *holder;

static unsigned int hook(void *data, struct sk_buff *packet, const struct nf_hook_state *state)
{
    unsigned long flags;
    u64 from, took;
    if (!state->in || strcmp(state->in->name, device))
        return NF_ACCEPT;
    from = ktime_get_raw_ns();
    spin_lock_irqsave(&lock, flags); // so that all of the wait is spent on it
    took = ktime_get_raw_ns() - from;
    if (took >= NSEC_PER_MSEC && known < ARRAY_SIZE(waits)) {
        waits[known] = from;
        waits[known + 1] = took;
        known += 2;
    }
    spin_unlock_irqrestore(&lock, flags);
    return NF_ACCEPT;
}

static int hold(void *data)
{
    while (!kthread_should_stop()) {
        unsigned int held = READ_ONCE(hold_ms);
        if (held) {
            spin_lock_bh(&lock);
            mdelay(held);
            spin_unlock_bh(&lock);
        }
        msleep_interruptible(held ? every_ms - min(every_ms, held) : 10);
    }
    return 0;
}

static const struct nf_hook_ops operations = {
    .hook = hook,
    .pf = NFPROTO_IPV4,
    .hooknum = NF_INET_PRE_ROUTING,
    .priority = NF_IP_PRI_FIRST,
};

static int __net_init begin_in(struct net *net)
{
    return nf_register_net_hook(net, &operations);
}

static void __net_exit end_in(struct net *net)
{
    nf_unregister_net_hook(net, &operations);
}

static struct pernet_operations namespaces = {.init = begin_in, .exit = end_in};

static int __init heldlock_init(void)
{
    int status = register_pernet_subsys(&namespaces);
    if (status)
        return status;
    holder = kthread_run_on_cpu(hold, NULL, cpu, "heldlock");
    if (IS_ERR(holder)) {
        unregister_pernet_subsys(&namespaces);
        return PTR_ERR(holder);
    }
    return 0;
}

static void __exit heldlock_exit(void)
{
    kthread_stop(holder);
    unregister_pernet_subsys(&namespaces);
}

module_init(heldlock_init);
module_exit(heldlock_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A lock that what a device receives waits for");
