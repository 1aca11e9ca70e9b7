// SPDX-License-Identifier: GPL-2.0
//
// The PMU `intel_pt` for a guest whose processor has no trace: the emulator's plugin
// (tests/lab/pt_plugin.c) writes the packets, one ring for each virtual CPU, in memory that is
// shared through an ivshmem-plain device (lab_page.h); here perf switches it, and finds in its AUX
// buffer what the kernel's own driver would leave there. For the guest of tests/lab only; it is
// GPL-2.0 because the interfaces it uses are for such modules.
//
// Written against Linux 6.1: include/linux/perf_event.h, and for what perf sees of it
// Documentation/ABI/testing/sysfs-bus-event_source-devices-caps and perf-intel-pt(1).
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <asm/desc.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "lab_page.h"

static unsigned int drain_us = 5000;
module_param(drain_us, uint, 0644);
MODULE_PARM_DESC(drain_us, "how often a ring is emptied into perf's buffer while it is traced");

static unsigned int ring_bytes;
module_param(ring_bytes, uint, 0644);
MODULE_PARM_DESC(ring_bytes, "0: all of a ring is used; else as if it had so many, for overflows");

struct trace { // of a CPU
    struct perf_output_handle handle;
    struct hrtimer timer;
    struct lab_channel *channel;
    const u8 *ring;
    u64 used; // bytes in perf's buffer since the handle was had
};

struct aux {
    void **pages;
    u64 bytes;
    bool snapshot;
};

struct filters {
    u64 count;
    struct lab_range range[LAB_RANGES];
};

static DEFINE_PER_CPU(struct trace, traces);
static struct lab_page *page;
static u64 ring_size;

// --- the plugin ----------------------------------------------------------------------------------

static void ring(struct lab_channel *channel, u64 command)
{
    WRITE_ONCE(channel->command, command);
    LAB_DOORBELL();
}

// Copies what the ring has into perf's buffer, as far as there is room; true: there was.
static bool drain(struct trace *trace, const struct aux *aux)
{
    struct lab_channel *channel = trace->channel;
    u64 tail = channel->tail, head = smp_load_acquire(&channel->head);
    while (tail < head) {
        u64 at = (trace->handle.head + trace->used) & (aux->bytes - 1);
        u64 bytes = min(head - tail, ring_size - (tail & (ring_size - 1)));
        bytes = min_t(u64, bytes, PAGE_SIZE - offset_in_page(at));
        if (!aux->snapshot)
            bytes = min_t(u64, bytes, trace->handle.size - trace->used);
        if (!bytes)
            break;
        memcpy(aux->pages[at >> PAGE_SHIFT] + offset_in_page(at),
               trace->ring + (tail & (ring_size - 1)), bytes);
        tail += bytes;
        trace->used += bytes;
    }
    smp_store_release(&channel->tail, tail);
    return tail == head;
}

static void set_ring_bytes(struct lab_channel *channel)
{
    // A smaller ring is one of which a part is never taken out.
    if (ring_bytes && ring_bytes < ring_size)
        channel->reserved = ring_size - ring_bytes;
    else
        channel->reserved = 0;
}

static void trace_begin(struct trace *trace, struct perf_event *event)
{
    const struct filters *filters = event->hw.addr_filters;
    struct lab_channel *channel = trace->channel;
    u64 control = event->attr.config & ~1ULL;
    perf_event_addr_filters_sync(event);
    if (!event->attr.exclude_kernel)
        control |= LAB_OS;
    if (!event->attr.exclude_user)
        control |= LAB_USER;
    channel->tail = channel->head;
    channel->control = control | LAB_BRANCH;
    channel->ranges = filters->count;
    memcpy(channel->range, filters->range, sizeof(channel->range));
    set_ring_bytes(channel);
    trace->used = 0;
    ring(channel, LAB_START);
}

// --- perf's buffer -------------------------------------------------------------------------------

// Gives perf what was traced. Tracing is stopped.
static void hand_over(struct trace *trace, const struct aux *aux)
{
    bool all = drain(trace, aux);
    u64 bytes = trace->used;
    if (aux->snapshot) {
        // As the driver does: where it stands, of a buffer that is all valid.
        trace->handle.head = (trace->handle.head + trace->used) & (aux->bytes - 1);
        bytes = aux->bytes;
    } else if (!all) {
        perf_aux_output_flag(&trace->handle, PERF_AUX_FLAG_TRUNCATED);
    }
    perf_aux_output_end(&trace->handle, bytes);
}

