// SPDX-License-Identifier: MIT
#include "profiler/events/events_programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/events/events_skeleton.h"
#include "profiler/host/host_facts.h"

const struct event_program event_programs[EVENT_PROGRAMS] = {
#define EVENT_PROGRAM(name, GROUP, iterator, gives, stand_in)                                      \
    {#name, EVENT_GROUP_##GROUP, iterator, gives, stand_in},
#include "profiler/bpf/events.tbl.h"
};

// What every attempt to load has in common.
struct loader {
    events_prepare *prepare;
    void *context;
    bool can_cast;                // the kernel has bpf_rdonly_cast
    int64_t steal_from_run_queue; // where a core's steal_time lies from its run queue; 0: unknown
    const struct event_program_state *states;
};

static struct bpf_program *program_of(const struct events_bpf *programs, size_t index,
                                      const struct event_program_state *states)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", event_programs[index].name,
             states[index].stood_in ? "_stand_in" : "");
    return bpf_object__find_program_by_name(programs->obj, name);
}

static const char *tracepoint_of(const struct event_program *program)
{
    return program->name + (program->group == EVENT_GROUP_DATAGRAMS ? strlen("udp_") : 0);
}

// Named by the function itself, not by a tracepoint.
static bool is_of_function(const struct event_program *program)
{
    char entry[64], exit[64];
    if (!program->stand_in)
        return false;
    snprintf(entry, sizeof entry, "%s_entry", program->stand_in);
    snprintf(exit, sizeof exit, "%s_exit", program->stand_in);
    return strcmp(program->name, entry) == 0 || strcmp(program->name, exit) == 0;
}

// The offset of a per-CPU variable among all per-CPU variables; -1: there is no such variable.
static int64_t offset_among_cores(const struct btf *btf, const char *name)
{
    int32_t section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
    int32_t variable = btf__find_by_name_kind(btf, name, BTF_KIND_VAR);
    if (section < 0 || variable < 0)
        return -1;
    const struct btf_type *type = btf__type_by_id(btf, (uint32_t)section);
    const struct btf_var_secinfo *items = btf_var_secinfos(type);
    for (unsigned i = 0; i < btf_vlen(type); i++)
        if (items[i].type == (uint32_t)variable)
            return items[i].offset;
    return -1;
}

// The account that a KVM host keeps of each core has no address in kallsyms, but the kernel's BTF
// gives its distance from the core's run queue, which every thread points to.
static int64_t steal_from_run_queue(const struct btf *btf)
{
    int64_t account = offset_among_cores(btf, "steal_time");
    int64_t run_queue = offset_among_cores(btf, "runqueues");
    return account < 0 || run_queue < 0 ? 0 : account - run_queue;
}

// Whether a program may be called by a kernel function: 0, or the error's number. Some kernels
// whose tracepoints call BPF programs have no functions that do.
static int function_refusal(int32_t function)
{
    const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FENTRY,
                .attach_btf_id = (uint32_t)function);
    int program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "tl_function", "GPL", nothing,
                                sizeof nothing / sizeof *nothing, &options);
    if (program < 0)
        return -program;
    close(program);
    return 0;
}

