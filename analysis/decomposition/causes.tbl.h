// SPDX-License-Identifier: MIT
//
// What can make a message slow, one row each; included with the macro of interest defined before.
//
//     CAUSE_CLASS(NAME, name, means)
//         of what kind a cause is; name stands in summary.json and run.db.
//     COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means)
//         a component of a life that is always there (components.h); others appear with the first
//         context, wait or function of their name. explains: it counts towards coverage;
//         functions: its time is divided among functions where the backend sees them.
//     COMPONENT_PART(NAME, WHOLE, part)
//         the component is a part of another one, which is the cause (component.whole): what that
//         was about, in words.
#ifndef CAUSE_CLASS
#define CAUSE_CLASS(NAME, name, means)
#endif
#ifndef COMPONENT
#define COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means)
#endif
#ifndef COMPONENT_PART
#define COMPONENT_PART(NAME, WHOLE, part)
#endif

// clang-format off
CAUSE_CLASS(CONTEXT, "context", "a task, interrupt or softirq that is not part of a normal life (phase 1)")
CAUSE_CLASS(GAP, "gap", "the core idled, or the thread slept: wake-up latency, interrupt delivery (phase 2)")
CAUSE_CLASS(BLOCKING, "blocking", "other messages ahead: head-of-line blocking, queueing (phase 4)")
CAUSE_CLASS(STAGE, "stage", "a stage without spans was longer: client, network")
CAUSE_CLASS(TRANSPORT, "transport", "TCP or a queueing discipline held bytes back: lost and sent again, Nagle, windows, pacing")
CAUSE_CLASS(UNEXPLAINED, "unexplained", "longer, in an expected context: located, not explained")
CAUSE_CLASS(FUNCTION, "function", "a function that is slower, called more often or unexpected (phase 3), or that spins for a lock")

