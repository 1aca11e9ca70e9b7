// SPDX-License-Identifier: MIT
//
// What time of a category (categories.csv, causes.tbl.h) means for a request, and what helps. A
// category that the program knows has a row; test_remedies fails for one without.
//
// REMEDY("category", expected, "happened", "helps")
//     expected: an ordinary request has some of this anyway, so that only what is above its own
//         fast end is worth a remark (ordinary.h)
//     happened: a clause without jargon, of the time that it took: "another program, {cause}, had
//         {core}" (run_lede.h says what stands
//         for the words in braces)
//     helps: what to do about it
// clang-format off
#ifndef REMEDY
#define REMEDY(...)
#endif

// --- what other programs and the machine do to the server
REMEDY("CPU quota", false, "{server} was not allowed to run: {group} had used its CPU quota up", "raise cpu.max of its control group, or give it no more threads than the quota has cores")
REMEDY("other programs", false, "another program, {cause}, had {core}", "keep other programs off the server's cores (cpuset, taskset), or give it more of them")
REMEDY("load generator", false, "the load generator itself had {core}", "keep the server off the load's cores (taskset, cpuset), or load it from another host")
REMEDY("OS threads", false, "a kernel thread, {cause}, had {core}", "see which kernel threads they are, and move them to other cores")
REMEDY("virtual machine", false, "the host of this virtual machine gave its processor to others", "ask for a dedicated host, or for processors of its own")

// --- what the server does itself
REMEDY("head-of-line blocking", false, "these requests stood behind others that {server} was working on", "more threads, less load, or heavy requests kept apart")
REMEDY("server's cores", false, "another thread of {server} had {core}", "more cores for the server, or no more threads than it has cores")
REMEDY("worker threads", false, "these requests waited until one of {server}'s workers was free", "more workers, or a shorter job for each")
REMEDY("unaccepted connections", false, "these requests' connections lay in the queue of {server}, which accepted them late: it was busy with others', or had as many as it may", "more workers, or a higher limit of connections (MaxRequestWorkers, pm.max_children, worker_connections, maxconn) or of open files (ulimit -n, worker_rlimit_nofile), and connections that are kept open without a request for less long")
REMEDY("the server's own work", true, "{server} did work of its own instead of requests", "see what it does between requests (collections, snapshots, timers, clients of a port that is not captured), and have it do less of that at a time")
REMEDY("application", true, "{server}'s own code ran longer than usual", "profile the server (capture: samples)")
REMEDY("server stack", true, "the kernel was sending the replies of {server}", "write a reply with one call")
REMEDY("fork", false, "{server} forked, or copied memory that it shared with a forked child", "less memory in use, huge pages for shorter page tables, snapshots at a replica")
REMEDY("forked child", false, "a child process that {server} had forked had {core}", "let the child run on another core (taskset; Redis: bgsave_cpulist, aof_rewrite_cpulist), fork less often (Redis: save, auto-aof-rewrite-percentage), or have a replica write the snapshots")
REMEDY("locking", false, "{server} waited for a lock that somebody else held", "hold it for less long (the cause names who did, and what he did meanwhile), or have fewer threads")
REMEDY("interpreter lock", false, "{server}'s threads waited for the lock of their interpreter, with which one of them runs at a time", "do long work in another process or in smaller pieces, or in a library that gives the lock back meanwhile; processes instead of threads")
REMEDY("kernel locks", false, "the kernel spun on {core} for a lock that another core held", "find who holds it meanwhile (perf lock contention -ab), and have fewer cores need it at a time")
REMEDY("garbage collection", false, "a garbage collection stopped {server}'s threads", "fewer live objects, a larger heap, a concurrent collector on cores of its own")
REMEDY("inspections", false, "{server}'s threads stood still for somebody who looked into it", "thread and heap dumps (jcmd, jstack, jmap, kill -3) of a server that gets no requests meanwhile, fewer threads, a histogram without a collection (-all)")
REMEDY("blocking calls", false, "{server} slept in a system call with the request in its hands", "make the call asynchronous, or have threads for it")
REMEDY("system calls", false, "the kernel was at work in a call of {server}: {cause}", "make fewer or smaller such calls while requests are served, or let another thread make them")
REMEDY("other threads", false, "{server} waited for another thread or program: {cause}", "look at what that one does meanwhile")
REMEDY("clients", false, "{server} waited for one of its clients: {cause}", "see what that client does meanwhile: short transactions, and time limits for idle ones (idle_in_transaction_session_timeout) and for slow requests (client_header_timeout); a thread or an event loop for clients that are slow")
REMEDY("another host or server", false, "{server} waited for another server: {cause}", "look at that server: trace it, too")
REMEDY("no answer", false, "{server} had asked another server, which did not answer: {cause}", "see what keeps that one from answering; a shorter time limit (proxy_read_timeout, timeout server), no requests for one that does not answer (health checks, max_fails), and another one to ask")
REMEDY("retries", false, "{server} had asked another server in vain and waited before it tried again: {cause}", "see why that one took no connection or gave no answer (a restart, its limits); another one to try at once (redispatch, proxy_next_upstream), and less time between tries")
REMEDY("connection pool", false, "every connection that {server} had to another server was taken: {cause}", "more connections to it, where it can serve more at a time; else look at what keeps those that are taken: trace that server, too")
REMEDY("connections to servers", false, "{server} waited until it had a connection to another server", "connections that are kept open (keepalive of a proxy's upstream, a pool); a longer queue where it was full (the other server's backlog and net.core.somaxconn) and more threads that accept there, else see who drops what opens them (a firewall, the link)")
REMEDY("put off", false, "{server} had read these requests and served others instead", "see why it puts them off: a command that blocks or pauses clients (CLIENT PAUSE, BLPOP, WAIT), a limit of the rate, or an answer from elsewhere")
REMEDY("timers", false, "{server} waited for a time to pass, or timers ran on its core", "shorter sleeps, an event instead, or a higher limit where the rate is limited; more of what it asked for in vain, up to a time (a semaphore, a pool), where it was that")
REMEDY("tracer", false, "{server} was stopped by whoever traces it", "see who does (TracerPid in /proc/PID/status): strace and debuggers stop a thread at each event")
REMEDY("freezer", false, "{server}'s control group was frozen", "see who freezes it (cgroup.freeze, freezer.state): docker pause, a checkpoint, systemctl freeze")
REMEDY("signals", false, "{server} was stopped by signals, or handled some", "see who sends them: a debugger, a profiler, or job control")