// Asks the running kernel's BTF which tracepoints it has, and whether it can cast pointers in BPF.
// wanted[] keeps those that are there. And for its words.
static int ask_btf(unsigned groups, bool wanted[EVENT_PROGRAMS], struct loader *loader,
                   struct event_program_state states[EVENT_PROGRAMS],
                   struct segment_drop_reasons *reasons, struct error *err)
{
    struct btf *btf = btf__load_vmlinux_btf();
    if (!btf)
        return error_set(err, ERROR_FAILED,
                         "cannot read the kernel's BTF (/sys/kernel/btf/vmlinux): %s; BPF capture "
                         "needs a kernel built with CONFIG_DEBUG_INFO_BTF",
                         strerror(errno));
    for (size_t i = 0; i < EVENT_PROGRAMS; i++) {
        memset(&states[i], 0, sizeof states[i]);
        wanted[i] = states[i].asked = (groups & event_programs[i].group) != 0;
        if (!wanted[i]) {
            snprintf(states[i].reason, sizeof states[i].reason, "not asked for");
            continue;
        }
        if (event_programs[i].iterator || event_programs[i].group == EVENT_GROUP_COLLECTIONS)
            continue;
        char name[64];
        snprintf(name, sizeof name, "btf_trace_%s", tracepoint_of(&event_programs[i]));
        if (btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF) >= 0)
            continue;
        const char *stand_in = event_programs[i].stand_in;
        int32_t found = stand_in ? btf__find_by_name_kind(btf, stand_in, BTF_KIND_FUNC) : -1;
        bool function = found > 0;
        if (is_of_function(&event_programs[i])) {
            int refusal = function ? function_refusal(found) : 0;
            wanted[i] = states[i].asked = function && !refusal;
            if (!function)
                snprintf(states[i].reason, sizeof states[i].reason,
                         "not needed: this kernel has no %s", stand_in);
            else if (refusal)
                snprintf(states[i].reason, sizeof states[i].reason,
                         "this kernel lets no function call it: %s", strerror(refusal));
        } else if (function) {
            states[i].stood_in = true;
        } else {
            wanted[i] = false;
            snprintf(states[i].reason, sizeof states[i].reason,
                     "this kernel has no tracepoint %s in its BTF",
                     tracepoint_of(&event_programs[i]));
        }
    }
    loader->can_cast = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
    loader->steal_from_run_queue = steal_from_run_queue(btf);
    segment_drop_reasons_read(reasons, btf);
    btf__free(btf);
    return 0;
}

// Opens, prepares and loads only the programs in use[]. Returns NULL with errno set, or with *err
// filled when preparing failed. log, when not NULL, receives the verifier's messages on `logged`.
static struct events_bpf *load_some(const bool use[EVENT_PROGRAMS], const struct loader *loader,
                                    size_t logged, char *log, size_t log_bytes, struct error *err)
{
    err->kind = ERROR_NONE;
    struct events_bpf *programs = events_bpf__open();
    if (!programs)
        return NULL;
    struct bpf_program *program;
    bpf_object__for_each_program(program, programs->obj) bpf_program__set_autoload(program, false);
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        bpf_program__set_autoload(program_of(programs, i, loader->states), use[i]);
    if (log)
        bpf_program__set_log_buf(program_of(programs, logged, loader->states), log, log_bytes);
    programs->rodata->can_cast = loader->can_cast;
    programs->rodata->steal_from_run_queue = loader->steal_from_run_queue;
    if (loader->prepare(programs, loader->context, err) < 0 || events_bpf__load(programs) < 0) {
        int saved = errno;
        events_bpf__destroy(programs);
        errno = saved;
        return NULL;
    }
    return programs;
}

// The verifier's objection is the last line of its log before the statistics.
static void last_words(const char *log, int number, char *out, size_t out_bytes)
{
    const char *line = NULL;
    size_t length = 0;
    for (const char *at = log; *at;) {
        size_t bytes = strcspn(at, "\n");
        if (bytes && strncmp(at, "processed ", 10) != 0 &&
            strncmp(at, "verification time", 17) != 0) {
            line = at;
            length = bytes;
        }
        at += bytes + (at[bytes] == '\n');
    }
    if (line)
        snprintf(out, out_bytes, "this kernel refuses it (%s): %.*s", strerror(number), (int)length,
                 line);
    else
        snprintf(out, out_bytes, "this kernel refuses it: %s", strerror(number));
}

