// SPDX-License-Identifier: MIT
//
// Why a load cannot be trusted. Its sentences (load_summary.h) have the figures; here stands what
// they come to, for somebody who knows nothing of the method. What a row is about explains what
// those below it are about: of several, the first is the one to begin with.
//
// LOAD_DOUBT(NAME, "key", "words", "helps")
//     key: in load.json's `doubts`, one for each of `reasons`
//     words: a clause without jargon: "the load generator was starved of its CPU core"
//     helps: what to do about it
// clang-format off
#ifndef LOAD_DOUBT
#define LOAD_DOUBT(...)
#endif

// --- the load did not come to its end
LOAD_DOUBT(ABSENT, "absent", "nobody listened at the server's address", "start the server, or mend the address")
LOAD_DOUBT(INTERRUPTED, "interrupted", "the load was interrupted", "let it run to its end")
LOAD_DOUBT(AGENT_LOST, "agent-lost", "an agent of the load was lost", "look at that agent's machine and at the link to it")
LOAD_DOUBT(PORTLESS, "no-local-port", "the load's machine ran out of local ports for new connections", "let the server keep connections open, or allow more ports (net.ipv4.ip_local_port_range)")
LOAD_DOUBT(FAILED_OVER, "failed-over", "another master took over while it was measured", "take it for what a failover costs; to measure a master, load it while it stays one")
LOAD_DOUBT(RESTARTED, "restarted", "the server went away while it was measured", "look at the server's log: was it restarted, or killed?")
LOAD_DOUBT(DISCONNECTED, "disconnected", "connections to the server broke", "look at the server's log, its limit of connections and its queue of new ones (ss -ltn), and what lies between")
LOAD_DOUBT(UNOPENED, "unopened", "connections to the server could not be opened again at once", "keep connections open; see who drops what opens them (a firewall, the link), or whether the server's queue of them is full (ss -ltn)")
LOAD_DOUBT(MEMORY, "memory", "the load generator had no memory for more requests", "a shorter load, a lower rate, or more --memory")
LOAD_DOUBT(TOO_SHORT, "too-short", "the load was too short to judge", "a longer load")

// --- what was answered is not what was asked for
LOAD_DOUBT(ERRORS, "errors", "the server answered with errors", "see the first of them below")
LOAD_DOUBT(WRONG_VALUES, "wrong-values", "the server's values were not those that were asked for", "store this workload's dataset first (--prepare; in an experiment `fill: true` of a running server)")
LOAD_DOUBT(SURPLUS, "surplus", "the server sent more replies than there were requests", "see the first of them below")
LOAD_DOUBT(MISSES, "misses", "most reads found nothing, and that is what was measured", "store the dataset first (--prepare; in an experiment `fill: true` of a running server), or ask a web server for what it has (`http: {path}`)")

// --- the load generator's own machine
LOAD_DOUBT(STARVED, "starved", "the load generator was starved of its CPU core", "give the load generator a core of its own")
LOAD_DOUBT(SPENT, "out-of-cpu", "the load generator had no CPU left", "more threads for the load, agents, or a lower rate")
LOAD_DOUBT(LATE, "late", "the load generator was late by itself", "give the load generator a core of its own, or ask for a lower rate")
LOAD_DOUBT(ARRIVALS, "arrivals", "the requests did not leave when they were to", "give the load generator a core of its own, or ask for a lower rate")

// --- the server was asked for more than it can do
LOAD_DOUBT(SILENT, "silent", "nobody got a reply for a while", "look for what stopped the server: a long command or housekeeping of its own, its host, or the network")
LOAD_DOUBT(OVERLOADED, "overloaded", "the server did not keep up with the rate that was asked for", "ask for a lower rate: of an overloaded server only the growth of its queue can be measured")
LOAD_DOUBT(CLOSED, "closed-loop", "every connection was full, and requests waited in the load generator for one", "more connections, a greater depth, or a lower rate")
LOAD_DOUBT(UNANSWERED, "unanswered", "not every request was answered", "look at the server's log; a longer --timeout tells what is slow from what is lost")

// --- what was measured does not hold still, or is too little
LOAD_DOUBT(DISAGREED, "agents-disagree", "the load's agents measured different latencies", "look at what is different between them: the network, or their own cores")
LOAD_DOUBT(UNSTEADY, "not-stationary", "the server's latency changed while it was measured", "begin when the server is warm, measure for longer, and see what else the machines do")
LOAD_DOUBT(UNSURE, "interval", "the percentile that was asked for is not known well enough", "a longer load")
LOAD_DOUBT(DEPENDENT, "not-independent", "the requests say too little, because they depend on one another", "a longer load")
// clang-format on

#undef LOAD_DOUBT
