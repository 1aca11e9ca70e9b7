// SPDX-License-Identifier: MIT
//
// The vocabulary of the `events` backend, one row each; everything else derives from the rows: the
// enum, the counts, the names in capture.json, docs/formats.md, the programs' table, assertions.
//
//     EVENT(NAME, number, name, becomes, carries, means)
//         number stands in files and never changes; name is the key in capture.json; carries: what
//         id, flags and payload (a, b or text) hold.
//         becomes: what the timeline of its core makes of it. One of the BECOMES_... macros of
//         analysis/timeline/timeline.c, which does not compile with another word:
//             entry(KIND), exit(KIND)  a span of that kind (span_kinds.tbl.h) begins, ends
//             lasted(KIND, "cause")    one of that name has just ended, and took `a` ns
//             member                   of which process a thread is
//             renamed                  the span of the thread that has the core gets another name
//             blocked                  what a thread went to sleep in
//             vector                   entry(VECTOR), and the call that it interrupts
//             asked                    what a server asked another one
//             moment(LIST)             something happened to a thread, kept in that list
//             detour                   what a thread did for the kernel's memory
//             disk_done                what a disk did
//             named(LIST)              the same, with a name: the text
//             file                     which file the call is about in which a thread sleeps
//             file_lock                who tried to get a lock on a file, had it, gave it back
//             nothing                  it is about messages, or taken before
//         A span that messages wait for is a cause by its name; no other row is needed.
//     EVENT_COMPONENT(KIND, "cause")
//         every life has a component of that name at R and at A, also where no such span was met:
//         the time of the spans of that kind and name, as `lasted(KIND, "cause")` makes them.
//     EVENT_VECTOR(NAME, number, name)
//         an x86 system vector, the id of VECTOR_ENTRY and VECTOR_EXIT.
//     EVENT_QUEUE(NAME, number, name)
//         a queueing discipline by the name that `tc` knows it by, a flag of QUEUED.
//     EVENT_LOSS(NAME, number, words)
//         why the kernel throws a segment away that was on its way: NAME is its own reason
//         (SKB_DROP_REASON_NAME of enum skb_drop_reason), number stands in a SEGMENT_DROPPED, words
//         follow "dropped by". Reasons that are not listed are counted only: what was thrown away
//         had served its purpose, or was a copy (OTHERHOST).
//     EVENT_DETOUR(NAME, number, "cause")
//         what a thread can be doing for the kernel's memory, or its runtime's, a flag of DETOUR,
//         and what that is called as a cause.
//     EVENT_PROGRAM(name, GROUP, iterator, gives, stand_in)
//         see struct event_program (profiler/events/events_programs.h).
//     EVENT_SPARED(name)
//         a program that a sparing capture does without (profiler/events/events_budget.h).
//     EVENT_FREQUENT(name)
//         another that runs for each message or switch, and not while a capture rests. To attach
//         and detach one patches the kernel's code: the others stay, and record nothing.
//
// Included as often as needed, each time with the macro of interest defined before. The BPF
// compiler reads it too. `make tables` writes the rows into the documentation.
#ifndef EVENT
#define EVENT(NAME, number, name, becomes, carries, means)
#endif
#ifndef EVENT_COMPONENT
#define EVENT_COMPONENT(KIND, name)
#endif
#ifndef EVENT_VECTOR
#define EVENT_VECTOR(NAME, number, name)
#endif
#ifndef EVENT_QUEUE
#define EVENT_QUEUE(NAME, number, name)
#endif
#ifndef EVENT_LOSS
#define EVENT_LOSS(NAME, number, words)
#endif
#ifndef EVENT_DETOUR
#define EVENT_DETOUR(NAME, number, cause)
#endif
#ifndef EVENT_PROGRAM
#define EVENT_PROGRAM(name, GROUP, iterator, gives, stand_in)
#endif
#ifndef EVENT_FREQUENT
#define EVENT_FREQUENT(name)
#endif
#ifndef EVENT_SPARED
#define EVENT_SPARED(name)
#endif

// clang-format off
// Scheduler.
EVENT(SWITCH, 1, "switch", task_switch, "id: the thread that comes (0: idle); text: its name; flags: `enum switch_flags`",
      "another thread gets the core")
