// SPDX-License-Identifier: MIT
//
// When the watched sockets' addresses are recorded: as they connect, and later for those whose
// connecting was not seen, because they are older than the capture or because the kernel delivered
// no event then. Part of events.bpf.c.
#ifndef PROFILER_BPF_CONNECTIONS_BPF_H
#define PROFILER_BPF_CONNECTIONS_BPF_H

#include "profiler/bpf/messages.bpf.h"

// A connection leaves ESTABLISHED and CLOSE_WAIT as it ends: the last chance to record it.
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, struct sock *sk, int before, int after)
{
    bool begins = before == STATE_SYN_RECEIVED && after == STATE_ESTABLISHED;
    bool ends = before == STATE_ESTABLISHED || before == STATE_CLOSE_WAIT;
    if (!(begins || ends) || !port_watched(sk) || sk->sk_protocol != PROTOCOL_TCP)
        return 0;
    uint64_t cookie = bpf_get_socket_cookie(sk);
    if (begins || !bpf_map_lookup_elem(&sockets, &cookie))
        connection_enter(&sk->__sk_common, cookie, begins ? bpf_ktime_get_ns() : 0);
    return 0;
}

// Visits the TCP sockets of the reader's network namespace, at the begin and end of the capture.
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
    connection_enter(common, bpf_get_socket_cookie(common), 0);
    return 0;
}

#endif