static ktime_t drain_period(void)
{
    return ns_to_ktime((u64)max(drain_us, 100U) * NSEC_PER_USEC);
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
    struct trace *trace = container_of(timer, struct trace, timer);
    struct perf_event *event = trace->handle.event;
    struct aux *aux = event ? perf_get_aux(&trace->handle) : NULL;
    if (!aux || event->hw.state)
        return HRTIMER_NORESTART;
    if (!drain(trace, aux) ||
        (!aux->snapshot && trace->handle.head + trace->used >= trace->handle.wakeup)) {
        ring(trace->channel, LAB_STOP);
        hand_over(trace, aux);
        if (!perf_aux_output_begin(&trace->handle, event)) {
            event->hw.state = PERF_HES_STOPPED; // until perf has read and enables it again
            return HRTIMER_NORESTART;
        }
        trace_begin(trace, event);
    }
    hrtimer_forward_now(timer, drain_period());
    return HRTIMER_RESTART;
}

static void event_start(struct perf_event *event, int mode)
{
    struct trace *trace = this_cpu_ptr(&traces);
    struct aux *aux = perf_aux_output_begin(&trace->handle, event);
    if (!aux) {
        event->hw.state = PERF_HES_STOPPED;
        return;
    }
    event->hw.state = 0;
    trace_begin(trace, event);
    hrtimer_start(&trace->timer, drain_period(), HRTIMER_MODE_REL_PINNED_HARD);
}

static void event_stop(struct perf_event *event, int mode)
{
    struct trace *trace = this_cpu_ptr(&traces);
    struct aux *aux;
    ring(trace->channel, LAB_STOP);
    if (event->hw.state == PERF_HES_STOPPED)
        return;
    event->hw.state = PERF_HES_STOPPED;
    hrtimer_try_to_cancel(&trace->timer);
    aux = perf_get_aux(&trace->handle);
    if ((mode & PERF_EF_UPDATE) && aux && trace->handle.event == event)
        hand_over(trace, aux);
}

static int event_add(struct perf_event *event, int mode)
{
    struct trace *trace = this_cpu_ptr(&traces);
    if (trace->handle.event)
        return -EBUSY;
    event->hw.state = PERF_HES_STOPPED;
    if (!(mode & PERF_EF_START))
        return 0;
    event_start(event, mode);
    return event->hw.state == PERF_HES_STOPPED ? -EINVAL : 0;
}

static void event_del(struct perf_event *event, int mode)
{
    event_stop(event, PERF_EF_UPDATE);
}

static void event_read(struct perf_event *event)
{
}

static void *setup_aux(struct perf_event *event, void **pages, int count, bool snapshot)
{
    struct aux *aux;
    if (!count || !is_power_of_2(count))
        return NULL;
    aux = kzalloc(sizeof(*aux), GFP_KERNEL);
    if (aux)
        *aux =
            (struct aux){.pages = pages, .bytes = (u64)count << PAGE_SHIFT, .snapshot = snapshot};
    return aux;
}

static void free_aux(void *aux)
{
    kfree(aux);
}

// --- what is asked for ---------------------------------------------------------------------------

static unsigned int address_ranges = 2;

static int filters_validate(struct list_head *list)
{
    struct perf_addr_filter *filter;
    unsigned int count = 0;
    list_for_each_entry(filter, list, entry)
    {
        if (!filter->size || filter->action == PERF_ADDR_FILTER_ACTION_START)
            return -EOPNOTSUPP;
        if (++count > address_ranges)
            return -EOPNOTSUPP;
    }
    return 0;
}

static void filters_sync(struct perf_event *event)
{
    struct filters *filters = event->hw.addr_filters;
    struct perf_addr_filters_head *head = perf_event_addr_filters(event);
    struct perf_addr_filter_range *range = event->addr_filter_ranges;
    struct perf_addr_filter *filter;
    u64 count = 0;
    list_for_each_entry(filter, &head->list, entry)
    {
        // A file that is not mapped (yet) is nowhere.
        filters->range[count] = (struct lab_range){
            .begin = range[count].start,
            .end = range[count].start + range[count].size,
            .stops = filter->action == PERF_ADDR_FILTER_ACTION_STOP,
        };
        count++;
    }
    filters->count = count;
}