// --- memory and disks
REMEDY("page faults", false, "{server} waited for pages of its memory", "give it more memory, turn swapping off, touch or lock it beforehand (mlockall)")
REMEDY("memory reclaim", false, "{server} had to free memory for the kernel", "give the machine more memory, keep more of it free (vm.min_free_kbytes, vm.watermark_scale_factor)")
REMEDY("memory limit", false, "{server} had to give pages back, or was put to sleep: {group} was at its limit of memory", "raise its control group's limit (memory.max, memory.high; Kubernetes' limits.memory), or use less: the files that it reads and writes count, too")
REMEDY("swapping", false, "what {server} needed was in swap", "give it more memory, lock it (mlockall), lower vm.swappiness or turn swapping off")
REMEDY("frozen file systems", false, "the file system was frozen, on which a file had to be changed: {cause}", "see who freezes it (fsfreeze, xfs_freeze, LVM, the agent of a backup or of the virtual machine): for less long, when there is less to do; logs on another file system, or written by a thread of its own")
REMEDY("block I/O", false, "a disk had to be waited for", "sync less often (appendfsync everysec), in a thread of its own, or to a faster device")
REMEDY("disk reads", false, "what {server} read had to come from a disk", "more memory for what is read again (the page cache), files that are read beforehand (vmtouch, pg_prewarm) or by threads of their own, a faster device, or one to which others write less")
REMEDY("I/O limit", false, "a disk had to be waited for that had no request yet", "raise the limits of its control group and of those above it (io.max, io.latency; blkio.throttle); where there are none, see what the file system does first (its journal)")
REMEDY("file systems", true, "a file system was at work", "keep files out of the way of requests, or on a file system in memory")
REMEDY("memory", true, "the kernel managed {server}'s memory", "map, unmap and allocate less while requests are served; huge pages for fewer of them")
REMEDY("memory cgroup", true, "the kernel kept account of a control group's memory", "fewer levels of control groups, and less churn of pages")
REMEDY("NUMA balancing", true, "the kernel moved memory between NUMA nodes", "turn it off (kernel.numa_balancing=0), or bind the server to one node (numactl)")

