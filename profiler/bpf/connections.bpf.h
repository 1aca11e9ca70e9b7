// SPDX-License-Identifier: MIT
//
// The connections that are watched: their addresses and streams, entered as they connect, and later
// those whose connecting was not seen, because they are older than the capture or because the
// kernel delivered no event then. Part of events.bpf.c.
#ifndef PROFILER_BPF_CONNECTIONS_BPF_H
#define PROFILER_BPF_CONNECTIONS_BPF_H

#include "profiler/bpf/record.bpf.h"

// tcp_sock.bytes_received and bytes_acked count from the connection's start. On an accepted
// connection both begin at 0 (rcv_nxt and snd_una are set past the SYNs when the child is made); on
// a connecting one bytes_acked begins at 1, which does not concern a server. Each counts a FIN
// as 1.

static __always_inline bool port_watched(const struct sock *sk)
{
    return port_in_set(sk->__sk_common.skc_num) && namespace_watched(&sk->__sk_common);
}

static __always_inline void map_address(uint8_t out[16], uint32_t ipv4)
{
    out[10] = out[11] = 0xff;
    __builtin_memcpy(out + 12, &ipv4, 4);
}

// Counts a connection without room, once: it is tried again with what it receives, and as it ends.
static __always_inline void connection_refuse(uint64_t cookie)
{
    uint64_t word = number_bounded(cookie / 64 & (EVENTS_REFUSED / 64 - 1));
    uint64_t bit = 1ull << (cookie % 64);
    if (word >= EVENTS_REFUSED / 64 || (sockets_refused[number_bounded(word)] & bit))
        return;
    sockets_refused[number_bounded(word)] |= bit;
    __sync_fetch_and_add(&sockets_dropped, 1);
}

// Enters a connection into the table. Whoever reads the table takes those out that have ended.
static __always_inline void connection_enter(struct sock_common *common, uint64_t cookie,
                                             uint64_t opened_time)
{
    struct connection connection = {.id = (uint32_t)cookie, .protocol = CONNECTION_TCP};
    connection.cookie = cookie;
    connection.local_port = common->skc_num;
    connection.peer_port = bpf_ntohs(common->skc_dport);
    connection.opened_time = opened_time;
    connection.namespace = (uint16_t)namespace_of(common);
    if (common->skc_family == FAMILY_INET) {
        map_address(connection.local, common->skc_rcv_saddr);
        map_address(connection.peer, common->skc_daddr);
    } else if (bpf_core_field_exists(common->skc_v6_daddr)) {
        bpf_core_read(connection.local, 16, &common->skc_v6_rcv_saddr);
        bpf_core_read(connection.peer, 16, &common->skc_v6_daddr);
    }
    // Kernels before 6.4 leave the upper half of what this returns as it was.
    int result = (int)bpf_map_update_elem(&sockets, &cookie, &connection, BPF_NOEXIST);
    if (result == 0)
        __sync_fetch_and_add(&sockets_entered, 1);
    else if (result == -7 /* E2BIG */)
        connection_refuse(cookie);
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)common);
    if (!tcp)
        return;
    struct stream stream = {.first = tcp->rcv_nxt - (uint32_t)tcp->bytes_received,
                            .id = (uint32_t)cookie,
                            .reached = tcp->bytes_received,
                            .first_replied = tcp->snd_una - (uint32_t)tcp->bytes_acked,
                            .namespace = namespace_of(common)};
    struct stream_key key = {.ports = (uint32_t)connection.peer_port << 16 | connection.local_port,
                             .namespace = stream.first};
    __builtin_memcpy(key.peer, connection.peer, 16);
    __builtin_memcpy(stream.local, connection.local, 16);
    bpf_map_update_elem(&streams, &key, &stream, BPF_ANY);
    __builtin_memcpy(key.local, connection.local, 16);
    key.namespace = stream.namespace;
    bpf_map_update_elem(&streams, &key, &stream, BPF_ANY);
    key.namespace = 0;
    bpf_map_update_elem(&streams, &key, &stream, BPF_ANY);
}

