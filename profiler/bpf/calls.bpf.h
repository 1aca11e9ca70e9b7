// SPDX-License-Identifier: MIT
//
// The calls of whoever has the sockets: what a program received and sent, as the kernel sees it.
// Part of events.bpf.c.
#ifndef PROFILER_BPF_CALLS_BPF_H
#define PROFILER_BPF_CALLS_BPF_H

#include "profiler/bpf/messages.bpf.h"
#include "profiler/bpf/payload.bpf.h"

// Marks the thread as one that has watched sockets, and has its core recorded.
static __always_inline void follow_server(uint32_t core, uint32_t thread)
{
    uint64_t slot = number_bounded(thread & (EVENTS_SERVERS - 1));
    if (slot < EVENTS_SERVERS && servers[number_bounded(slot)] != thread)
        servers[number_bounded(slot)] = thread;
    core_follow(core);
}

static __always_inline uint32_t thread_here(void)
{
    return (uint32_t)bpf_get_current_pid_tgid();
}

// Whether the calls of the process that runs here are to be recorded.
static __always_inline bool calls_wanted(void)
{
    uint32_t process = (uint32_t)(bpf_get_current_pid_tgid() >> 32);
    uint64_t slot = number_bounded(process & (EVENTS_SERVERS - 1));
    return records_calls &&
           (slot >= EVENTS_SERVERS || left_processes[number_bounded(slot)] != process);
}

static __always_inline void note_serving(void)
{
    uint32_t process = (uint32_t)(bpf_get_current_pid_tgid() >> 32);
    uint64_t slot = number_bounded(process & (EVENTS_SERVERS - 1));
    if (slot < EVENTS_SERVERS && serving_processes[number_bounded(slot)] != process)
        serving_processes[number_bounded(slot)] = process;
}

// Whether the process that runs here serves watched sockets, and this is a connection of its own to
// somebody else: what it accepted has the number of a port at which somebody listens. A UDP socket
// that is connected, as resolvers' are, is one, too: whoever else records the calls leaves it out.
static __always_inline bool asks_others(const struct sock *sk)
{
    uint32_t process = (uint32_t)(bpf_get_current_pid_tgid() >> 32);
    uint64_t slot = number_bounded(process & (EVENTS_SERVERS - 1));
    return slot < EVENTS_SERVERS && serving_processes[number_bounded(slot)] == process &&
           !bit_of_port(accepting_ports, sk->__sk_common.skc_num) &&
           (sk->__sk_common.skc_family == FAMILY_INET ||
            sk->__sk_common.skc_family == FAMILY_INET6) &&
           sk->__sk_common.skc_dport &&
           (sk->sk_protocol == PROTOCOL_TCP ? calls_wanted()
                                            : sk->sk_protocol == PROTOCOL_UDP && records_calls);
}

// Records the other end's IPv6 address. Returns the flag that says so; 0: it has one of IPv4.
static __always_inline uint8_t record_asked_address(struct sock *sk)
{
    if (sk->__sk_common.skc_family != FAMILY_INET6 ||
        !bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
        return 0;
    uint64_t address[2] = {};
    bpf_core_read(address, sizeof address, &sk->__sk_common.skc_v6_daddr);
    if (!address[0] && (uint32_t)address[1] == bpf_htonl(0xffff))
        return 0;
    record_message(EVENT_ASKED, ASKED_ADDRESS, thread_here(), address[0], address[1]);
    return ASKED_IPV6;
}

// It asked somebody on such a connection, or took the answer.
static __attribute__((noinline)) int record_asked(struct sock *sk, int bytes, uint8_t flags)
{
    if (bytes <= 0)
        return 0;
    uint64_t port = bpf_ntohs(sk->__sk_common.skc_dport);
    flags |= record_asked_address(sk);
    return record_message(EVENT_ASKED, flags, thread_here(), port << 32 | sk->__sk_common.skc_daddr,
                          bpf_get_socket_cookie(sk));
}

static __always_inline uint64_t call_detail(uint32_t thread, int bytes)
{
    return (uint64_t)(uint32_t)bytes << 32 | thread;
}

// The offset up to which bytes were taken from the socket. Its lock is not held any more: a segment
// that is processed meanwhile would shift the offset, so rcv_nxt is looked at twice.
static __always_inline uint64_t taken_offset(const struct tcp_sock *tcp)
{
    uint32_t next = 0, again = 0;
    uint64_t received = 0;
    for (int tries = 0; tries < 2; tries++) {
        next = *(volatile uint32_t *)&tcp->rcv_nxt;
        received = *(volatile uint64_t *)&tcp->bytes_received;
        again = *(volatile uint32_t *)&tcp->rcv_nxt;
        if (again == next)
            break;
    }
    return received - (next - tcp->copied_seq);
}

// Bytes were taken from a socket by a receive call, which returns now. TCP's note of when it last
// processed a segment of the socket is only needed where the hand-off of these bytes was not
// recorded, because the kernel delivered no event.
static __always_inline int record_received(struct sock *sk, int bytes)
{
    if (!port_watched(sk))
        return asks_others(sk) ? record_asked(sk, bytes, ASKED_ANSWERED) : 0;
    if (bytes <= 0)
        return 0;
    uint32_t thread = thread_here();
    follow_server(bpf_get_smp_processor_id(), thread);
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp)
        return 0;
    uint64_t taken = taken_offset(tcp);
    uint32_t id = socket_id(sk);
    if (bpf_core_field_exists(tcp->tcp_clock_cache) && !was_handed(id, taken))
        record_message(EVENT_TAKEN, 0, id, taken, tcp->tcp_clock_cache);
    note_serving();
    if (!calls_wanted())
        return 0;
    if (looks_at_payload)
        payload_note(id, taken, (uint32_t)bytes, false);
    return record_message(EVENT_RECEIVED, 0, id, taken, call_detail(thread, bytes));
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int bytes, int flags)
{
    return flags & MSG_PEEK ? 0 : record_received(sk, bytes);
}

