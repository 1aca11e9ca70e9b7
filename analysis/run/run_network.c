// SPDX-License-Identifier: MIT
#include "analysis/run/run_network.h"

#include <stdio.h>

#include "base/text.h"
#include "profiler/firewall_state.h"

enum { MANY_RULES = 500 }; // some tens of ns each, where a packet meets all of them

static json_int_t firewall_drops(const struct run_analysis *run)
{
    const json_t *events = json_object_get(run->evidence.capture, "events");
    return json_integer_value(
        json_object_get(json_object_get(events, "segments_dropped"), "NETFILTER_DROP"));
}

static json_int_t queue_overflows(const struct run_analysis *run)
{
    return json_integer_value(
        json_object_get(json_object_get(run->evidence.capture, "network"), "ListenOverflows"));
}

static json_int_t firewall_count(const struct run_analysis *run, const char *key)
{
    return json_integer_value(
        json_object_get(json_object_get(run->evidence.capture, "firewall"), key));
}

char *run_rules_words(const struct run_analysis *run, char out[NETWORK_WORDS_BYTES])
{
    const json_int_t rules = firewall_count(run, "rules");
    out[0] = '\0';
    if (rules >= MANY_RULES)
        snprintf(out, NETWORK_WORDS_BYTES, ": its firewall has %s%s rules",
                 rules >= FIREWALL_MOST_RULES ? "more than " : "", TEXT_COUNT(rules));
    return out;
}

char *run_refusal_words(const struct run_analysis *run, char out[NETWORK_WORDS_BYTES])
{
    const json_int_t dropped = firewall_drops(run), full = queue_overflows(run);
    const json_int_t untracked = firewall_count(run, "untracked");
    out[0] = '\0';
    if (untracked > 0)
        snprintf(out, NETWORK_WORDS_BYTES,
                 ": its machine's table of connections (conntrack) had no room %s time%s",
                 TEXT_COUNT(untracked), untracked == 1 ? "" : "s");
    else if (dropped > 0)
        snprintf(out, NETWORK_WORDS_BYTES,
                 ": a firewall on its machine dropped %s segment%s of its connections",
                 TEXT_COUNT(dropped), dropped == 1 ? "" : "s");
    else if (full > 0)
        snprintf(out, NETWORK_WORDS_BYTES, ": its queue of new connections was full %s time%s",
                 TEXT_COUNT(full), full == 1 ? "" : "s");
    return out;
}

const char *run_refusal_helps(const struct run_analysis *run)
{
    if (firewall_count(run, "untracked") > 0)
        return "a larger table of connections (net.netfilter.nf_conntrack_max), shorter timeouts "
               "of those that have ended, no tracking of this port (notrack), or connections that "
               "are kept open";
    if (firewall_drops(run) > 0)
        return "have the firewall let more of what opens connections through (nft list ruleset, "
               "iptables -nvL), or keep connections open";
    if (queue_overflows(run) > 0)
        return "a longer queue of connections (the server's backlog, net.core.somaxconn) and more "
               "threads that accept, or connections that are kept open";
    return NULL;
}