// Enters a socket whose beginning was not seen, unless it has ended: then it was in the table. That
// it has a cookie says nothing: others, the shim among them, ask for cookies too.
static __attribute__((noinline)) int socket_meet(struct sock *sk)
{
    uint64_t cookie = bpf_get_socket_cookie(sk);
    uint64_t slot = number_bounded(cookie & (EVENTS_SOCKETS - 1));
    if (sk->__sk_common.skc_state != STATE_CLOSE && !bpf_map_lookup_elem(&sockets, &cookie))
        connection_enter(&sk->__sk_common, cookie, 0);
    if (slot < EVENTS_SOCKETS)
        sockets_met[number_bounded(slot)] = (uint32_t)cookie;
    return 0;
}

// Whether socket_id() was asked for it. Where another socket has the same place in the table, false
// though it was.
static __always_inline bool socket_met(const struct sock *sk)
{
    uint32_t id = (uint32_t)sk->__sk_common.skc_cookie.counter;
    uint64_t slot = number_bounded(id & (EVENTS_SOCKETS - 1));
    return id && slot < EVENTS_SOCKETS && sockets_met[number_bounded(slot)] == id;
}

// Its number, by which it is in the table from here on.
static __always_inline uint32_t socket_id(struct sock *sk)
{
    if (!socket_met(sk))
        socket_meet(sk);
    return (uint32_t)sk->__sk_common.skc_cookie.counter;
}

// Nothing of it comes any more. It has given its port back by now: only its cookie says who it was.
static __always_inline int connection_ended(struct sock *sk)
{
    uint64_t cookie = (uint64_t)sk->__sk_common.skc_cookie.counter;
    struct connection *known = bpf_map_lookup_elem(&sockets, &cookie);
    if (!known || known->process == SOCKET_ENDED)
        return 0;
    known->process = SOCKET_ENDED;
    __sync_fetch_and_add(&sockets_ended, 1);
    return 0;
}

// Somebody accepts connections on that port: those that have it were not made from here.
static __always_inline int note_accepting(uint16_t port)
{
    uint64_t word = number_bounded(port / 64);
    if (word < sizeof accepting_ports / sizeof *accepting_ports && port)
        __sync_fetch_and_or(&accepting_ports[number_bounded(word)], 1ull << (port % 64));
    return 0;
}

// A connection leaves ESTABLISHED and CLOSE_WAIT as it ends: the last chance to record it.
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, struct sock *sk, int before, int after)
{
    if (after == STATE_LISTEN)
        return note_accepting(sk->__sk_common.skc_num);
    bool begins = before == STATE_SYN_RECEIVED && after == STATE_ESTABLISHED;
    bool ends = before == STATE_ESTABLISHED || before == STATE_CLOSE_WAIT;
    if (!(begins || ends) || !port_watched(sk) || sk->sk_protocol != PROTOCOL_TCP)
        return after == STATE_CLOSE ? connection_ended(sk) : 0;
    uint64_t cookie = bpf_get_socket_cookie(sk);
    if (begins || !bpf_map_lookup_elem(&sockets, &cookie))
        connection_enter(&sk->__sk_common, cookie, begins ? bpf_ktime_get_ns() : 0);
    return after == STATE_CLOSE ? connection_ended(sk) : 0;
}

// Visits the TCP sockets of the reader's network namespace, at the begin and end of the capture.
SEC("iter/tcp")
int known_sockets(struct bpf_iter__tcp *context)
{
    struct sock_common *common = context->sk_common;
    if (!common)
        return 0;
    unsigned char state = common->skc_state;
    if (state == STATE_LISTEN)
        return note_accepting(common->skc_num);
    if (state == STATE_TIME_WAIT || state == STATE_CLOSE || state == STATE_NEW_SYN_RECEIVED ||
        !port_watched((struct sock *)common))
        return 0;
    connection_enter(common, bpf_get_socket_cookie(common), 0);
    return 0;
}

#endif