static u64 config_mask(void)
{
    u64 mask = 1 | LAB_CYC | LAB_TSC | LAB_NO_RETCOMP | LAB_BRANCH | 0xfULL << 19 | 0xfULL << 24;
    return page->tsc_per_ctc ? mask | LAB_MTC | 0xfULL << 14 : mask;
}

static void event_destroy(struct perf_event *event)
{
    kfree(event->hw.addr_filters);
}

static struct pmu pmu;

static int event_init(struct perf_event *event)
{
    u64 config = event->attr.config;
    if (event->attr.type != pmu.type)
        return -ENOENT;
    // Without bit 0, as before Linux 4.20, flow is always told.
    if (config & ~config_mask() || ((config & 1) && !(config & LAB_BRANCH)))
        return -EINVAL;
    event->hw.addr_filters = kzalloc(sizeof(struct filters), GFP_KERNEL);
    if (!event->hw.addr_filters)
        return -ENOMEM;
    event->destroy = event_destroy;
    return 0;
}

// --- sysfs ---------------------------------------------------------------------------------------

PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(cyc, "config:1");
PMU_FORMAT_ATTR(mtc, "config:9");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(noretcomp, "config:11");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(mtc_period, "config:14-17");
PMU_FORMAT_ATTR(cyc_thresh, "config:19-22");
PMU_FORMAT_ATTR(psb_period, "config:24-27");

static struct attribute *format_attributes[] = {
    &format_attr_pt.attr,         &format_attr_cyc.attr,
    &format_attr_mtc.attr,        &format_attr_tsc.attr,
    &format_attr_noretcomp.attr,  &format_attr_branch.attr,
    &format_attr_mtc_period.attr, &format_attr_cyc_thresh.attr,
    &format_attr_psb_period.attr, NULL,
};

static const struct attribute_group format_group = {
    .name = "format",
    .attrs = format_attributes,
};

struct cap {
    struct device_attribute attribute;
    u32 value;
};

static ssize_t cap_show(struct device *device, struct device_attribute *attribute, char *text)
{
    return sysfs_emit(text, "%x\n", container_of(attribute, struct cap, attribute)->value);
}

#define CAP(NAME, VALUE) static struct cap cap_##NAME = {__ATTR(NAME, 0444, cap_show, NULL), VALUE}
CAP(max_subleaf, 1);
CAP(cr3_filtering, 1);
CAP(psb_cyc, 1);
CAP(ip_filtering, 1);
CAP(mtc, 0); // as the plugin has it
CAP(ptwrite, 0);
CAP(power_event_trace, 0);
CAP(event_trace, 0);
CAP(tnt_disable, 0);
CAP(topa_output, 1);
CAP(topa_multiple_entries, 1);
CAP(single_range_output, 1);
CAP(output_subsys, 0);
CAP(payloads_lip, 0);
CAP(num_address_ranges, 2);
CAP(mtc_periods, 0x249);
CAP(cycle_thresholds, 0x3fff);
CAP(psb_periods, 0x3f);

static struct attribute *cap_attributes[] = {
    &cap_max_subleaf.attribute.attr,
    &cap_cr3_filtering.attribute.attr,
    &cap_psb_cyc.attribute.attr,
    &cap_ip_filtering.attribute.attr,
    &cap_mtc.attribute.attr,
    &cap_ptwrite.attribute.attr,
    &cap_power_event_trace.attribute.attr,
    &cap_event_trace.attribute.attr,
    &cap_tnt_disable.attribute.attr,
    &cap_topa_output.attribute.attr,
    &cap_topa_multiple_entries.attribute.attr,
    &cap_single_range_output.attribute.attr,
    &cap_output_subsys.attribute.attr,
    &cap_payloads_lip.attribute.attr,
    &cap_num_address_ranges.attribute.attr,
    &cap_mtc_periods.attribute.attr,
    &cap_cycle_thresholds.attribute.attr,
    &cap_psb_periods.attribute.attr,
    NULL,
};

static const struct attribute_group cap_group = {
    .name = "caps",
    .attrs = cap_attributes,
};

