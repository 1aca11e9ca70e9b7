// SPDX-License-Identifier: MIT
//
// What the kernel counts of its network when something goes wrong, one row each; included with the
// macro defined before.
//
//     NETWORK_COUNTER(name, GROUP, one, means)
//         as /proc/net/snmp (Tcp, Udp) or /proc/net/netstat (TcpExt) calls it; means: what was
//         counted, in words that a number stands before, one: those for 1.

// clang-format off
NETWORK_COUNTER(ListenOverflows, TcpExt, "connection found the accept queue full (the server's backlog, net.core.somaxconn)", "connections found the accept queue full (the server's backlog, net.core.somaxconn)")
NETWORK_COUNTER(TCPReqQFullDrop, TcpExt, "connection request found the SYN queue full (net.ipv4.tcp_max_syn_backlog)", "connection requests found the SYN queue full (net.ipv4.tcp_max_syn_backlog)")
NETWORK_COUNTER(TCPSynRetrans, TcpExt, "connection request or answer to one sent again", "connection requests or answers to them sent again")
NETWORK_COUNTER(TCPBacklogDrop, TcpExt, "segment dropped, a busy socket's backlog was full", "segments dropped, a busy socket's backlog was full")
NETWORK_COUNTER(TCPRcvQDrop, TcpExt, "segment dropped, a receive queue was full", "segments dropped, a receive queue was full")
NETWORK_COUNTER(TCPZeroWindowDrop, TcpExt, "segment dropped, sent against a closed window", "segments dropped, sent against a closed window")
NETWORK_COUNTER(TCPToZeroWindowAdv, TcpExt, "time that the server closed its receive window", "times that the server closed its receive window")
NETWORK_COUNTER(PruneCalled, TcpExt, "receive queue pruned for want of memory", "receive queues pruned for want of memory")
NETWORK_COUNTER(TCPMemoryPressures, TcpExt, "time that TCP came under memory pressure", "times that TCP came under memory pressure")
NETWORK_COUNTER(TCPTimeouts, TcpExt, "retransmission timeout", "retransmission timeouts")
NETWORK_COUNTER(RetransSegs, Tcp, "segment sent again", "segments sent again")
NETWORK_COUNTER(TCPSpuriousRTOs, TcpExt, "needless retransmission timeout", "needless retransmission timeouts")
NETWORK_COUNTER(TCPOFOQueue, TcpExt, "segment received out of order", "segments received out of order")
NETWORK_COUNTER(InErrs, Tcp, "segment received damaged", "segments received damaged")
NETWORK_COUNTER(RcvbufErrors, Udp, "datagram dropped, a socket's receive buffer was full (net.core.rmem_default)", "datagrams dropped, a socket's receive buffer was full (net.core.rmem_default)")
// clang-format on

#undef NETWORK_COUNTER
