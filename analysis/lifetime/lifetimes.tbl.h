// SPDX-License-Identifier: MIT
//
// The words for a request's life, one row each; included with the macro of interest defined before.
//
//     STAMP(NAME, name, stage, ROLE, means)
//         in order; stage: what lies between the stamp before and this one, and whose work that is.
//     LIFETIME_STATE(NAME, words, means)
//         why a request has no whole life; the words are what users and JSON see.
//     HOLDUP(NAME, means)
//         why TCP, or what is below it, held bytes of a message back (holdups.h).
//     DATAGRAM_LOSS(NAME, "key", words, means)
//         where a request over UDP that was not answered was last seen (datagram_losses.h); the key
//         is that of summary.json, the words follow a number.
//     JOIN_COUNT(name, means)
//         what the join counts (struct join_counts), by its key in summary.json.
#ifndef STAMP
#define STAMP(NAME, name, stage, ROLE, means)
#endif
#ifndef LIFETIME_STATE
#define LIFETIME_STATE(NAME, words, means)
#endif
#ifndef HOLDUP
#define HOLDUP(NAME, means)
#endif
#ifndef DATAGRAM_LOSS
#define DATAGRAM_LOSS(NAME, key, words, means)
#endif
#ifndef JOIN_COUNT
#define JOIN_COUNT(name, means)
#endif

// clang-format off
STAMP(INTENDED, "intended", "", CLIENT, "the schedule wanted it sent; ends no stage")
STAMP(SEND, "send", "client queue", CLIENT, "the client called send")
STAMP(CLIENT_TX, "client TX", "client stack", CLIENT, "it left the client's stack (kernel or NIC)")
STAMP(NIC, "M(n)", "network to server", NETWORK, "the segment with its last byte reached the server")
STAMP(HANDOFF, "M(h)", "R core", R, "the kernel handed it to the application's socket")
STAMP(APPLICATION, "M(a)", "A core", A, "a receive call returned its last byte")
STAMP(REPLY, "reply", "application", A, "the application called send with the reply's last byte")
STAMP(SERVER_TX, "server TX", "server stack", A, "that byte left the server's stack")
STAMP(CLIENT_RX, "client RX", "network to client", NETWORK, "it reached the client's stack")
STAMP(REPLY_READ, "reply read", "client receive", CLIENT, "the client's receive call returned it")

LIFETIME_STATE(WHOLE, "whole", "all of intended, send, M(n), M(h), M(a), reply, reply read, but for M(n) and M(h) that nothing could take")
LIFETIME_STATE(UNANSWERED, "unanswered", "never sent, timed out or lost: no life, latency +infinity")
LIFETIME_STATE(NO_CONNECTION, "connection unknown to the server's logs", "neither the kernel's table nor the shim's has it")
LIFETIME_STATE(NO_SOCKET, "connection unknown to the capture of kernel events", "there is one, which lacks this connection: the stamps of the kernel are missing therefore")
LIFETIME_STATE(NO_CALLS, "connection unknown to the record of socket calls", "likewise: the application's stamps are missing therefore")
LIFETIME_STATE(NO_NIC, "no M(n) stamp", "joined, but this stamp is missing")
LIFETIME_STATE(NO_HANDOFF, "no M(h) stamp", "likewise")
LIFETIME_STATE(NO_APPLICATION, "no M(a) stamp", "likewise")
LIFETIME_STATE(NO_REPLY, "no reply stamp", "likewise")

HOLDUP(TIMEOUT_TO_SERVER, "lost on the way to the server, sent again when the timer expired")
HOLDUP(FAST_TO_SERVER, "the same, sent again when later bytes were acknowledged")
HOLDUP(PROBE_TO_SERVER, "the same, sent again by a tail loss probe")
HOLDUP(LOCAL_TO_SERVER, "thrown away on the client's own machine before it left, sent when TCP next tried")
HOLDUP(TIMEOUT_TO_CLIENT, "lost on the way to the client, sent again when the timer expired")
HOLDUP(FAST_TO_CLIENT, "the same, sent again when later bytes were acknowledged")
HOLDUP(PROBE_TO_CLIENT, "the same, sent again by a tail loss probe")
HOLDUP(LOCAL_TO_CLIENT, "thrown away on the server's own machine before it left, sent when TCP next tried")
HOLDUP(WINDOW, "the client's receive window is full")
HOLDUP(CONGESTION, "the congestion window is full")
HOLDUP(NAGLE, "less than a segment waits for an acknowledgement")
HOLDUP(CORK, "less than a segment waits for more")
HOLDUP(PACING, "the connection's pacing rate")
HOLDUP(QUEUE, "a queueing discipline has it")
HOLDUP(CLIENT_QUEUE, "one of the client's machine has it")

