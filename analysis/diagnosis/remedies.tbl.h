// SPDX-License-Identifier: MIT
//
// What helps against time of a category (categories.csv), where it holds for requests in general
// and not only for slow ones.
//
// REMEDY("category", expected, "what helps"): expected, whether an ordinary request has some of
// this anyway, so that only what is above its own fast end is worth a remark.
// clang-format off
#ifndef REMEDY
#define REMEDY(...)
#endif

REMEDY("CPU quota", false, "raise cpu.max of its control group, or give it no more threads than the quota has cores")
REMEDY("other programs", false, "keep other programs off the server's cores (cpuset, taskset), or give it more of them")
REMEDY("OS threads", false, "see which kernel threads they are, and move them to other cores")
REMEDY("virtual machine", false, "the host of this machine gives its core to others: ask for a dedicated one")
REMEDY("head-of-line blocking", false, "the server works on other requests meanwhile: more threads, less load, or heavy requests kept apart")
REMEDY("worker threads", false, "all workers are taken: more of them, or a shorter job for each")
REMEDY("send queue", false, "the reply lies in the server's kernel, nobody knows why: look at TCP_NODELAY, the queueing discipline and the window")
REMEDY("packet loss", false, "bytes are lost and sent again: look at the link, its queues, and who drops them (ethtool -S, nstat)")
REMEDY("receive window", false, "the client does not read its replies: a faster client, or a larger receive buffer (tcp_rmem)")
REMEDY("congestion window", false, "TCP waits for acknowledgements: keep connections open and warm, look at losses and the round trip")
REMEDY("Nagle and delayed ACK", false, "set TCP_NODELAY on the server's sockets, or write a reply with one call; no TCP_CORK, no MSG_MORE")
REMEDY("pacing", false, "TCP paces the connection: look at its congestion control, and at SO_MAX_PACING_RATE")
REMEDY("queueing discipline", false, "the device's queueing discipline holds replies back: look at it with tc -s qdisc")
REMEDY("page faults", false, "the server's memory is not there: give it more, turn swapping off, touch or lock it beforehand (mlockall)")
REMEDY("memory reclaim", false, "memory is short: give the machine more, keep more of it free (vm.min_free_kbytes, vm.watermark_scale_factor)")
REMEDY("memory limit", false, "its control group is at its memory limit and has to give pages back itself: raise memory.max, or use less")
REMEDY("swapping", false, "what it needs is in swap: give it more memory, lock it (mlockall), lower vm.swappiness or turn swapping off")
REMEDY("fork", false, "a snapshot forks the server: less memory in use, huge pages for shorter page tables, snapshots at a replica")
REMEDY("block I/O", false, "it waits for a disk with a request in its hands: sync less often (appendfsync everysec), in a thread of its own, or to a faster device")
REMEDY("locking", false, "its threads hold one another up: shorter critical sections, or fewer threads")
REMEDY("garbage collection", false, "a collection stops the threads: fewer live objects, a larger heap, a concurrent collector on cores of its own")
REMEDY("blocking calls", false, "it sleeps in a system call with a request in its hands: make the call asynchronous, or have threads for it")
REMEDY("another host or server", false, "it waits for another server with a request in its hands: look at that one")
REMEDY("other threads", false, "it waits for one of its own threads with a request in its hands: look at what that one does")
REMEDY("slow reader", false, "the other end does not take the bytes: larger buffers, or a faster reader")
REMEDY("signals", false, "somebody stops it with signals: a debugger, a profiler, or job control")
REMEDY("timers", false, "it waits for a time to pass, or timers run on its core: shorter sleeps, or an event instead")
REMEDY("client", true, "the client is late by itself: give it cores and threads of its own before judging the server")
REMEDY("client's cores", true, "keep other programs and interrupts off the cores of the load, or give it cores of its own")
REMEDY("client's threads", true, "one thread of the load has more to do than it can: more threads, or agents")
REMEDY("full connections", false, "all connections of the load wait for replies: what the server does is the cause; more connections, or a greater depth, would show it")
REMEDY("connections", false, "connections are not taken as fast as they come: a longer queue (the server's backlog and net.core.somaxconn), more threads that accept, connections that are kept open")
REMEDY("network", true, "the time is between the hosts: look at the link, its queues and its interrupt moderation")
REMEDY("NIC delay", true, "the card's interrupt comes late: less interrupt moderation, or shallower idle states")
REMEDY("scheduling", true, "threads are woken late: pin them, or forbid deep idle states")
REMEDY("receive processing", true, "receive processing of the kernel has the core: spread it over cores (RSS, RPS)")
REMEDY("application", true, "the time is in the server's own code: profile it (capture: samples)")
REMEDY("server stack", true, "the time is in the server's send call: write a reply with one call")
// clang-format on

#undef REMEDY