// Tries each program alone, to find those that make the whole fail. use[] keeps the good ones.
static int sort_out(bool use[EVENT_PROGRAMS], const struct loader *loader,
                    struct event_program_state states[EVENT_PROGRAMS], struct error *err)
{
    enum { LOG_BYTES = 1 << 20 };
    char *log = malloc(LOG_BYTES);
    if (!log)
        return error_set(err, ERROR_FAILED, "no memory for the BPF verifier's log");
    int result = 0;
    for (size_t i = 0; i < EVENT_PROGRAMS && result == 0; i++) {
        if (!use[i])
            continue;
        bool alone[EVENT_PROGRAMS] = {false};
        alone[i] = true;
        log[0] = '\0';
        struct events_bpf *programs = load_some(alone, loader, i, log, LOG_BYTES, err);
        if (programs) {
            events_bpf__destroy(programs);
        } else if (err->kind != ERROR_NONE) {
            result = -(int)err->kind;
        } else {
            use[i] = false;
            last_words(log, errno, states[i].reason, sizeof states[i].reason);
        }
    }
    free(log);
    return result;
}

static struct events_bpf *load_what_works(bool use[EVENT_PROGRAMS], const struct loader *loader,
                                          struct event_program_state states[EVENT_PROGRAMS],
                                          struct error *err)
{
    struct events_bpf *programs = load_some(use, loader, 0, NULL, 0, err);
    if (programs || err->kind != ERROR_NONE)
        return programs;
    int number = errno;
    char lacking[64], program[400];
    if (number == EPERM && privilege_lacking_for_bpf(lacking, sizeof lacking)[0]) {
        ssize_t bytes = readlink("/proc/self/exe", program, sizeof program - 1);
        program[bytes > 0 ? bytes : 0] = '\0';
        error_set(err, ERROR_FAILED,
                  "cannot load BPF programs: this process lacks %s; run as root, or give the "
                  "program its privileges: setcap cap_bpf,cap_perfmon+ep %s",
                  lacking, program);
        return NULL;
    }
    if (sort_out(use, loader, states, err) < 0)
        return NULL;
    programs = load_some(use, loader, 0, NULL, 0, err);
    if (!programs && err->kind == ERROR_NONE)
        error_set_errno(err, ERROR_FAILED, "cannot load the BPF programs of the events backend");
    return programs;
}

static struct bpf_link **link_of(struct events_bpf *programs, const struct bpf_program *program)
{
    for (int i = 0; i < programs->skeleton->prog_cnt; i++)
        if (*programs->skeleton->progs[i].prog == program)
            return programs->skeleton->progs[i].link;
    return NULL;
}

static void attach_one(struct events_bpf *programs, size_t index,
                       struct event_program_state states[EVENT_PROGRAMS])
{
    struct event_program_state *state = &states[index];
    struct bpf_program *program = program_of(programs, index, states);
    struct bpf_link **link = link_of(programs, program);
    *link = bpf_program__attach(program);
    state->attached = *link != NULL;
    if (!*link)
        snprintf(state->reason, sizeof state->reason, "cannot be attached: %s", strerror(errno));
}