// --- TCP, and what lies between the hosts
REMEDY("packet loss", false, "packets were lost and had to be sent again", "look at the link, its queues, and who drops them (ethtool -S, nstat, net.core.netdev_max_backlog)")
REMEDY("firewall", false, "a firewall threw packets away, which had to be sent again", "look at its rules and limits (nft list ruleset, iptables -nvL, tc -s filter, bpftool net), and at the table of connections (conntrack)")
REMEDY("routing", false, "packets that did not find their way were thrown away and had to be sent again", "look at the routes, the neighbours and the devices' MTU (ip route, ip neigh, ip link), at who answers ARP and neighbour solicitations, and at rp_filter")
REMEDY("receive buffer", false, "a socket had no room for what came, which had to be sent again", "a reader that is faster, or larger buffers (SO_RCVBUF, net.ipv4.tcp_rmem, net.ipv4.tcp_mem)")
REMEDY("retransmission", true, "the kernel was busy sending lost packets again", "look at the link, its queues, and who drops packets (ethtool -S, nstat)")
REMEDY("send queue", false, "the replies lay in the kernel of {server}, nobody knows why", "look at TCP_NODELAY, the queueing discipline and the window")
REMEDY("slow reader", false, "the other end did not take {server}'s bytes", "larger buffers, or a faster reader")
REMEDY("receive window", false, "the client did not read its replies in time", "a faster client, or a larger receive buffer (tcp_rmem)")
REMEDY("congestion window", false, "TCP held replies back until earlier ones were acknowledged", "keep connections open and warm, look at losses and the round trip")
REMEDY("Nagle and delayed ACK", false, "TCP kept back the end of replies, or of requests to other servers, to send it with more", "set TCP_NODELAY on the server's sockets, also on those to other servers, or write what belongs together with one call; no TCP_CORK, no MSG_MORE")
REMEDY("pacing", false, "TCP spread the replies over time", "look at the connection's congestion control, and at SO_MAX_PACING_RATE")
REMEDY("queueing discipline", false, "a network device's queueing discipline held packets back", "look at it with tc -s qdisc: its rate and its length")
REMEDY("network or stack", true, "the bytes were on their way between the client and {server}, in the network or its own stack", "have the stack or the NIC stamp what arrives, or compare with a run over the kernel's stack")
REMEDY("network", true, "the bytes were on their way between the hosts", "look at the link, its queues and its interrupt moderation")
REMEDY("NIC delay", true, "the packets had come and the processor had not been told", "less interrupt moderation, or shallower idle states")
REMEDY("receive processing", true, "the kernel was receiving packets on {core}{rules}", "spread receive processing over cores (RSS, RPS); where a firewall has many rules (nft list ruleset, iptables -nvL), have sets and maps in their place")
REMEDY("transmit processing", true, "the kernel was sending packets on {core}", "spread sending over the device's queues (XPS)")

// --- the client's side
REMEDY("client", true, "the load generator was late by itself", "give the load cores and threads of its own before judging the server")
REMEDY("client's cores", true, "the load generator did not have its CPU core: {cause}", "keep other programs and interrupts off the cores of the load (taskset, cpuset), or give it cores of its own")
REMEDY("client's timers", true, "a timer woke the load generator late", "have the load spin (without `sleep: true`), on a core of its own")
REMEDY("client's threads", true, "the load generator was busy with other requests", "more threads for the load, or agents")
REMEDY("full connections", false, "every connection of the load was waiting for a reply", "look at what the server does; more connections, or a greater depth, would show it")
REMEDY("connections", false, "connections to {server} could not be opened{refusal}", "connections that are kept open; a longer queue where it was full (the server's backlog and net.core.somaxconn) and more threads that accept, else see who drops what opens them (a firewall, the link)")

