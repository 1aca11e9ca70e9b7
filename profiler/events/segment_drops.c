// SPDX-License-Identifier: MIT
#include "profiler/events/segment_drops.h"

#include <bpf/btf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Segments that were not on their way, that brought nothing new, or of which the kernel does not
// say why.
static bool is_loss(const char *reason)
{
    static const char *const others[] = {
        "NOT_DROPPED_YET",  "SOCKET_CLOSE", "TCP_OFOMERGE", "TCP_TOO_OLD_ACK", "CONSUMED",
        "NOT_SPECIFIED",    "QUEUE_PURGE",  "TCP_OLD_DATA", "TCP_OLD_ACK",     "TCP_CLOSE",
        "TCP_OLD_SEQUENCE", "TCP_RESET",    "TCP_FASTOPEN",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(reason, others[i]) == 0)
            return false;
    return true;
}

static const char *without_prefix(const char *name)
{
    static const char *const prefixes[] = {"SKB_DROP_REASON_", "SKB_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return name + strlen(prefixes[i]);
    return name;
}

void segment_drop_reasons_read(struct segment_drop_reasons *out, const struct btf *btf)
{
    memset(out, 0, sizeof *out);
    int32_t id = btf__find_by_name_kind(btf, "skb_drop_reason", BTF_KIND_ENUM);
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
    const struct btf_enum *values = type ? btf_enum(type) : NULL;
    for (unsigned i = 0; values && i < btf_vlen(type); i++) {
        const char *name = without_prefix(btf__name_by_offset(btf, values[i].name_off));
        const uint32_t reason = (uint32_t)values[i].val;
        if (reason < EVENTS_DROP_REASONS && is_loss(name))
            snprintf(out->names[reason], sizeof out->names[reason], "%s", name);
    }
}

json_t *segment_drops_json(const struct segment_drop_reasons *reasons,
                           const uint64_t counts[EVENTS_DROP_REASONS])
{
    json_t *drops = json_object();
    for (size_t i = 0; i < EVENTS_DROP_REASONS; i++)
        if (counts[i] && reasons->names[i][0])
            json_object_set_new(drops, reasons->names[i], json_integer((json_int_t)counts[i]));
    return drops;
}