int events_programs_attach(unsigned groups, events_prepare *prepare, void *context,
                           struct event_program_state states[EVENT_PROGRAMS],
                           struct segment_drop_reasons *reasons, struct events_bpf **out,
                           struct error *err)
{
    bool use[EVENT_PROGRAMS];
    struct loader loader = {.prepare = prepare, .context = context, .states = states};
    libbpf_print_fn_t printer = libbpf_set_print(NULL); // what matters is in the reasons and errors
    *out = NULL;
    int result = ask_btf(groups, use, &loader, states, reasons, err);
    if (result < 0)
        goto out;
    struct events_bpf *programs = load_what_works(use, &loader, states, err);
    if (!programs) {
        result = -(int)err->kind;
        goto out;
    }
    size_t attached = 0;
    for (size_t i = 0; i < EVENT_PROGRAMS; i++) {
        if (!use[i])
            continue;
        if (event_programs[i].group == EVENT_GROUP_COLLECTIONS) {
            states[i].attached = true;
            continue;
        }
        attach_one(programs, i, states);
        attached += states[i].attached;
    }
    if (attached == 0) {
        events_bpf__destroy(programs);
        result = error_set(err, ERROR_FAILED,
                           "not one BPF program of the events backend could be attached; "
                           "sched_switch: %s",
                           states[0].reason);
        goto out;
    }
    *out = programs;
out:
    libbpf_set_print(printer);
    return result;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool does_without(enum events_running which, const char *name)
{
    static const char *const spared[] = {
#define EVENT_SPARED(name) #name,
#include "profiler/bpf/events.tbl.h"
    };
    static const char *const frequent[] = {
#define EVENT_FREQUENT(name) #name,
#include "profiler/bpf/events.tbl.h"
    };
    return (which != EVENTS_RUN_ALL && is_among(name, spared, sizeof spared / sizeof *spared)) ||
           (which == EVENTS_RUN_RESTING &&
            is_among(name, frequent, sizeof frequent / sizeof *frequent));
}

static void run_or_not(struct events_bpf *programs, size_t index,
                       struct event_program_state states[EVENT_PROGRAMS], bool runs)
{
    struct bpf_program *program = program_of(programs, index, states);
    struct bpf_link **link = program ? link_of(programs, program) : NULL;
    // Those of collections are attached to places in processes, by others.
    if (!link || !states[index].attached || (*link != NULL) == runs ||
        event_programs[index].group == EVENT_GROUP_COLLECTIONS)
        return;
    if (runs) {
        attach_one(programs, index, states);
    } else {
        bpf_link__destroy(*link);
        *link = NULL;
    }
}

void events_programs_run(struct events_bpf *programs,
                         struct event_program_state states[EVENT_PROGRAMS],
                         enum events_running which)
{
    libbpf_print_fn_t printer = libbpf_set_print(NULL);
    // What begins something goes before what ends it, and comes after it: rows are in that order.
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        if (does_without(which, event_programs[i].name))
            run_or_not(programs, i, states, false);
    for (size_t i = EVENT_PROGRAMS; i-- > 0;)
        if (!does_without(which, event_programs[i].name))
            run_or_not(programs, i, states, true);
    libbpf_set_print(printer);
}

// How often a program ran, and for how long in all. False: it did not run, or it is not known.
static bool program_cost(const struct events_bpf *programs,
                         const struct event_program_state states[EVENT_PROGRAMS], size_t index,
                         uint64_t *runs, uint64_t *ns)
{
    struct bpf_program *program = program_of(programs, index, states);
    struct bpf_prog_info info = {0};
    uint32_t info_bytes = sizeof info;
    int fd = program && states[index].attached ? bpf_program__fd(program) : -1;
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &info_bytes) < 0)
        return false;
    *runs = info.run_cnt;
    *ns = info.run_time_ns;
    return info.run_cnt > 0;
}

uint64_t events_programs_run_ns(const struct events_bpf *programs,
                                const struct event_program_state states[EVENT_PROGRAMS])
{
    uint64_t runs, ns, all = 0;
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        if (program_cost(programs, states, i, &runs, &ns))
            all += ns;
    return all;
}

json_t *events_programs_json(const struct events_bpf *programs,
                             const struct event_program_state states[EVENT_PROGRAMS])
{
    json_t *all = json_object();
    for (size_t i = 0; i < EVENT_PROGRAMS; i++) {
        const struct event_program_state *state = &states[i];
        uint64_t runs, ns;
        json_object_set_new(all, event_programs[i].name,
                            json_pack("{s:b, s:s*, s:s, s:s}", "attached", state->attached,
                                      "stand_in",
                                      state->stood_in ? event_programs[i].stand_in : NULL, "gives",
                                      event_programs[i].gives, "reason", state->reason));
        if (!program_cost(programs, states, i, &runs, &ns))
            continue;
        json_t *program = json_object_get(all, event_programs[i].name);
        json_object_set_new(program, "runs", json_integer((json_int_t)runs));
        json_object_set_new(program, "mean_ns", json_real((double)ns / (double)runs));
    }
    return all;
}

unsigned long long events_programs_skipped(const struct events_bpf *programs)
{
    unsigned long long skipped = 0;
    struct bpf_program *program;
    bpf_object__for_each_program(program, programs->obj)
    {
        int fd = bpf_program__fd(program);
        struct bpf_prog_info info = {0};
        uint32_t info_bytes = sizeof info;
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &info_bytes) == 0)
            skipped += info.recursion_misses;
    }
    return skipped;
}