EVENT(WAKING, 2, "waking", waking, "id: the thread; a: the core it ran on last; b: the thread that wakes or makes it, or that was interrupted by what wakes it (0: idle); flags: `enum waking_flags`",
      "a thread is made runnable, or made")
// Interrupts: entry and exit nest properly on a core.
EVENT(IRQ_ENTRY, 3, "irq_entry", entry(IRQ), "id: irq number; text: the action's name",
      "a device interrupt begins")
EVENT(IRQ_EXIT, 4, "irq_exit", exit(IRQ), "id: irq number", "it ends")
EVENT(SOFTIRQ_ENTRY, 5, "softirq_entry", entry(SOFTIRQ), "id: vector number as in /proc/softirqs (0 HI, 1 TIMER, 2 NET_TX, ...)",
      "a softirq begins")
EVENT(SOFTIRQ_EXIT, 6, "softirq_exit", exit(SOFTIRQ), "id: vector number", "it ends")
EVENT(VECTOR_ENTRY, 7, "vector_entry", vector, "id: `enum event_vector`; of the local timer a: the system call that it interrupts (x86-64 number) and in the upper half what that call is known again by (a: 0: none), b: the thread that has the core (0: idle)", "an x86 system vector begins")
EVENT(VECTOR_EXIT, 8, "vector_exit", exit(VECTOR), "id: `enum event_vector`", "it ends")
EVENT(PAGE_FAULT, 9, "page_fault", fault, "id: thread; a: address; b: instruction; flags: `enum fault_flags`",
      "a thread touches a page that is not there")
// Messages, by socket and byte offset. Offsets count payload: neither SYN nor FIN. With the flag
// EVENT_OF_DATAGRAM the same of a datagram, by the server's port and the datagram's key.
EVENT(SEGMENT, 10, "segment", nothing, "id: socket; a: stream offset after the segment; b: skb->tstamp (CLOCK_REALTIME ns; 0: none)",
      "M(n). TCP looked at it at `time`: later than its arrival when the socket was busy")
EVENT(STAMPED, 35, "stamped", nothing, "id: socket; a: stream offset after the segment; b: the NIC's stamp (CLOCK_REALTIME ns, converted from the NIC's clock when it was written); flags: STAMPED_MERGED: of the first of several packets that were merged",
      "just before a SEGMENT, where the NIC's stamps are asked for: when it reached the NIC")
EVENT(HANDOFF, 11, "handoff", handoff, "id: socket; a: stream offset ready for the application; b: offset the application has read up to; flags: `enum handoff_flags`",
      "M(h)")
EVENT(TRANSMIT, 12, "transmit", nothing, "id: socket; a: stream offset after the last byte; b: bytes in this buffer; flags: `enum transmit_flags`",
      "bytes are handed to the device. A retransmission repeats its offset; stacked devices (VLAN, bond) report a buffer once each")
EVENT(ARRIVAL, 13, "arrival", nothing, "id: socket; a: stream offset after the segment",
      "M(n) where the link is virtual (veth, loopback): a segment as its sender put it onto this host's backlog. There skb->tstamp is set only when IP delivers it")
EVENT(DROPPED, 36, "dropped", nothing, "id: server's port; a: the datagram's key; b: the kernel's reason (low half, enum skb_drop_reason) and what it is (high half, `enum event_loss`; 0: none of these); flags: `enum dropped_flags`",
      "the kernel threw a datagram away, on its way to the server or to the client, wherever on this machine")
EVENT(SEGMENT_DROPPED, 39, "segment_dropped", nothing, "id: socket of the server; a: stream offset after the last byte, its low 32 bits; b: bytes (low half), `enum event_loss` (high half); flags: DROPPED_TO_CLIENT",
      "the kernel threw a segment of TCP away, wherever on this machine")
// Substitutes for a HANDOFF that the kernel did not deliver (see SWITCH_UNSEEN).
EVENT(TAKEN, 14, "taken", nothing, "id: socket; a: stream offset it has read up to; b: when the socket's last segment was processed (tcp_sock.tcp_clock_cache, CLOCK_MONOTONIC ns)",
      "the application took bytes whose HANDOFF was not recorded")
// The calls of whoever has the sockets, where they are asked for: of any program, as it runs.
EVENT(RECEIVED, 30, "received", nothing, "id: socket; a: stream offset it has read up to; b: thread (low half) and bytes (high half)",
      "M(a): a receive call that took bytes returns from the socket")
