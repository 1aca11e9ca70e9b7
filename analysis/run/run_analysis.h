// SPDX-License-Identifier: MIT
//
// Everything the analysis of one run found: what the report, summary.json and run.db are made of.
#ifndef ANALYSIS_RUN_ANALYSIS_H
#define ANALYSIS_RUN_ANALYSIS_H

#include <jansson.h>

#include "analysis/decomposition/categories.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/shared_traits.h"
#include "analysis/diagnosis/time_budget.h"
#include "analysis/calls/applications.h"
#include "analysis/calls/call_comparison.h"
#include "analysis/calls/call_doubts.h"
#include "analysis/calls/calls.h"
#include "analysis/lifetime/join.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/lifetime/peers.h"
#include "analysis/lifetime/unseen.h"
#include "analysis/run/run_functions.h"
#include "analysis/run/run_hops.h"
#include "analysis/run/input/run_loads.h"
#include "analysis/run/input/run_missing.h"
#include "analysis/run/run_samples.h"
#include "analysis/run/run_trace.h"
#include "analysis/timeline/span.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/connection.h"
#include "base/quantile.h"
#include "loadgen/method/load_doubts.h"

enum { LATENCY_QUANTILES = 6 };
extern const double latency_quantiles[LATENCY_QUANTILES];           // 0.5 0.9 0.99 0.999 0.9999 1
extern const char *const latency_quantile_names[LATENCY_QUANTILES]; // "p50" ... "max"

struct latency_summary {
    // +infinity where unanswered requests reach it; NaN where there are too few (quantile_is_seen)
    double value_ns[LATENCY_QUANTILES];
    // 95 %, as the load has it (loadgen/method/method_interval.h).
    struct quantile_interval interval_ns[LATENCY_QUANTILES];
};

struct diagnosis_array ARRAY_OF(struct diagnosis);

// What was captured, and what of it was lost.
struct run_evidence {
    char run_dir[4096];
    char name[128];                        // of the experiment
    json_t *experiment;                    // resolved experiment as written by the engine, or NULL
    json_t *load;                          // its load.json
    struct run_load_array other_loads;     // beside that one (run_loads.h), without their logs
    json_t *capture;                       // server/capture.json, or NULL
    json_t *facts;                         // facts.json, or NULL
    char result_suffix[LOAD_FOLDER_BYTES]; // of the files that are made of it: "" of the first or
                                           // only load, else "-NAME"
    char ends[1200];                       // that and why not all is looked at; empty: it is
    struct run_missing missing;            // documents without which that is no verdict
    bool has_events, has_calls;            // which of the server's logs there were
    bool of_load_alone; // these events are of the load's cores, and of no message
    // A capture alone: the requests are those of clients that nobody knows, and live from M(n) to
    // server TX (turns.h).
    bool without_client;
    uint64_t turns_framed;    // of these, by their protocol's framing; the others by turns
    uint64_t turns_piecewise; // in so many of the turns the client wrote again before the answer
    uint64_t turns_waiting;   // none of these: requests that had asked to be kept waiting
    uint64_t turns_unanswered, turns_unasked;
    struct host_timeline server;
    bool has_client_events;  // there are kernel events of the load's cores
    bool has_client_capture; // from a capture of their own, in `client`, not in `server`
    struct host_timeline client;
    struct application_calls calls; // the server's socket calls, by the shim or the kernel
    uint64_t calls_by_shim, calls_by_kernel;
    struct call_comparison comparison;              // of what both have
    struct call_doubts doubts;                      // calls that the kernel's events contradict
    struct ARRAY_OF(struct connection) connections; // of these calls
    uint32_t *application_threads;                  // the servers', ascending
    size_t application_thread_count;
    struct run_trace trace;
    struct run_functions functions;
    struct run_samples samples;
    uint64_t dropped_events, dropped_calls, dropped_samples;
    uint64_t dropped_client_events; // of the load's cores alone: they say nothing of the server
    double dropped_share;           // of all events and calls
    double clock_error_ns;          // stated bound of the difference of two stamps
};

// What became of each request: its stamps from all logs joined, and what they amount to.
struct run_lifetimes {
    struct lifetime_array all;   // one per scheduled request, in intended order
    size_t beside;               // behind these: lives of the loads beside, of which others ask
                                 // only whom the servers had to do with; and earlier ones
                                 // (lifetime.earlier)
    struct holdup_array holdups; // what TCP held back
    struct run_hops hops;        // where on the network they were
    struct peers peers;          // what the servers asked of others
    struct join_counts join;
    struct applications applications; // the servers
    struct service_order order;       // who was ahead of whom
    struct client_turns client_turns; // what the load's threads did
    struct openings openings;         // when the load opened its connections again
    struct unseen_time unseen;        // when nobody knows what their cores did
    int64_t begin_ns, end_ns;         // first and last intended time, host time
    uint64_t scheduled, sent, answered, timed_out, lost, unsent;
    uint64_t states[LIFETIME_STATES];
    double offered_rate, achieved_rate;      // requests per second
    double lateness_p50_ns, lateness_p99_ns; // send minus intended
    struct latency_summary latency, uncorrected_latency;
    // How long each stage took at each quantile of latency: means over a narrow band of messages
    // around it, so that they add up to the band's mean latency.
    double stage_at_quantile_ns[LATENCY_QUANTILES][STAGES];
    // Of the application's stage that part in which the message's thread did not run (off_core.h).
    double off_core_at_quantile_ns[LATENCY_QUANTILES];
    // How far the stages of a request are from adding up to its latency, worst over all, ns.
    double worst_stage_sum_error_ns;
};

