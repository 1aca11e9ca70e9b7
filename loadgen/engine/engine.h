// SPDX-License-Identifier: MIT
//
// The open-loop engine: sends every request at its scheduled instant, or as soon after as it can,
// and never waits for a reply to do so (design §7).
//
// Its threads (loadgen/engine/engine_worker.h) spin, unless told to sleep: on the TSC when the next
// request is near, else on the sockets' readiness (epoll). Each request takes the next
// connection in turn that has room; if none has, requests wait in schedule order and their lateness
// is recorded. Requests that wait together share send calls. After the start nothing is allocated,
// and no page is touched for the first time. The calling thread waits for the others, and for
// signals.
//
// With a drawer and memory_bytes a load may be of any length: another thread draws its schedule
// while it lasts and takes its finished samples away (loadgen/engine/sample_drain.h). `schedule` is
// then NULL, and the result has totals and a sample of the requests.
//
// With closed_loop it sends as much as the server answers: each connection sends as many requests
// as its depth allows, and the next ones when all of these are answered. A request's intended time
// is then the time it was put, and its latency is what a waiting client sees; the result says so.
// This finds a server's maximum. With memory_bytes it may be of any length, too: each thread takes
// its own finished samples (loadgen/engine/engine_worker_places.h), and where that memory holds all
// of them the result is as without. Else pages for samples are first touched during the load.
#ifndef LOADGEN_ENGINE_ENGINE_H
#define LOADGEN_ENGINE_ENGINE_H

#include "base/error.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/engine_settings.h"
#include "loadgen/engine/schedule.h"

// Connects, waits for the start, loads, and collects the result. Fails only when the load could not
// begin. Meanwhile SIGINT and SIGTERM end it early and cleanly.
int engine_run(const struct engine_settings *settings, const struct schedule *schedule,
               struct engine_result *result, struct error *err);

#endif