EVENT(SENDING, 31, "sending", nothing, "id: socket; a: stream offset written up to before; b: thread",
      "the reply: a send call has the socket and begins to take bytes")
EVENT(SENT, 32, "sent", nothing, "id: socket; a: stream offset it has written up to; b: thread (low half) and bytes (high half)",
      "a send call that took bytes returns from the socket")
EVENT(ASKED, 42, "asked", asked, "id: thread; flags: `enum asked_flags`; a: the other end's IPv4 address (low half; not with ASKED_IPV6) and port (high half); b: the socket's cookie; with ASKED_ADDRESS a and b: an IPv6 address",
      "a send or receive call returns that had to do with a TCP connection of a process that serves watched ports and whose calls are recorded here, or a connected UDP socket of any that serves them, to somebody else: not on a port at which anybody was seen to listen")
EVENT(FRAMED, 37, "framed", nothing, "id: socket; a: stream offset after the message; b: its number (low half), the same of a request and its reply, and its bytes (high half); flags: `enum framed_flags`",
      "a request or reply ends there by the protocol's own framing, where the payload may be looked at; in the call of that time. Written by the reader: nothing of the payload is")
EVENT(SPARING, 38, "sparing", nothing, "flags: `enum sparing_flags`",
      "from here on hand-offs, arrivals on virtual links, departures, beginnings of send calls and softirqs are not recorded, because there are too many messages; without SPARING_BEGINS: they are again. Written by the reader, in each segment that it is true of")
// Why a thread does not run.
EVENT(BLOCKED, 15, "blocked", blocked, "id: thread; a: the system call it is in (x86-64 number, BLOCKED_NO_CALL: none); b: its state (task_struct.__state); flags: `enum blocked_flags`; in the upper half of a: what the call is known again by; of futex in the upper halves of both: a: its time limit, us (0: none; FUTEX_LIMIT_UNKNOWN: by a clock that may be set), b: bits 3 to 34 of the address",
      "a user thread leaves its core to sleep, just before its SWITCH. Waits for sockets to become ready (epoll_wait, poll, select) are a flag of the SWITCH only; the end of a thread is not recorded")
EVENT(FILE, 34, "file", file, "id: thread; flags: `enum file_kind`; text: the file's own name, its first 16 bytes, of a terminal with its folder (pts/0); of a socket a: the other end's IPv4 address (0: none), b: its port",
      "just before a BLOCKED: what the call is about, by its first argument; just before a SWITCH that WAITS: the only socket that poll waits for. Not for connections to watched ports")
EVENT(FILE_LOCK, 43, "file_lock", file_lock, "id: thread; flags: `enum file_lock_flags`; a: the file's number (inode, low half) and the process (high half): of FILE_LOCK_REFUSED the one that has the lock (0: not known), else the thread's own; with FILE_LOCK_FILE the file's number is a digest of its path, and b of FILE_LOCK_REFUSED the thread that made it (0: not known); with FILE_LOCK_NAME text: the file's own name, its first 16 bytes, just before a FILE_LOCK_REFUSED",
      "a thread that would not wait for a lock on a file did not get it; for two seconds after that, who gets or gives back what was asked for, on whatever core")
EVENT(MIGRATE, 16, "migrate", moment(moves), "id: thread; a: the core it was on; b: the core it goes to; flags: `enum migrate_flags`",
      "the scheduler moves a thread")
EVENT(PROCESS, 17, "process", nothing, "id: thread; text: the name of its process",
      "whose a thread is that is not its process's first, before the first SWITCH to it (more than once is no harm)")
EVENT(FAULT_END, 18, "fault_end", fault_end, "id: thread; flags: `enum fault_end_flags`",
      "the thread's latest PAGE_FAULT on this core has got its page. Faults that change no page count (write to a shared page, NUMA hints), and kernels before 6.2, have none")
EVENT(UNSEEN, 19, "unseen", unseen, "id: the thread that leaves; text: its name",
      "just before a SWITCH with SWITCH_UNSEEN")
EVENT(STOLEN, 20, "stolen", lasted(STOLEN, "virtual CPU taken away"), "a: for how many ns",
      "the host of this virtual machine had the core for others since the record before, by its own account")
