// SPDX-License-Identifier: MIT
//
// What a firewall has to do for packets in the caller's network namespace: how many rules there
// are, of nftables and of the older iptables, and how often the table of connections (conntrack)
// was full.
#ifndef PROFILER_HOST_FIREWALL_STATE_H
#define PROFILER_HOST_FIREWALL_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIREWALL_MOST_RULES 20000 // more are not counted

struct firewall_state {
    bool known; // whether the kernel let the caller ask: it takes CAP_NET_ADMIN
    uint64_t rules;
    uint64_t untracked; // packets dropped because there was no room for their connection
};

// Asking takes the kernel some 1 us a rule, and holds up nobody's packets.
void firewall_state_read(struct firewall_state *out);

// The rules, at most at once, and what moved since `before`: {"rules": 4002, "untracked": 3};
// "rules" null: not known. The caller frees; NULL: no memory.
json_t *firewall_state_moved(const struct firewall_state *before);

// Counts the rules in a part of the kernel's answer, up to its end. False: more parts follow.
bool firewall_rules_in(const void *answer, size_t bytes, struct firewall_state *out);

// The sum of a column over all cores, from the text of /proc/net/stat/nf_conntrack. 0: not there.
uint64_t firewall_column_sum(const char *text, const char *column);

#endif