// --- the processor and the kernel
REMEDY("scheduling", true, "{server} was woken late, or waited for its turn", "pin the threads, or forbid deep idle states")
REMEDY("idle", true, "a CPU core that {server} needed idled, nobody knows why", "record the cores that deliver and serve (taillight doctor says what the capture lacks)")
REMEDY("device interrupts", true, "a device's interrupt had {core}", "steer the device's interrupts to other cores (smp_affinity)")
REMEDY("inter-processor interrupts", true, "other cores interrupted {core}", "fewer processes that map and unmap memory, isolated cores for the server")
REMEDY("interrupt entry", true, "interrupts had {core}", "fewer interrupts on the server's cores: moderation, or other cores for them (smp_affinity)")
REMEDY("softirqs", true, "the kernel's deferred work had {core}", "spread what defers it (network, disks, timers) over other cores")
REMEDY("work queues", true, "the kernel's work queues had {core}", "keep them off the server's cores (/sys/devices/virtual/workqueue/cpumask)")
REMEDY("RCU", true, "the kernel's RCU callbacks had {core}", "keep them off the server's cores (rcu_nocbs)")
REMEDY("clocks", true, "the kernel kept or read clocks", "use the TSC as the clock (current_clocksource), and read the time less often")
REMEDY("exceptions", true, "the processor raised exceptions", "see what raises them: alignment, a debugger, a hypervisor")
REMEDY("syscall entry", true, "{server} was entering or leaving the kernel", "fewer system calls a request; see which mitigations and tracers are on")
REMEDY("event polling", true, "{server} was asking the kernel for events", "more requests a wake-up, or fewer descriptors in one set")
REMEDY("processes", true, "processes were made or ended", "make threads and processes before they are needed")
REMEDY("child processes", false, "{server} waited for a program that it had started", "start programs beside requests, not within them: a worker that stays, or a library for what they do")
REMEDY("cgroups", true, "the kernel kept account of control groups", "fewer levels of control groups, and fewer moves between them")
REMEDY("security", true, "security checks were made (LSM, seccomp, audit)", "fewer and shorter rules for this server")
REMEDY("kernel log", true, "the kernel was writing its log", "see what it logs (dmesg), and mend or silence that")
REMEDY("virtual machines", true, "virtual machines ran on {core}", "keep guests off the server's cores")
REMEDY("virtual devices", true, "a virtual device was at work", "give the machine more queues, or a device of its own")
REMEDY("cryptography", true, "the kernel was encrypting or decrypting", "keep connections open, use the processor's instructions or the card for it")
REMEDY("pipes", true, "the kernel was moving bytes through pipes", "fewer pipes in the way of requests")
REMEDY("io_uring", true, "the kernel was working on io_uring requests", "look at its workers: bounds, polling, and the cores that they have")

// --- the kernel's network, by part
REMEDY("IP", true, "the kernel's IP layer was at work", "fewer rules, routes and tunnels in the way of packets")
REMEDY("TCP", true, "the kernel's TCP was at work", "fewer and larger segments: offloads (ethtool -k), one write a reply")
REMEDY("UDP", true, "the kernel's UDP was at work", "larger bundles (GSO, GRO), and receive buffers that hold them")
REMEDY("SCTP", true, "the kernel's SCTP was at work", "fewer and larger messages")
REMEDY("IPsec", true, "IPsec was at work", "leave it to the card, or give it cores of its own")
REMEDY("XDP", true, "a program at the network device was at work (XDP)", "see which it is (bpftool net), and shorten it")
REMEDY("packet filter", true, "packet filters were at work{rules}", "see which BPF programs and rules each packet meets (bpftool, nft), and shorten them")
REMEDY("packet sockets", true, "somebody was recording packets", "see who listens (ss -0), as tcpdump does")
REMEDY("packet buffers", true, "the kernel was managing packet buffers", "fewer and larger packets: offloads (ethtool -k)")
REMEDY("sockets", true, "the kernel's sockets were at work", "fewer calls a request, and one thread a socket")
REMEDY("network devices", true, "the kernel's device layer was at work", "spread packets over queues and cores (RSS, RPS, XPS)")
REMEDY("NIC driver", true, "the network card's driver was at work", "look at its queues and offloads (ethtool -l, -k), and at its version")
REMEDY("traffic control", true, "the kernel's traffic control was at work", "simpler queueing disciplines and filters (tc)")
REMEDY("wireless", true, "the wireless network was at work", "use a cable")

// --- what is not known, or Taillight's own
REMEDY("kernel", true, "the kernel was at work", "see in which functions (capture: intel_pt, or samples)")
REMEDY("lost records", true, "nobody knows what {core} did: its records were lost", "record again; taillight doctor says what this machine hides")
REMEDY("unknown", true, "{server} slept, nobody knows what for", "record system calls, too (taillight doctor says what the capture lacks)")
REMEDY("Taillight itself", true, "Taillight's own recording had {core}", "record less: fewer events, or a shorter window")
REMEDY("other", true, "something without a name of its own happened", "look at the timelines of the messages that it slowed")
// clang-format on

#undef REMEDY
