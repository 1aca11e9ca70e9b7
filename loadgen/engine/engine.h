// SPDX-License-Identifier: MIT
//
// The open-loop engine: sends every request at its scheduled instant, or as soon after as it can,
// and never waits for a reply to do so (design §7).
//
// Its threads (loadgen/engine/engine_worker.h) spin, unless told to sleep: on the TSC when the next
// request is near, else on the sockets' readiness (libevent). Which connection: the next in turn
// that has room; when none has, requests wait in schedule order and their lateness is recorded.
// Those that wait together share send calls. Nothing is allocated, and no page touched for the
// first time, after the start. The thread that calls waits for them, and for signals.
//
// Asked for as much as the server answers (closed_loop), it is no open loop: each connection sends
// as many requests as its depth allows, and the next when all of them are answered. A request's
// intended time is then when it was put, and its latency that of a client which waits; the result
// says so. This finds a server's maximum; pages for samples are touched on the way.
#ifndef LOADGEN_ENGINE_ENGINE_H
#define LOADGEN_ENGINE_ENGINE_H

#include "base/error.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/engine_settings.h"
#include "loadgen/engine/schedule.h"

// Connects, waits for the start, runs, and collects. Fails only when the run could not begin.
// While it runs, SIGINT and SIGTERM end it early and cleanly.
int engine_run(const struct engine_settings *settings, const struct schedule *schedule,
               struct engine_result *result, struct error *err);

#endif
