// SPDX-License-Identifier: MIT
#include "analysis/run/run_network.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"
#include "loadgen/method/load_doubts.h"
#include "profiler/host/firewall_state.h"

enum { MANY_RULES = 500 }; // some tens of ns each, where a packet meets all of them

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

static json_int_t counted(const struct run_analysis *run, const char *group, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(run->evidence.capture, group), key));
}

static bool load_ran_out_of_ports(const struct run_analysis *run)
{
    size_t i;
    json_t *key;
    json_array_foreach(json_object_get(run->evidence.load, "doubts"), i,
                       key) if (load_doubt_named(json_string_value(key)) ==
                                DOUBT_PORTLESS) return true;
    return false;
}

// Why connections could not be opened, the most telling first.
enum refusal {
    REFUSED_BY_CONNTRACK,
    REFUSED_BY_FIREWALL,
    REFUSED_BY_ACCEPT_QUEUE,
    REFUSED_BY_SYN_QUEUE,
    REFUSED_FOR_PORTS,
    REFUSED_ELSEWHERE, // the server's machine counted nothing
    REFUSED_UNKNOWN,   // nobody counted there
};

static enum refusal refusal_of(const struct run_analysis *run, json_int_t *times)
{
    const json_t *events = json_object_get(run->evidence.capture, "events");
    const json_int_t dropped = json_integer_value(
        json_object_get(json_object_get(events, "segments_dropped"), "NETFILTER_DROP"));
    const struct {
        enum refusal refusal;
        json_int_t times;
    } seen[] = {
        {REFUSED_BY_CONNTRACK, firewall_count(run, "untracked")},
        {REFUSED_BY_FIREWALL, dropped},
        {REFUSED_BY_ACCEPT_QUEUE, counted(run, "network", "ListenOverflows")},
        {REFUSED_BY_SYN_QUEUE, counted(run, "network", "TCPReqQFullDrop")},
        {REFUSED_FOR_PORTS, load_ran_out_of_ports(run)},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        *times = seen[i].times;
        if (*times > 0)
            return seen[i].refusal;
    }
    return json_is_object(json_object_get(run->evidence.capture, "network")) ? REFUSED_ELSEWHERE
                                                                             : REFUSED_UNKNOWN;
}

char *run_refusal_words(const struct run_analysis *run, char out[NETWORK_WORDS_BYTES])
{
    json_int_t times;
    const enum refusal refusal = refusal_of(run, &times);
    const char *s = times == 1 ? "" : "s";
    out[0] = '\0';
    if (refusal == REFUSED_BY_CONNTRACK)
        snprintf(out, NETWORK_WORDS_BYTES,
                 ": its machine's table of connections (conntrack) had no room %s time%s",
                 TEXT_COUNT(times), s);
    else if (refusal == REFUSED_BY_FIREWALL)
        snprintf(out, NETWORK_WORDS_BYTES,
                 ": a firewall on its machine dropped %s segment%s of its connections",
                 TEXT_COUNT(times), s);
    else if (refusal == REFUSED_BY_ACCEPT_QUEUE)
        snprintf(out, NETWORK_WORDS_BYTES, ": its queue of new connections was full %s time%s",
                 TEXT_COUNT(times), s);
    else if (refusal == REFUSED_BY_SYN_QUEUE)
        snprintf(out, NETWORK_WORDS_BYTES, ": its queue of half-open ones (SYN) was full %s time%s",
                 TEXT_COUNT(times), s);
    else if (refusal == REFUSED_FOR_PORTS)
        snprintf(out, NETWORK_WORDS_BYTES, ": the load's machine had no local port left");
    return out;
}

const char *run_refusal_helps(const struct run_analysis *run)
{
    static const char *const helps[] = {
        [REFUSED_BY_CONNTRACK] =
            "a larger table of connections (net.netfilter.nf_conntrack_max), shorter timeouts of "
            "those that have ended, no tracking of this port (notrack), or connections that are "
            "kept open",
        [REFUSED_BY_FIREWALL] =
            "have the firewall let more of what opens connections through (nft list ruleset, "
            "iptables -nvL), or keep connections open",
        [REFUSED_BY_ACCEPT_QUEUE] =
            "a longer queue of connections (the server's backlog, net.core.somaxconn) and more "
            "threads that accept, or connections that are kept open",
        [REFUSED_BY_SYN_QUEUE] =
            "a longer SYN queue (net.ipv4.tcp_max_syn_backlog and the server's backlog), SYN "
            "cookies (net.ipv4.tcp_syncookies), or connections that are kept open",
        [REFUSED_FOR_PORTS] =
            "connections that are kept open: each that this side ends keeps its port in TIME_WAIT "
            "for a minute; else more ports (net.ipv4.ip_local_port_range), or "
            "net.ipv4.tcp_tw_reuse=1",
        [REFUSED_ELSEWHERE] =
            "the server's machine counted none that it dropped: see whether the server listens all "
            "the time, and who drops SYNs on the way (a firewall, the link); or keep connections "
            "open",
        [REFUSED_UNKNOWN] = NULL,
    };
    json_int_t times;
    return helps[refusal_of(run, &times)];
}