COMPONENT(CLIENT_QUEUE, "client queue", CLIENT, STAGE, true, false, "client", "from the intended time to the send call")
COMPONENT(CLIENT_STACK, "client stack", CLIENT, STAGE, true, false, "client", "from the send call to the client's device")
COMPONENT(NETWORK_TO_SERVER, "network to server", NETWORK, STAGE, true, false, "network", "from the client's device to M(n)")
COMPONENT(NETWORK_TO_CLIENT, "network to client", NETWORK, STAGE, true, false, "network", "from the server's device to the client's")
COMPONENT(NETWORK_BOTH_WAYS, "network (both ways)", NETWORK, STAGE, true, false, "network", "both of these, where two hosts' clocks are not related closely enough")
COMPONENT(WAY_IN, "way in, undivided", NETWORK, UNEXPLAINED, false, false, "network or stack", "from the client's device to M(a), where nothing takes M(n) and M(h): the network, the server's stack and the wait for its thread")
COMPONENT(WAY_BACK, "way back, undivided", NETWORK, UNEXPLAINED, false, false, "network or stack", "from the reply to the client's device, where nothing takes server TX: the server's stack and the network")
COMPONENT(BOTH_WAYS, "both ways, undivided", NETWORK, UNEXPLAINED, false, false, "network or stack", "both of these, where two hosts' clocks are not related closely enough")
COMPONENT(CLIENT_RECEIVE, "client receive", CLIENT, STAGE, true, false, "client", "from the client's device to the receive call's return")
COMPONENT(CLIENT_OTHERS, "client busy with other requests", CLIENT, BLOCKING, true, false, "client's threads", "the load's thread sends or reads for other requests meanwhile")
COMPONENT(CLIENT_FULL, "every connection full", CLIENT, BLOCKING, true, false, "full connections", "no connection of the load's thread has room for the request: it waits for a reply")
COMPONENT(CLIENT_OPENING, "connection being opened", CLIENT, BLOCKING, true, false, "connections", "the connection that then takes the request is being opened again: the server does not take it, or what opens it is lost")
COMPONENT(CLIENT_WAKE_UP, "client wake-up latency", CLIENT, GAP, true, false, "client's cores", "the load's thread is to run, its core idles")
COMPONENT(CLIENT_ASLEEP, "client asleep", CLIENT, GAP, true, false, "client", "the load's thread sleeps: its wake-up is late")
COMPONENT(CLIENT_TIMER, "client's timer late", CLIENT, GAP, true, false, "client's timers", "the load's thread sleeps though a request is due: its timer, or what the machine runs on, is late")
COMPONENT(CLIENT_THROTTLED, "throttled (CPU quota)", CLIENT, GAP, true, false, "client's cores", "the load's thread could run, but its control group's quota is used up")
COMPONENT(INTERRUPT_DELIVERY, "interrupt delivery", R, GAP, true, false, "NIC delay", "after M(n) there is no receive processing yet, and the core idles or has not been told by the NIC")
COMPONENT(IDLE_R, "idle gap", R, GAP, false, false, "idle", "the core idles between pieces of receive processing")
COMPONENT(BLOCKING_R, "head-of-line blocking", R, BLOCKING, true, false, "head-of-line blocking", "the core processes other packets or runs the application before the hand-off")
COMPONENT(UNKNOWN_R, "lost records", R, UNEXPLAINED, false, false, "lost records", "nobody knows what the core did")
COMPONENT(WAKE_UP, "wake-up latency", A, GAP, true, false, "scheduling", "the thread was woken, and its core idles or takes a moment to make way")
COMPONENT(THROTTLED, "throttled (CPU quota)", A, GAP, true, false, "CPU quota", "the thread could run, but its control group's quota is used up")
COMPONENT(FREE_WORKER, "waiting for a free worker", A, BLOCKING, true, false, "worker threads", "the thread that received the message has turned to something else, the one that replies has not turned to it")
COMPONENT(UNACCEPTED, "waiting to be accepted", A, BLOCKING, true, false, "unaccepted connections", "the connection lies in the server's queue, and the thread that will accept it sleeps for other sockets")
COMPONENT(UNKNOWN_WAIT, "unknown wait", A, UNEXPLAINED, false, false, "unknown", "the thread sleeps and nobody knows what for")
COMPONENT(IDLE_A, "idle gap", A, GAP, false, false, "idle", "the core idles and nobody knows what the thread did")
COMPONENT(BLOCKING_A, "head-of-line blocking", A, BLOCKING, true, false, "head-of-line blocking", "the message's thread works for requests of other connections")
COMPONENT(BLOCKING_CONNECTION_A, "head-of-line blocking (same connection)", A, BLOCKING, true, false, "head-of-line blocking", "the message's thread works for requests of the same connection")
COMPONENT(BLOCKING_FAULTS_A, "head-of-line blocking: page faults", A, BLOCKING, true, false, "page faults", "page faults of the message's thread while it works for other requests")
COMPONENT(BLOCKING_CONNECTION_FAULTS_A, "head-of-line blocking (same connection): page faults", A, BLOCKING, true, false, "page faults", "page faults of the message's thread while it works for other requests of the same connection")
COMPONENT(BLOCKING_THREAD_A, "head-of-line blocking (other thread)", A, BLOCKING, true, false, "server's cores", "the core runs another thread of the application")
COMPONENT(OWN_WORK, "the server's own work", A, CONTEXT, true, true, "the server's own work", "the message's thread works far longer than usual after a reply, or before it receives a request")
COMPONENT(PAGE_FAULTS, "page faults", A, CONTEXT, true, false, "page faults", "page faults of the message's thread while it works for the message")
COMPONENT(PAGE_COPIES, "page faults (copy on write after a fork)", A, CONTEXT, true, false, "fork", "page faults of the message's thread, whoever it works for, writing to pages that its process shares with one that it forked: each is copied")
COMPONENT(MIGRATION, "scheduler migration", A, GAP, true, false, "scheduling", "the thread was moved to a core that is busy, while the one it left idles or was taken from it")
COMPONENT(APPLICATION, "application time", A, UNEXPLAINED, false, true, "application", "the message's thread works for the message")
COMPONENT(SERVER_STACK, "server stack", A, UNEXPLAINED, false, true, "server stack", "the message's thread, from its send call to the device")
COMPONENT(SEND_QUEUE, "send queue", A, GAP, true, false, "send queue", "the send call has returned, TCP or the queueing discipline holds the reply back")
COMPONENT(TIMEOUT_TO_SERVER, "sent again to the server (timeout)", NETWORK, TRANSPORT, true, false, "packet loss", "request bytes were lost, its own or earlier ones of its connection, until TCP's timer expired")
COMPONENT(FAST_TO_SERVER, "sent again to the server (fast retransmit)", NETWORK, TRANSPORT, true, false, "packet loss", "the same, until later bytes were acknowledged")
COMPONENT(PROBE_TO_SERVER, "sent again to the server (loss probe)", NETWORK, TRANSPORT, true, false, "packet loss", "the same, until TCP probed for a lost tail")
COMPONENT(LOCAL_TO_SERVER, "sent again to the server (local drop)", NETWORK, TRANSPORT, true, false, "packet loss", "the client's own machine threw the request away before it left, and TCP had no reason to try again sooner")
COMPONENT(TIMEOUT_TO_CLIENT, "sent again to the client (timeout)", NETWORK, TRANSPORT, true, false, "packet loss", "reply bytes were lost, its own or earlier ones of its connection, until TCP's timer expired")
COMPONENT(FAST_TO_CLIENT, "sent again to the client (fast retransmit)", NETWORK, TRANSPORT, true, false, "packet loss", "the same, until later bytes were acknowledged")
COMPONENT(PROBE_TO_CLIENT, "sent again to the client (loss probe)", NETWORK, TRANSPORT, true, false, "packet loss", "the same, until TCP probed for a lost tail")
COMPONENT(LOCAL_TO_CLIENT, "sent again to the client (local drop)", NETWORK, TRANSPORT, true, false, "packet loss", "the server's own machine threw the reply away before it left, and TCP had no reason to try again sooner")
COMPONENT(WINDOW, "receive window", A, TRANSPORT, true, false, "receive window", "the reply waits in the send queue: the client does not read")
COMPONENT(CONGESTION, "congestion window", A, TRANSPORT, true, false, "congestion window", "the reply waits in the send queue for what is on its way to be acknowledged")
COMPONENT(NAGLE, "Nagle's algorithm", A, TRANSPORT, true, false, "Nagle and delayed ACK", "the reply's tail waits in the send queue until what it sent before is acknowledged")
COMPONENT(CORK, "corked", A, TRANSPORT, true, false, "Nagle and delayed ACK", "the reply's tail waits for more, as the application told TCP: TCP_CORK, MSG_MORE")
COMPONENT(PACING, "pacing", A, TRANSPORT, true, false, "pacing", "the reply waits in the send queue for its connection's pacing rate")
COMPONENT(UNKNOWN_A, "lost records", A, UNEXPLAINED, false, false, "lost records", "nobody knows what the core did")
COMPONENT(OVERHEAD_R, "taillight overhead", R, CONTEXT, false, false, "Taillight itself", "what recording events cost on the core that receives")
COMPONENT(OVERHEAD_A, "taillight overhead", A, CONTEXT, false, false, "Taillight itself", "what recording events and calls cost on the core that the thread runs on")

COMPONENT_PART(BLOCKING_FAULTS_A, BLOCKING_A, "page faults")
COMPONENT_PART(BLOCKING_CONNECTION_FAULTS_A, BLOCKING_CONNECTION_A, "page faults")
// clang-format on

#undef CAUSE_CLASS
#undef COMPONENT
#undef COMPONENT_PART