static ssize_t max_nonturbo_ratio_show(struct device *device, struct device_attribute *attribute,
                                       char *text)
{
    return sysfs_emit(text, "%llu\n", page->bus_ratio);
}
static DEVICE_ATTR_RO(max_nonturbo_ratio);

static ssize_t tsc_art_ratio_show(struct device *device, struct device_attribute *attribute,
                                  char *text)
{
    return sysfs_emit(text, "%llu:1\n", page->tsc_per_ctc);
}
static DEVICE_ATTR_RO(tsc_art_ratio);

static struct attribute *timing_attributes[] = {
    &dev_attr_max_nonturbo_ratio.attr,
    &dev_attr_tsc_art_ratio.attr,
    NULL,
};

static const struct attribute_group timing_group = {.attrs = timing_attributes};

static const struct attribute_group *attribute_groups[] = {
    &format_group,
    &cap_group,
    &timing_group,
    NULL,
};

static struct pmu pmu = {
    .module = THIS_MODULE,
    .capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
    .attr_groups = attribute_groups,
    .task_ctx_nr = perf_sw_context,
    .event_init = event_init,
    .add = event_add,
    .del = event_del,
    .start = event_start,
    .stop = event_stop,
    .read = event_read,
    .setup_aux = setup_aux,
    .free_aux = free_aux,
    .addr_filters_sync = filters_sync,
    .addr_filters_validate = filters_validate,
    .nr_addr_filters = 2,
};

// --- making and unmaking -------------------------------------------------------------------------

static struct pci_dev *device;

static struct lab_channel *channel_of(int cpu)
{
    return &page->channel[cpu];
}

static void ask_plugin(void *answers)
{
    struct lab_channel *channel = channel_of(smp_processor_id());
    u64 before = channel->answered;
    ring(channel, LAB_STOP);
    *(bool *)answers = channel->answered == before + 1;
}

static int find_plugin(void)
{
    int cpu;
    for_each_online_cpu(cpu)
    {
        bool answers = false;
        if (smp_call_function_single(cpu, ask_plugin, &answers, 1) || !answers) {
            pr_err("intel_pt: no plugin answers for cpu %d\n", cpu);
            return -ENODEV;
        }
    }
    return 0;
}

static void learn_handlers(void)
{
    struct desc_ptr table;
    const gate_desc *gates;
    int i;
    store_idt(&table);
    gates = (const gate_desc *)table.address;
    for (i = 0; i < 256; i++)
        page->handler[i] = gate_offset(&gates[i]);
}

static int map_device(void)
{
    device = pci_get_device(0x1af4, 0x1110, NULL); // ivshmem
    if (!device)
        return -ENODEV;
    if (pci_enable_device(device))
        return -EIO;
    page = memremap(pci_resource_start(device, 2), pci_resource_len(device, 2), MEMREMAP_WB);
    if (!page)
        return -ENOMEM;
    ring_size = page->ring_bytes;
    return page->magic == LAB_MAGIC ? 0 : -ENODEV;
}

static void unmap_device(void)
{
    if (page)
        memunmap(page);
    pci_dev_put(device);
}

static int __init intel_pt_init(void)
{
    int cpu, status = map_device();
    if (status)
        goto out;
    for_each_possible_cpu(cpu)
    {
        struct trace *trace = per_cpu_ptr(&traces, cpu);
        if (cpu >= LAB_CHANNELS) {
            status = -E2BIG;
            goto out;
        }
        trace->channel = channel_of(cpu);
        trace->ring = (const u8 *)page + LAB_HEADER + cpu * ring_size;
        hrtimer_init(&trace->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
        trace->timer.function = timer_fires;
    }
    status = find_plugin();
    if (status)
        goto out;
    learn_handlers();
    page->bus_ratio = DIV_ROUND_CLOSEST(tsc_khz, 100000);
    cap_mtc.value = page->tsc_per_ctc != 0;
    status = perf_pmu_register(&pmu, "intel_pt", -1);
out:
    if (status)
        unmap_device();
    return status;
}

static void __exit intel_pt_exit(void)
{
    perf_pmu_unregister(&pmu);
    unmap_device();
}

module_init(intel_pt_init);
module_exit(intel_pt_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A PMU intel_pt whose trace an emulator writes");