EVENT(WATCHED, 21, "watched", watched, "id: the thread that has the core; text: its name; flags: `enum watched_flags`",
      "from here on all that this core does is recorded; before only what concerns watched sockets and wake-ups")
EVENT(MEMBER, 22, "member", member, "id: thread; a: its process; b: the process that process was forked by",
      "which process a user thread belongs to, before the first SWITCH to it (more than once is no harm)")
EVENT(RENAMED, 33, "renamed", renamed, "id: the thread that has the core; text: its new name",
      "a thread gets another name, as one does that a shell has forked when it becomes its program")
EVENT(STOP_SENT, 40, "stop_sent", named(stops), "id: process; text: the name of the thread that sends it",
      "a signal that stops a process is sent to it or to one of its threads, from whatever core")
// What holds bytes back that the application has written.
EVENT(RETRANSMIT, 23, "retransmit", nothing, "id: socket of the server; a: stream offset after the last byte; b: bytes; flags: `enum retransmit_flags`",
      "TCP sends bytes again: the server's, or the client's where its socket is on this machine")
EVENT(HELD, 24, "held", nothing, "id: socket, or the cookie's low half of one that asks others; a: stream offset up to which TCP has sent; b: up to which the application has written; flags: `enum held_reason`",
      "a segment comes in while bytes that were written are not yet sent, and why they were not until now")
EVENT(QUEUED, 25, "queued", nothing, "id: socket; a: stream offset after the last byte; b: when TCP handed the buffer down (CLOCK_MONOTONIC ns); flags: `enum event_queue`, and `enum queued_flags`",
      "just before a TRANSMIT: a queueing discipline had the buffer for longer than 10 us")
// The kernel's other waits.
EVENT(QUOTA, 26, "quota", named(quotas), "id: thread; text: the control group's name, its first 16 bytes",
      "just before a SWITCH or WAKING that says that the thread is throttled: whose CPU quota is used up")
EVENT(LIMIT, 41, "limit", named(limits), "id: thread; text: the control group's name, its first 16 bytes",
      "within a DETOUR into GROUP_RECLAIM or HELD_BACK: which control group is at its limit of memory")
EVENT(DISK, 27, "disk", nothing, "id: the disk's number (major << 20 | minor); text: its name",
      "before the first DISK_DONE of that disk (more than once is no harm)")
EVENT(DISK_DONE, 28, "disk_done", disk_done, "id: the disk's number; a: when its driver got the request, 0: not known; b: when the request was made, 0: not known (both CLOCK_MONOTONIC ns); flags: `enum disk_operation`",
      "a disk has completed a request, or a part of it, on whatever core")
EVENT(DETOUR, 29, "detour", detour, "id: thread; a: since when (CLOCK_MONOTONIC ns); flags: `enum event_detour`",
      "a thread has done something for the kernel's memory, or, COLLECTION and WORLD, for its runtime's, or, OWN_WORK, for no request; of DIRTY and HELD_BACK it is the beginning")

EVENT_COMPONENT(STOLEN, "virtual CPU taken away")

EVENT_VECTOR(LOCAL_TIMER, 1, "local timer")
EVENT_VECTOR(RESCHEDULE, 2, "reschedule")
EVENT_VECTOR(CALL_FUNCTION, 3, "function call")
EVENT_VECTOR(CALL_FUNCTION_SINGLE, 4, "single function call")
EVENT_VECTOR(IRQ_WORK, 5, "irq work")
EVENT_VECTOR(OTHER, 6, "other")

EVENT_DETOUR(RECLAIM, 1, "memory reclaim")
EVENT_DETOUR(GROUP_RECLAIM, 2, "memory reclaim (memory limit)")
EVENT_DETOUR(COMPACTION, 3, "memory compaction")
EVENT_DETOUR(FORK, 4, "fork: copies page tables")
EVENT_DETOUR(DIRTY, 5, "writeback throttling")
EVENT_DETOUR(SWAP_IN, 6, "swap-in")
EVENT_DETOUR(COLLECTION, 7, "garbage collection")
EVENT_DETOUR(OWN_WORK, 8, "the server's own work")
EVENT_DETOUR(HELD_BACK, 9, "held back (memory.high)")
EVENT_DETOUR(WORLD, 10, "stop-the-world pause")

