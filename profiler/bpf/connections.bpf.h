// SPDX-License-Identifier: MIT
//
// The watched sockets' addresses: new connections, and those older than the capture. Part of
// events.bpf.c.
#ifndef PROFILER_BPF_CONNECTIONS_BPF_H
#define PROFILER_BPF_CONNECTIONS_BPF_H

#include "profiler/bpf/messages.bpf.h"

static __always_inline void map_address(uint8_t out[16], uint32_t ipv4)
{
    out[10] = out[11] = 0xff;
    __builtin_memcpy(out + 12, &ipv4, 4);
}

// Enters a connection into the table; entries are never taken out, so that closed ones stay known.
static __always_inline void remember(struct sock_common *common, uint64_t cookie,
                                     uint64_t opened_time)
{
    struct connection connection = {.id = (uint32_t)cookie, .protocol = CONNECTION_TCP};
    connection.cookie = cookie;
    connection.local_port = common->skc_num;
    connection.peer_port = bpf_ntohs(common->skc_dport);
    connection.opened_time = opened_time;
    if (common->skc_family == FAMILY_INET) {
        map_address(connection.local, common->skc_rcv_saddr);
        map_address(connection.peer, common->skc_daddr);
    } else if (bpf_core_field_exists(common->skc_v6_daddr)) {
        bpf_core_read(connection.local, 16, &common->skc_v6_rcv_saddr);
        bpf_core_read(connection.peer, 16, &common->skc_v6_daddr);
    }
    if (bpf_map_update_elem(&sockets, &cookie, &connection, BPF_NOEXIST) == -7 /* E2BIG */)
        __sync_fetch_and_add(&sockets_dropped, 1);
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)common);
    if (!tcp)
        return;
    struct stream stream = {.first = tcp->rcv_nxt - (uint32_t)tcp->bytes_received,
                            .id = (uint32_t)cookie,
                            .reached = tcp->bytes_received};
    uint32_t ports = (uint32_t)connection.peer_port << 16 | connection.local_port;
    bpf_map_update_elem(&streams, &ports, &stream, BPF_ANY);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, struct sock *sk, int before, int after)
{
    if (after != STATE_ESTABLISHED || before != STATE_SYN_RECEIVED || !port_watched(sk) ||
        sk->sk_protocol != PROTOCOL_TCP)
        return 0;
    remember(&sk->__sk_common, bpf_get_socket_cookie(sk), bpf_ktime_get_ns());
    return 0;
}

// Runs over the TCP sockets of the reader's network namespace: connections older than the capture.
SEC("iter/tcp")
int known_sockets(struct bpf_iter__tcp *context)
{
    struct sock_common *common = context->sk_common;
    if (!common)
        return 0;
    unsigned char state = common->skc_state;
    if (state == STATE_LISTEN || state == STATE_TIME_WAIT || state == STATE_CLOSE ||
        state == STATE_NEW_SYN_RECEIVED || !port_watched((struct sock *)common))
        return 0;
    remember(common, bpf_get_socket_cookie(common), 0);
    return 0;
}

#endif
