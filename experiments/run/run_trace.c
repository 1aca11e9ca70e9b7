// SPDX-License-Identifier: MIT
#include "experiments/run/run_trace.h"

#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "experiments/capture/capture_backend.h"
#include "profiler/trace/processor_trace.h"

static bool is_traced(const struct run *run)
{
    return capture_traces(run->experiment->backend);
}

static bool has_window(const struct run *run)
{
    return is_traced(run) && run->experiment->trace.window.to_ns;
}

void run_add_trace(const struct run *run, struct run_trace_words *words, struct command_line *line)
{
    const struct experiment *experiment = run->experiment;
    const struct experiment_trace *trace = &experiment->trace;
    if (!is_traced(run))
        return;
    command_line_add_option(line, "--pt-detail", "%s", processor_trace_detail_name(trace->detail));
    if (experiment->buffer_bytes)
        command_line_add_number(line, "--pt-buffer", experiment->buffer_bytes);
    if (CPU_COUNT(&trace->cores))
        command_line_add_option(
            line, "--pt-cores", "%s",
            units_format_cores(&trace->cores, words->cores, sizeof words->cores));
    if (trace->most_bytes)
        command_line_add_number(line, "--pt-bytes", trace->most_bytes);
    if (trace->slow_ns) {
        command_line_add(line, "--snapshot");
        command_line_add_number(line, "--pt-keep", trace->keep);
    }
    if (has_window(run))
        command_line_add(line, "--pt-waits");
    command_line_add_ns(line, "--pt-expect",
                        has_window(run) ? trace->window.to_ns - trace->window.from_ns
                                        : experiment->load.duration_ns);
}

void run_add_slow(const struct run *run, struct command_line *line)
{
    if (is_traced(run) && run->experiment->trace.slow_ns)
        command_line_add_ns(line, "--tell-slow", run->experiment->trace.slow_ns);
}

// Tells the capture; its end is noticed elsewhere.
static void tell_capture(struct run *run, const char *line)
{
    command_log_write(&run->log, "run", "to the capture: %.*s", (int)strlen(line) - 1, line);
    if (run->capture.input >= 0 && write(run->capture.input, line, strlen(line)) < 0)
        run_warn(run, "the capture could not be told `%.*s`", (int)strlen(line) - 1, line);
}

void run_turn_trace(struct run *run, uint64_t begin_ns, uint64_t now_ns, uint64_t *next_ns)
{
    if (!has_window(run))
        return;
    const uint64_t due_ns[] = {begin_ns + run->experiment->trace.window.from_ns,
                               begin_ns + run->experiment->trace.window.to_ns};
    static const char *const lines[] = {"trace on\n", "trace off\n"};
    while (run->trace_turns < 2 && now_ns >= due_ns[run->trace_turns])
        tell_capture(run, lines[run->trace_turns++]);
    if (run->trace_turns < 2 && due_ns[run->trace_turns] < *next_ns)
        *next_ns = due_ns[run->trace_turns];
}

void run_take_snapshot(struct run *run)
{
    tell_capture(run, "snapshot\n");
}