EVENT_QUEUE(OTHER, 0, "other")
EVENT_QUEUE(PFIFO_FAST, 1, "pfifo_fast")
EVENT_QUEUE(FQ_CODEL, 2, "fq_codel")
EVENT_QUEUE(FQ, 3, "fq")
EVENT_QUEUE(NETEM, 4, "netem")
EVENT_QUEUE(TBF, 5, "tbf")
EVENT_QUEUE(HTB, 6, "htb")
EVENT_QUEUE(CAKE, 7, "cake")
EVENT_QUEUE(CODEL, 8, "codel")
EVENT_QUEUE(SFQ, 9, "sfq")
EVENT_QUEUE(PRIO, 10, "prio")

EVENT_LOSS(NETFILTER_DROP, 1, "a firewall")
EVENT_LOSS(QDISC_DROP, 2, "a queueing discipline")
EVENT_LOSS(QDISC_OVERLIMIT, 3, "a full queueing discipline")
EVENT_LOSS(QDISC_CONGESTED, 4, "a queueing discipline that is congested")
EVENT_LOSS(CAKE_FLOOD, 5, "a full queueing discipline")
EVENT_LOSS(FQ_BAND_LIMIT, 6, "a full queueing discipline")
EVENT_LOSS(FQ_HORIZON_LIMIT, 7, "a queueing discipline")
EVENT_LOSS(FQ_FLOW_LIMIT, 8, "a full queueing discipline")
EVENT_LOSS(DUALPI2_STEP_DROP, 9, "a queueing discipline that is congested")
EVENT_LOSS(SOCKET_BACKLOG, 10, "the socket, its backlog full")
EVENT_LOSS(SOCKET_RCVBUFF, 11, "the socket, its receive buffer full")
EVENT_LOSS(PROTO_MEM, 12, "the socket, its receive buffer or TCP's memory full")
EVENT_LOSS(TCP_OFO_QUEUE_PRUNE, 13, "the socket, its receive buffer full")
EVENT_LOSS(TCP_OFO_DROP, 14, "the socket, its receive buffer full")
EVENT_LOSS(TCP_ZEROWINDOW, 15, "the socket, its window closed")
EVENT_LOSS(TCP_OVERWINDOW, 16, "the socket, its window too small")
EVENT_LOSS(SOCKET_FILTER, 17, "a filter of the socket or its control group")
EVENT_LOSS(BPF_CGROUP_EGRESS, 18, "a BPF program of the control group")
EVENT_LOSS(XDP, 19, "an XDP program")
EVENT_LOSS(TC_INGRESS, 20, "a filter of tc")
EVENT_LOSS(TC_EGRESS, 21, "a filter of tc")
EVENT_LOSS(SECURITY_HOOK, 22, "a security module")
EVENT_LOSS(XFRM_POLICY, 23, "an IPsec policy")
EVENT_LOSS(CPU_BACKLOG, 24, "a core with a full backlog")
EVENT_LOSS(FULL_RING, 25, "a device with a full ring")
EVENT_LOSS(DEV_READY, 26, "a device that was not ready")
EVENT_LOSS(NOMEM, 27, "lack of memory")
EVENT_LOSS(NEIGH_FAILED, 28, "the lack of a neighbour's address")
EVENT_LOSS(NEIGH_QUEUEFULL, 29, "a full queue for a neighbour's address")
EVENT_LOSS(IP_RPFILTER, 30, "the reverse path filter")
EVENT_LOSS(IP_INNOROUTES, 31, "lack of a route")
EVENT_LOSS(IP_OUTNOROUTES, 32, "lack of a route")
EVENT_LOSS(PKT_TOO_BIG, 33, "a device with a smaller MTU")
EVENT_LOSS(IP_CSUM, 34, "a wrong checksum")
EVENT_LOSS(TCP_CSUM, 35, "a wrong checksum")
EVENT_LOSS(SKB_CSUM, 36, "a wrong checksum")
EVENT_LOSS(TCP_RFC7323_PAWS, 37, "TCP's check of time stamps")
EVENT_LOSS(UDP_CSUM, 38, "a wrong checksum")

