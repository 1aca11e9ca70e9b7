// SPDX-License-Identifier: MIT
//
// What a server's thread can spend its time with.
//
// BUDGET_STATE(NAME, "name", busy, colour, "means"): busy, whether the thread had anything to do.
// clang-format off
#ifndef BUDGET_STATE
#define BUDGET_STATE(...)
#endif

BUDGET_STATE(REQUESTS, "running for requests", true, "#d3b778", "it runs, from a receive call until the reply is sent")
BUDGET_STATE(OWN, "own work", true, "#e9dcbd", "it runs, and no request is in its hands: its event loop, timers, garbage collection, background threads")
BUDGET_STATE(RUNS, "running", true, "#d3b778", "it runs, and no socket calls were captured that say what for")
BUDGET_STATE(READY, "waiting for a core", true, "#cf9f97", "it could run, and its core runs something else")
BUDGET_STATE(THROTTLED, "throttled (CPU quota)", true, "#b58a84", "it could run, but its control group's quota is used up")
BUDGET_STATE(FAULTS, "page faults", true, "#cdbbd6", "it runs or sleeps until the kernel has a page for it")
BUDGET_STATE(BLOCKED, "blocked", true, "#b9a9c9", "it sleeps in the call that is named, with a request in its hands or in something that is no wait for work")
BUDGET_STATE(AWAITS, "waiting, a request unfinished", true, "#dccfdd", "its event loop has nothing to do, yet a request that it received is not answered: it waits for someone else")
BUDGET_STATE(IDLE, "waiting for work", false, "#dfe5ea", "its event loop has nothing to do, or it sleeps between requests")
BUDGET_STATE(UNKNOWN, "unknown", false, "#b0b0b0", "the records do not say")
// clang-format on

#undef BUDGET_STATE