DATAGRAM_LOSS(TO_SERVER, "to_server", "lost on the way to the server", "no record of the request on the server, or the kernel threw it away before")
DATAGRAM_LOSS(SERVER_SOCKET, "server_socket", "lost in the server's socket, whose receive buffer was full", "the kernel threw the request away there")
DATAGRAM_LOSS(SERVER_KERNEL, "server_kernel", "lost in the server's kernel", "the request has an M(n), and no M(h)")
DATAGRAM_LOSS(SERVER, "server", "not answered by the server", "it was handed to the server, which sent no reply")
DATAGRAM_LOSS(TOO_LATE, "too_late", "answered when nobody waited for it any more", "the reply was sent after the load's `timeout`, as far as the experiment says it")
DATAGRAM_LOSS(READ_LATE, "read_late", "answered, but read when nobody waited for it any more", "the client read the reply after the load's `timeout`, or at its end; of a load longer than `--memory` holds only as far as the request's sample was still there")
DATAGRAM_LOSS(TO_CLIENT, "to_client", "lost on the way to the client", "the reply was sent")
DATAGRAM_LOSS(CLIENT_SOCKET, "client_socket", "lost in the client's socket, whose receive buffer was full", "the kernel threw the reply away there; known where client and server are on one machine")
DATAGRAM_LOSS(UNKNOWN, "unknown", "lost, nobody knows where", "there is no capture of kernel events")

JOIN_COUNT(connections, "the client's connections that carried requests")
JOIN_COUNT(connections_without_socket, "of these, unknown to the kernel's table")
JOIN_COUNT(connections_without_calls, "of these, without any socket call on record, by the shim or the kernel")
JOIN_COUNT(unknown_connections, "samples whose connection the client's own table lacks")
JOIN_COUNT(foreign_datagrams, "records of datagrams that no connection of the load sent: others use the port")
JOIN_COUNT(segments_repeated, "segments that brought nothing new: retransmits, reordering")
// Requests whose own record is lost, which the first one that covers them shows: it is of later
// bytes only. They do without that stamp.
JOIN_COUNT(segments_unseen, "requests whose own segment's record is lost: the first that covers them is of later bytes")
JOIN_COUNT(handoffs_unseen, "the same of hand-offs")
JOIN_COUNT(transmits_unseen, "the same of transmits")
JOIN_COUNT(calls_unseen, "the same of socket calls")
JOIN_COUNT(segments_recovered, "M(n) stamps that were missing and had from another record")
JOIN_COUNT(handoffs_recovered, "the same of M(h)")
JOIN_COUNT(spared, "M(h) taken from the segment's record, and the send call's end for the reply and server TX: the capture did without hand-offs, departures and softirqs then, because there were so many requests")
JOIN_COUNT(segments_without_stamp, "M(n) taken from the event's time, not the skb's stamp")
JOIN_COUNT(without_arrivals, "whole without M(n) and M(h): the server's network stack is its own, no kernel events were recorded, or the processor's trace, which stands in for these, does not show whose a delivery was")
JOIN_COUNT(without_handoffs, "the same with M(n), without M(h)")
JOIN_COUNT(without_departures, "whole without server TX, for the same reasons")
JOIN_COUNT(nic_stamps, "M(n) stamps by the NIC's own clock")
JOIN_COUNT(without_nic_stamp, "M(n) stamps by the kernel's, though the NIC's were asked for: it took none, or of an earlier packet only")
JOIN_COUNT(wrong_nic_stamps, "the same: the NIC's is later than the kernel's, or a second earlier")
JOIN_COUNT(coalesced_rx, "client RX stamps that are an upper bound")
JOIN_COUNT(impossible_stamps, "beyond any host's uptime: damaged records, left out")
JOIN_COUNT(resent_to_server, "requests that were sent again, or were behind bytes that were")
JOIN_COUNT(resent_to_client, "replies that were sent again, or were behind bytes that were")
JOIN_COUNT(held_back, "replies that TCP held back after the send call: windows, Nagle, pacing")
JOIN_COUNT(queued, "replies that a queueing discipline had for longer than 10 us")
JOIN_COUNT(queued_at_client, "requests that one of the client's machine had for as long, where that is the server's too")
// clang-format on

#undef STAMP
#undef LIFETIME_STATE
#undef HOLDUP
#undef DATAGRAM_LOSS
#undef JOIN_COUNT