EVENT_PROGRAM(sched_switch, SCHEDULER, false, "which thread runs on each core", NULL)
EVENT_PROGRAM(sched_waking, SCHEDULER, false, "who woke whom: wake-up latency", NULL)
EVENT_PROGRAM(sched_migrate_task, SCHEDULER, false, "threads moved to another core", NULL)
EVENT_PROGRAM(signal_generate, SCHEDULER, false, "who stops a process with a signal", NULL)
EVENT_PROGRAM(task_rename, SCHEDULER, false, "the names of programs that have just begun", NULL)
EVENT_PROGRAM(irq_handler_entry, INTERRUPTS, false, "device interrupts", NULL)
EVENT_PROGRAM(irq_handler_exit, INTERRUPTS, false, "device interrupts", NULL)
EVENT_PROGRAM(softirq_entry, INTERRUPTS, false, "softirqs, network receive among them", NULL)
EVENT_PROGRAM(softirq_exit, INTERRUPTS, false, "softirqs, network receive among them", NULL)
EVENT_PROGRAM(local_timer_entry, INTERRUPTS, false, "timer interrupts", NULL)
EVENT_PROGRAM(local_timer_exit, INTERRUPTS, false, "timer interrupts", NULL)
EVENT_PROGRAM(reschedule_entry, INTERRUPTS, false, "reschedule interrupts", NULL)
EVENT_PROGRAM(reschedule_exit, INTERRUPTS, false, "reschedule interrupts", NULL)
EVENT_PROGRAM(call_function_entry, INTERRUPTS, false, "cross-core calls", NULL)
EVENT_PROGRAM(call_function_exit, INTERRUPTS, false, "cross-core calls", NULL)
EVENT_PROGRAM(call_function_single_entry, INTERRUPTS, false, "cross-core calls (RPS kicks)", NULL)
EVENT_PROGRAM(call_function_single_exit, INTERRUPTS, false, "cross-core calls (RPS kicks)", NULL)
EVENT_PROGRAM(irq_work_entry, INTERRUPTS, false, "deferred interrupt work", NULL)
EVENT_PROGRAM(irq_work_exit, INTERRUPTS, false, "deferred interrupt work", NULL)
EVENT_PROGRAM(page_fault_user, FAULTS, false, "page faults of programs", NULL)
EVENT_PROGRAM(page_fault_kernel, FAULTS, false, "page faults inside the kernel", NULL)
EVENT_PROGRAM(rss_stat, FAULTS, false, "how long page faults last", NULL)
EVENT_PROGRAM(mm_vmscan_direct_reclaim_begin, WAITS, false, "memory reclaim", NULL)
EVENT_PROGRAM(mm_vmscan_direct_reclaim_end, WAITS, false, "memory reclaim", NULL)
EVENT_PROGRAM(mm_vmscan_memcg_reclaim_begin, WAITS, false, "memory reclaim for a control group's limit", NULL)
EVENT_PROGRAM(mm_vmscan_memcg_reclaim_end, WAITS, false, "memory reclaim for a control group's limit", NULL)
EVENT_PROGRAM(mm_compaction_begin, WAITS, false, "memory compaction", NULL)
EVENT_PROGRAM(mm_compaction_end, WAITS, false, "memory compaction", NULL)
EVENT_PROGRAM(sched_process_fork, WAITS, false, "copying page tables in fork; who made a thread", NULL)
EVENT_PROGRAM(balance_dirty_pages, WAITS, false, "writers that wait for writeback", NULL)
EVENT_PROGRAM(posix_lock_inode, WAITS, false, "who has a lock on a file that is tried in vain (fcntl)", NULL)
EVENT_PROGRAM(flock_lock_inode, WAITS, false, "who has a lock on a file that is tried in vain (flock)", NULL)
EVENT_PROGRAM(do_filp_open_exit, WAITS, false, "who has a lock file that others try to make (O_EXCL)", "do_filp_open")
EVENT_PROGRAM(filename_create_exit, WAITS, false, "the same by mkdir, link and symlink", "filename_create")
EVENT_PROGRAM(do_unlinkat_entry, WAITS, false, "when a lock file is removed", "do_unlinkat")
EVENT_PROGRAM(do_rmdir_entry, WAITS, false, "the same of a folder", "do_rmdir")
EVENT_PROGRAM(do_renameat2_entry, WAITS, false, "when a lock file is renamed, as git does", "do_renameat2")
EVENT_PROGRAM(collection_begin, COLLECTIONS, false, "garbage collections of CPython, Node.js and Go", NULL)
EVENT_PROGRAM(collection_end, COLLECTIONS, false, "garbage collections of CPython, Node.js and Go", NULL)
EVENT_PROGRAM(world_stop_begin, COLLECTIONS, false, "when Go stops all goroutines", NULL)
EVENT_PROGRAM(world_stop_end, COLLECTIONS, false, "when Go stops all goroutines", NULL)
EVENT_PROGRAM(own_work_begin, COLLECTIONS, false, "the own work of Redis and Valkey", NULL)
EVENT_PROGRAM(own_work_end, COLLECTIONS, false, "the own work of Redis and Valkey", NULL)
EVENT_PROGRAM(block_rq_issue, WAITS, false, "when disks began with requests", NULL)
EVENT_PROGRAM(block_rq_complete, WAITS, false, "which disk a thread waited for", NULL)
EVENT_PROGRAM(tcp_probe, RECEIVE, false, "M(n): the stamp of each segment", NULL)
EVENT_PROGRAM(sk_data_ready, RECEIVE, false, "M(h): hand-off to the application", "sock_def_readable")
EVENT_PROGRAM(netif_rx, RECEIVE, false, "M(n) on virtual links", NULL)
EVENT_PROGRAM(sock_recv_length, RECEIVE, false, "M(a) without the shim; M(h) where the hand-off was not delivered", "tcp_recvmsg")
EVENT_PROGRAM(tcp_sendmsg_locked, CALLS, false, "when replies are sent, without the shim", "tcp_sendmsg")
EVENT_PROGRAM(sock_send_length, CALLS, false, "which replies were sent, without the shim", "tcp_sendmsg")
EVENT_PROGRAM(tcp_sendpage_entry, CALLS, false, "when replies are sent by sendfile and splice, without the shim", "tcp_sendpage")
EVENT_PROGRAM(tcp_sendpage_exit, CALLS, false, "which replies were sent by sendfile and splice, without the shim", "tcp_sendpage")
EVENT_PROGRAM(net_dev_start_xmit, TRANSMIT, false, "when replies reach the device", NULL)
EVENT_PROGRAM(tcp_retransmit_skb, TRANSMIT, false, "what was lost and sent again", NULL)
EVENT_PROGRAM(kfree_skb, CONNECTIONS, false, "which segments the kernel threw away, and why", NULL)
EVENT_PROGRAM(inet_sock_set_state, CONNECTIONS, false, "connections accepted from now on", NULL)
EVENT_PROGRAM(udp_netif_receive_skb, DATAGRAMS, false, "M(n) over UDP", NULL)
EVENT_PROGRAM(udp_sk_data_ready, DATAGRAMS, false, "M(h) over UDP", "sock_def_readable")
EVENT_PROGRAM(udp_netif_rx, DATAGRAMS, false, "M(n) over UDP on virtual links", NULL)
EVENT_PROGRAM(udp_net_dev_start_xmit, DATAGRAMS, false, "when replies over UDP reach the device", NULL)
EVENT_PROGRAM(udp_kfree_skb, DATAGRAMS, false, "where datagrams are lost", NULL)
EVENT_PROGRAM(known_sockets, CONNECTIONS, true, "connections older than the capture", NULL)

EVENT_SPARED(softirq_entry)
EVENT_SPARED(tcp_sendmsg_locked)
EVENT_SPARED(net_dev_start_xmit)
EVENT_SPARED(netif_rx)
EVENT_SPARED(sk_data_ready)
EVENT_SPARED(softirq_exit)

EVENT_FREQUENT(sched_switch)
EVENT_FREQUENT(sched_waking)
EVENT_FREQUENT(tcp_probe)
EVENT_FREQUENT(sock_recv_length)
EVENT_FREQUENT(sock_send_length)
EVENT_FREQUENT(udp_netif_receive_skb)
EVENT_FREQUENT(udp_sk_data_ready)
EVENT_FREQUENT(udp_netif_rx)
EVENT_FREQUENT(udp_net_dev_start_xmit)
// clang-format on

#undef EVENT
#undef EVENT_COMPONENT
#undef EVENT_VECTOR
#undef EVENT_QUEUE
#undef EVENT_LOSS
#undef EVENT_DETOUR
#undef EVENT_PROGRAM
#undef EVENT_SPARED
#undef EVENT_FREQUENT