// What that tracepoint tells of TCP since Linux 6.3, for older kernels (from 5.19: its arguments).
SEC("fexit/tcp_recvmsg")
int BPF_PROG(sock_recv_length_stand_in, struct sock *sk, void *message, uint64_t length, int flags,
             int *address_length, int bytes)
{
    return flags & MSG_PEEK ? 0 : record_received(sk, bytes);
}

// A send call has the socket and begins to take the application's bytes. Where it takes them in
// several rounds, only the first is recorded.
static __always_inline int record_sending(const struct sock *sk)
{
    if (!port_watched(sk) || !calls_wanted())
        return 0;
    uint32_t thread = thread_here();
    uint64_t slot = number_bounded(thread & (EVENTS_SERVERS - 1));
    if (slot >= EVENTS_SERVERS || senders[number_bounded(slot)] == thread)
        return 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)sk);
    if (!tcp)
        return 0;
    senders[number_bounded(slot)] = thread;
    return record_message(EVENT_SENDING, 0, (uint32_t)sk->__sk_common.skc_cookie.counter,
                          sent_offset(sk, tcp->write_seq), thread);
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tcp_sendmsg_locked, const struct sock *sk)
{
    return record_sending(sk);
}

// The function around the one that contains that tracepoint since Linux 6.16, for older kernels.
SEC("fentry/tcp_sendmsg")
int BPF_PROG(tcp_sendmsg_locked_stand_in, struct sock *sk)
{
    return record_sending(sk);
}

// A send call is done with the socket and returns.
static __always_inline int record_sent(struct sock *sk, int bytes)
{
    if (!port_watched(sk))
        return asks_others(sk) ? record_asked(sk, bytes, 0) : 0;
    if (!calls_wanted())
        return 0;
    uint32_t thread = thread_here();
    uint64_t slot = number_bounded(thread & (EVENTS_SERVERS - 1));
    if (slot < EVENTS_SERVERS && senders[number_bounded(slot)] == thread)
        senders[number_bounded(slot)] = 0;
    struct tcp_sock *tcp = bytes > 0 ? bpf_skc_to_tcp_sock(sk) : NULL;
    if (!tcp)
        return 0;
    follow_server(bpf_get_smp_processor_id(), thread);
    uint32_t id = socket_id(sk);
    uint64_t written = sent_offset(sk, tcp->write_seq);
    if (looks_at_payload)
        payload_note(id, written, (uint32_t)bytes, true);
    return record_message(EVENT_SENT, 0, id, written, call_detail(thread, bytes));
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sock_send_length, struct sock *sk, int bytes, int flags)
{
    return record_sent(sk, bytes);
}

// What that tracepoint tells of TCP since Linux 6.3, for older kernels.
SEC("fexit/tcp_sendmsg")
int BPF_PROG(sock_send_length_stand_in, struct sock *sk, void *message, uint64_t length, int bytes)
{
    return record_sent(sk, bytes);
}

// By sendfile and splice, which send pages until Linux 6.5, and call nothing of the above.
SEC("fentry/tcp_sendpage")
int BPF_PROG(tcp_sendpage_entry, struct sock *sk)
{
    return record_sending(sk);
}

SEC("fexit/tcp_sendpage")
int BPF_PROG(tcp_sendpage_exit, struct sock *sk, void *page, int offset, uint64_t length, int flags,
             int bytes)
{
    return record_sent(sk, bytes);
}

#endif
