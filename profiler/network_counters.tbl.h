// SPDX-License-Identifier: MIT
//
// What the kernel counts of its network when something goes wrong, one row each; included with the
// macro defined before.
//
//     NETWORK_COUNTER(name, GROUP, means)
//         as /proc/net/snmp (Tcp) or /proc/net/netstat (TcpExt) calls it; means: what was counted,
//         in words that a number stands before.

// clang-format off
NETWORK_COUNTER(ListenOverflows, TcpExt, "connections found the accept queue full")
NETWORK_COUNTER(TCPReqQFullDrop, TcpExt, "connection requests found the SYN queue full")
NETWORK_COUNTER(TCPSynRetrans, TcpExt, "connection requests or answers to them sent again")
NETWORK_COUNTER(TCPBacklogDrop, TcpExt, "segments dropped, a busy socket's backlog was full")
NETWORK_COUNTER(TCPRcvQDrop, TcpExt, "segments dropped, a receive queue was full")
NETWORK_COUNTER(TCPZeroWindowDrop, TcpExt, "segments dropped, sent against a closed window")
NETWORK_COUNTER(TCPToZeroWindowAdv, TcpExt, "times that the server closed its receive window")
NETWORK_COUNTER(PruneCalled, TcpExt, "receive queues pruned for want of memory")
NETWORK_COUNTER(TCPMemoryPressures, TcpExt, "times that TCP came under memory pressure")
NETWORK_COUNTER(TCPTimeouts, TcpExt, "retransmission timeouts")
NETWORK_COUNTER(RetransSegs, Tcp, "segments sent again")
NETWORK_COUNTER(TCPSpuriousRTOs, TcpExt, "needless retransmission timeouts")
NETWORK_COUNTER(TCPOFOQueue, TcpExt, "segments received out of order")
NETWORK_COUNTER(InErrs, Tcp, "segments received damaged")
// clang-format on

#undef NETWORK_COUNTER
