// SPDX-License-Identifier: MIT
//
// Requests, and replies, as a packet capture sees them leave and come at the client's end of the
// veth cable: libpcap's ring is filled in the sender's own context and read only when the run is
// over, so that no reader shares a core with what is measured. The kernel stamps each packet as it
// is handed to the device.
#ifndef BENCH_WIRE_CAPTURE_H
#define BENCH_WIRE_CAPTURE_H

#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pcap/pcap.h>
#include <pcap/sll.h>
#include <stdbool.h>

#include "base/array.h"
#include "tests/bench/bench.h"

struct wire_packet {
    uint64_t ns;              // CLOCK_REALTIME
    uint16_t port;            // the client's
    uint32_t sequence, bytes; // of TCP payload
};

struct wire_capture {
    pcap_t *pcap;
    uint16_t server_port;
    struct wire_packets ARRAY_OF(struct wire_packet) packets, replies;
    uint64_t dropped;
};

enum wire_ways { WIRE_REQUESTS, WIRE_BOTH };
enum { WIRE_BUFFER_BYTES = 192 << 20, WIRE_SNAP_BYTES = 96, WIRE_FLUSH_MS = 200 };

// Moves this thread into a network namespace and closes the descriptor.
static inline void wire_enter(int netns_fd)
{
    if (netns_fd < 0 || setns(netns_fd, CLONE_NEWNET) < 0)
        bench_fail("cannot enter a network namespace: %s", strerror(errno));
    close(netns_fd);
}

// Begins to capture TCP segments with payload for that port, and from it, on the client's end of
// the cable.
static inline void wire_begin(struct wire_capture *capture, const struct bench_lab *lab,
                              uint16_t port, enum wire_ways ways)
{
    char reason[PCAP_ERRBUF_SIZE], filter[200];
    struct bpf_program program;
    memset(capture, 0, sizeof *capture);
    snprintf(filter, sizeof filter,
             "tcp%s port %u and ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) > 0",
             ways == WIRE_REQUESTS ? " dst" : "", port);
    capture->server_port = port;
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    wire_enter(open(lab->hosts.items[BENCH_CLIENT].netns, O_RDONLY | O_CLOEXEC));
    pcap_t *pcap = capture->pcap = pcap_create("to1", reason);
    if (!pcap || pcap_set_snaplen(pcap, WIRE_SNAP_BYTES) != 0 ||
        pcap_set_buffer_size(pcap, WIRE_BUFFER_BYTES) != 0 ||
        pcap_set_timeout(pcap, WIRE_FLUSH_MS) != 0 ||
        pcap_set_tstamp_precision(pcap, PCAP_TSTAMP_PRECISION_NANO) != 0 ||
        pcap_activate(pcap) < 0 || pcap_setnonblock(pcap, 1, reason) < 0 ||
        pcap_compile(pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN) < 0 ||
        pcap_setfilter(pcap, &program) < 0)
        bench_fail("cannot capture: %s", pcap ? pcap_geterr(pcap) : reason);
    pcap_freecode(&program);
    wire_enter(home);
}

static inline void wire_take(u_char *context, const struct pcap_pkthdr *header, const u_char *bytes)
{
    struct wire_capture *capture = (void *)context;
    const size_t link = 14; // Ethernet
    struct iphdr ip;
    struct tcphdr tcp;
    if (header->caplen < link + sizeof ip)
        return;
    memcpy(&ip, bytes + link, sizeof ip);
    size_t ip_bytes = ip.ihl * 4u;
    if (header->caplen < link + ip_bytes + sizeof tcp)
        return;
    memcpy(&tcp, bytes + link + ip_bytes, sizeof tcp);
    const bool reply = ntohs(tcp.source) == capture->server_port;
    const struct wire_packet packet = {
        .ns = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec,
        .port = ntohs(reply ? tcp.dest : tcp.source),
        .sequence = ntohl(tcp.seq),
        .bytes = (uint32_t)(ntohs(ip.tot_len) - ip_bytes - tcp.doff * 4u)};
    if (array_push(reply ? &capture->replies : &capture->packets, packet) < 0)
        bench_fail("out of memory for the packets");
}

static inline int wire_compare(const void *a, const void *b)
{
    const struct wire_packet *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

// Ends it and reads what was captured; the caller frees with wire_free.
static inline void wire_end(struct wire_capture *capture)
{
    struct pcap_stat counts = {0};
    usleep(2 * WIRE_FLUSH_MS * 1000); // the last block of the ring is handed over by a timer
    while (pcap_dispatch(capture->pcap, -1, wire_take, (void *)capture) > 0)
        ;
    pcap_stats(capture->pcap, &counts);
    capture->dropped = counts.ps_drop;
    // Two cores may stamp in one order and get their places in the ring in the other.
    struct wire_packets *ways[] = {&capture->packets, &capture->replies};
    for (int i = 0; i < 2; i++)
        if (ways[i]->count)
            qsort(ways[i]->items, ways[i]->count, sizeof *ways[i]->items, wire_compare);
    pcap_close(capture->pcap);
}

static inline void wire_free(struct wire_capture *capture)
{
    array_free(&capture->packets);
    array_free(&capture->replies);
}

#endif
