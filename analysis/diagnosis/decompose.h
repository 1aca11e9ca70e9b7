// SPDX-License-Identifier: MIT
//
// Takes one lifetime apart: how many of its nanoseconds belong to which component. On the server's
// cores it goes by the innermost context of every piece of time the message spent there (NSight
// §5.2, phases 1, 2 and 4); elsewhere whole stages are components. Where spans name functions, the
// message's own time in each context is divided among them, too (phase 3).
#ifndef ANALYSIS_DIAGNOSIS_DECOMPOSE_H
#define ANALYSIS_DIAGNOSIS_DECOMPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/diagnosis/call_paths.h"
#include "analysis/diagnosis/components.h"
#include "analysis/diagnosis/diagnosis.h"

struct component_share {
    uint64_t lifetime;
    uint32_t component;
    double ns; // > 0
};
struct component_share_array ARRAY_OF(struct component_share);

// The functions open above the context that a piece of time is given to.
struct decomposer_stack {
    const struct span *const *functions;
    unsigned count;
    int64_t context_begin_ns;
};

// The socket calls of one thread, and the first of them after the piece before.
struct decomposer_calls {
    const struct application_call *items;
    size_t count, next;
    uint32_t thread;
    bool valid;
};

// Is told of each piece of a core's time that a component gets. core: NO_CORE for time that the
// message spent on none.
typedef void component_piece(uint32_t component, uint16_t core, int64_t begin_ns, int64_t end_ns,
                             void *context);

struct decomposer {
    const struct diagnosis_input *in;
    struct component_table *table;
    double *ns; // by component, of the message at hand; zero between messages
    size_t capacity;
    bool out_of_memory;
    bool traced; // the functions of the latest message are known all through its time on the server
    struct call_paths paths;
    struct decomposer_stack stack;      // of the piece at hand
    struct decomposer_calls last_calls; // where the piece before was found
    uint16_t core;                      // of the piece at hand
    component_piece *piece;             // NULL: nobody asks
    void *piece_context;
};

void decomposer_init(struct decomposer *decomposer, const struct diagnosis_input *input,
                     struct component_table *table);
void decomposer_fini(struct decomposer *decomposer);

// Appends the shares of one whole lifetime, or of the part of it that in->part says, by ascending
// component; they add up to how long that took, to within rounding. paths: gets the functions, by
// ascending path, nothing unless all are known (decomposer->traced); may be NULL. -1 when memory
// runs out.
int decompose(struct decomposer *decomposer, uint64_t lifetime, struct component_share_array *out,
              struct path_share_array *paths);

// Internal to decompose*.c: gives a component time.
void decomposer_add(struct decomposer *decomposer, int64_t component, double ns);
// The same for a `share` of a piece of a core's time, which its functions get, too.
void decomposer_add_piece(struct decomposer *decomposer, int64_t component, int64_t begin_ns,
                          int64_t end_ns, double share);

// How the running time [begin_ns, end_ns) of the message's thread divides between its own work
// and that for requests ahead of it (blocking.c).
void decompose_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                           uint32_t thread, int64_t begin_ns, int64_t end_ns);

#endif