enum { VERDICT_BYTES = 3200 };

// The categories that a run's causes are sorted into. First match: in a file the user names, then
// in RUN/categories.csv, which the experiment left there, then in the program's own. Which files
// were used is kept for the report and run.db.
#define RUN_CATEGORIES_FILE "categories.csv"

struct category_source {
    char file[4200];
    size_t rules; // how many; the table has the sources' rules one after another
};

struct run_categories {
    struct categories table;
    struct category_source sources[2]; // the first to match first
    size_t source_count;               // 0: the program's own alone
};

// Why the slow ones were slow, in numbers and in words.
struct run_findings {
    bool whole_alone;                 // as it was asked (run_analyze.h)
    struct run_categories categories; // of causes
    struct diagnosis_array diagnoses; // the first is the run's; then one per window
    // The same slices of the receive, service and send lifetimes on their own: PARTS - 1 of each.
    struct diagnosis_array part_diagnoses;
    struct shared_trait_array
        shared;                // by the messages of the run's slice, where it is of slow ones
    struct time_budget budget; // of the servers' threads; empty where no events were captured
    char verdict[VERDICT_BYTES];
    bool verdict_available; // false: "N/A", and the verdict says why
};

struct run_analysis {
    struct run_evidence evidence;
    struct run_lifetimes lifetimes;
    struct run_findings findings;
};

// The diagnosis of a part of the lifetimes beside run->findings.diagnoses.items[number], or that
// itself; NULL where there is none.
const struct diagnosis *run_diagnosis_of(const struct run_analysis *run, size_t number,
                                         enum lifetime_part part);

// Why the load that the run looked at cannot be trusted, by its own account, or since that is
// missing; NULL: it can, or there was none. The text is the evidence's.
const char *run_load_doubt(const struct run_analysis *run);

// What that doubt is about: of several, the one to begin with. LOAD_DOUBTS: there is none, or the
// load said it without a kind.
enum load_doubt run_load_doubt_kind(const struct run_analysis *run);

// What that doubt comes to in plain words, and what helps; all NULL where it has no kind.
struct load_doubt_words run_load_doubt_words(const struct run_analysis *run);

// Whether it shows what it was made for: there is a verdict, of a load that can be trusted, and,
// where the processor's trace was asked for by name, functions. Else commands end with
// ERROR_INCONCLUSIVE.
bool run_is_conclusive(const struct run_analysis *run);

// Whether there are kernel events of the server.
static inline bool run_has_server_events(const struct run_analysis *run)
{
    return run->evidence.has_events && !run->evidence.of_load_alone;
}

// How much longer than an ordinary one the diagnosis' messages took, all together.
double run_diagnosis_extra_ns(const struct diagnosis *diagnosis);

// What a run's diagnoses are made from.
void run_diagnosis_input(const struct run_analysis *run, struct diagnosis_input *out);

// A request's number that a run of so many requests does not have is ERROR_INPUT.
int run_check_request(const struct diagnosis_slice *slice, uint64_t requests, const char *run_dir,
                      struct error *err);

// Turns a slice whose window counts from the first intended time into host time, no longer than the
// run. A request that is not in the run is ERROR_INPUT.
int run_place_slice(const struct run_analysis *run, struct diagnosis_slice *slice,
                    struct error *err);

// An operation's name in the mix of the load that is looked at (`load` 0), or of the load-th beside
// it; NULL where it is not known.
const char *run_operation_name(const struct run_analysis *run, unsigned load, uint64_t operation);

// What the load is called that is looked at; NULL: there is only one. And one beside it, from 1.
const char *run_load_name(const struct run_analysis *run);
const char *run_other_load_name(const struct run_analysis *run, unsigned load);

// The run's name, "memcached" or "memcached, load `get`". Returns out.
char *run_title(const struct run_analysis *run, char *out, size_t out_bytes);

void run_analysis_free(struct run_analysis *analysis);

// The experiment's name of the load's host, or of the loaded server's; "client" and "server" where
// it names none.
const char *run_host_name(const struct run_analysis *analysis, bool client);

// The machine a stage passes on, by the experiment's name of the host ("client" and "server" where
// it names none). "" where client and server are one machine, and for the network between two.
const char *run_stage_machine(const struct run_analysis *analysis, enum stamp_kind ends_at);

// Whether a lifetime has a stamp to show: without a client of ours it begins with M(n), and what
// the client did is in the same instant, for those who count from there.
bool run_shows_stamp(const struct run_analysis *run, const struct lifetime *life,
                     enum stamp_kind kind);

// Of the application's stage of a message that part in which its thread did not run (off_core.h).
double run_off_core_ns(const struct run_analysis *run, const struct lifetime *life);

// What the lifetimes of a run's requests amount to: fills the counts, rates, latencies with their
// intervals and the stages at each quantile of run->lifetimes, whose requests are joined. -1: no
// memory.
int run_statistics(struct run_analysis *run);

// Of latencies in the order of their requests.
int latency_summarise(const double *values_ns, size_t count, struct latency_summary *out,
                      struct error *err);

// The latency of the requests alone that one of several servers answered.
int run_latency_of_application(const struct run_analysis *run, uint16_t application,
                               struct latency_summary *out, struct error *err);

// asked: a file that the user names, or NULL. A bad file is ERROR_INPUT with its line.
int run_categories_read(struct run_categories *categories, const char *run_dir, const char *asked,
                        struct error *err);

#endif
