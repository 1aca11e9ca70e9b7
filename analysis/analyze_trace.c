// SPDX-License-Identifier: MIT
#include "analysis/analyze_trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_result_print.h"
#include "analysis/pt/pt_trace.h"
#include "analysis/samples/sample_profile.h"
#include "analysis/trace_export.h"
#include "base/array.h"
#include "base/error.h"
#include "base/json_numbers.h"
#include "base/options.h"
#include "base/rights.h"
#include "base/progress.h"
#include "base/text.h"

// --- a perf.data of samples ----------------------------------------------------------------------
// Samples and no processor trace: which functions and threads they were in.

struct samples_analyze_options {
    const char *symfs;  // NULL: code is looked for on this host only
    const char *folded; // file for folded stacks, NULL: none
    uint64_t top;       // functions listed
    bool json;
};

enum { THREADS_LISTED = 10, NOTES_PRINTED = 8 };

struct sums {
    struct sample_functions functions;
    struct sample_functions threads; // by their name
    uint64_t cores;
    double seconds; // from the first sample to the last
};

static int most_total_first(const void *left, const void *right)
{
    const struct sample_function *a = left, *b = right;
    return (a->total < b->total) - (a->total > b->total);
}

static int add_up(const struct sample_profile *profile, struct sums *sums)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct named_sample *sample = &profile->samples.items[i];
        first = sample->time_ns < first ? sample->time_ns : first;
        last = sample->time_ns > last ? sample->time_ns : last;
        sums->cores += i == 0 || sample->core != profile->samples.items[i - 1].core;
    }
    sums->seconds = (double)(last - first) / 1e9;
    for (size_t i = 1; i < profile->nodes.count; i++) {
        const struct sample_node *node = &profile->nodes.items[i];
        if (node->parent == 0 &&
            array_push(&sums->threads, (struct sample_function){node->name, 0, node->total}) < 0)
            return -1;
    }
    array_sort(&sums->threads, most_total_first);
    return sample_profile_functions(profile, &sums->functions);
}

// --- output --------------------------------------------------------------------------------------

static int print_json(const struct sample_profile *profile, const struct sums *sums, uint64_t top,
                      struct error *err)
{
    json_t *functions = json_array(), *threads = json_array(), *notes = json_array();
    for (size_t i = 0; i < sums->functions.count && i < top; i++)
        json_array_append_new(functions,
                              json_pack("{s:s, s:I, s:I}", "function",
                                        profile->names.items[sums->functions.items[i].name], "self",
                                        (json_int_t)sums->functions.items[i].self, "total",
                                        (json_int_t)sums->functions.items[i].total));
    for (size_t i = 0; i < sums->threads.count; i++)
        json_array_append_new(threads,
                              json_pack("{s:s, s:I}", "thread",
                                        profile->names.items[sums->threads.items[i].name],
                                        "samples", (json_int_t)sums->threads.items[i].total));
    for (size_t i = 0; i < profile->notes.count; i++)
        json_array_append_new(notes, json_string(profile->notes.items[i]));
    json_t *document = json_pack(
        "{s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "kind", "samples",
        "event", profile->event, "samples", (json_int_t)profile->samples.count, "cores",
        (json_int_t)sums->cores, "seconds", sums->seconds, "lost", (json_int_t)profile->lost,
        "throttled", (json_int_t)profile->throttled, "unnamed", (json_int_t)profile->unnamed,
        "without_chain", (json_int_t)profile->without_chain, "left_out",
        (json_int_t)profile->left_out, "threads", threads, "functions", functions, "notes", notes);
    return json_print_new(document, JSON_INDENT(2), "the result", err);
}

static double percent(uint64_t part, const struct sample_profile *profile)
{
    return 100 * (double)part / (double)profile->samples.count;
}

static void print(const char *path, const struct sample_profile *profile, const struct sums *sums,
                  uint64_t top)
{
    printf("%s: samples of %s and no processor trace: where the cores were at some instants, "
           "not every call\n",
           path, profile->event[0] ? profile->event : "an event without a name");
    printf("%s samples in %s on %" PRIu64
           " core%s; %s records lost, %s times too many for the kernel\n",
           TEXT_COUNT(profile->samples.count), TEXT_NS(1e9 * sums->seconds), sums->cores,
           sums->cores == 1 ? "" : "s", TEXT_COUNT(profile->lost), TEXT_COUNT(profile->throttled));
    if (profile->unnamed || profile->without_chain || profile->left_out)
        printf("%s in code without symbols, %s without callers, %s left out\n",
               TEXT_COUNT(profile->unnamed), TEXT_COUNT(profile->without_chain),
               TEXT_COUNT(profile->left_out));
    printf("\n%8s  thread\n", "samples");
    for (size_t i = 0; i < sums->threads.count && i < THREADS_LISTED; i++)
        printf("%6.2f %%  %s\n", percent(sums->threads.items[i].total, profile),
               profile->names.items[sums->threads.items[i].name]);
    printf("\n%8s  %8s  function\n", "itself", "in all");
    for (size_t i = 0; i < sums->functions.count && i < top; i++)
        printf("%6.2f %%  %6.2f %%  %s\n", percent(sums->functions.items[i].self, profile),
               percent(sums->functions.items[i].total, profile),
               profile->names.items[sums->functions.items[i].name]);
    for (size_t i = 0; i < profile->notes.count && i < NOTES_PRINTED; i++)
        printf("%s%s\n", i ? "" : "\n", profile->notes.items[i]);
    if (profile->notes.count > NOTES_PRINTED)
        printf("... and %s more: --json has all\n",
               TEXT_COUNT(profile->notes.count - NOTES_PRINTED));
}

// Prints on stdout.
static int samples_analyze(const char *path, const struct samples_analyze_options *options,
                           struct error *err)
{
    struct sample_profile profile;
    struct sums sums = {0};
    int result = sample_profile_load(&profile, path, options->symfs, err);
    if (result == 0 && options->folded)
        result = sample_profile_write_folded(&profile, options->folded, err);
    if (result == 0 && add_up(&profile, &sums) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for the functions of %s samples",
                           TEXT_COUNT(profile.samples.count));
    if (result == 0 && options->json)
        result = print_json(&profile, &sums, options->top, err);
    else if (result == 0)
        print(path, &profile, &sums, options->top);
    array_free(&sums.functions);
    array_free(&sums.threads);
    sample_profile_free(&profile);
    return result;
}

struct analyze_options {
    struct option_list streams, pages, elf_files;
    const char *cpu, *symfs;
    struct pt_export_files files;
    uint64_t from_ns, to_ns, threads, top;
    bool careful, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_LIST("pt", 0, "FILE", struct analyze_options, streams, "a bare Intel PT stream"),
    OPTION_LIST("page", 0, "0xADDRESS=FILE", struct analyze_options, pages,
                "code as it lay in memory at that address"),
    OPTION_LIST("elf", 0, "FILE[@0xBASE]", struct analyze_options, elf_files,
                "code and symbols of an ELF file, mapped at BASE"),
    OPTION_STRING("cpu", 0, "FAMILY/MODEL/STEPPING", struct analyze_options, cpu,
                  "the processor, for its errata"),
    OPTION_STRING("symfs", 0, "DIR", struct analyze_options, symfs,
                  "look for a perf.data's code below DIR first"),
    OPTION_DURATION("from", 0, "TIME", struct analyze_options, from_ns,
                    "decode only from this time after the beginning"),
    OPTION_DURATION("to", 0, "TIME", struct analyze_options, to_ns, "and only up to this"),
    OPTION_COUNT("threads", 0, "N", struct analyze_options, threads, "decode with N threads"),
    OPTION_FLAG("careful", 0, struct analyze_options, careful,
                "let libipt's block decoder do all of it"),
    OPTION_COUNT("top", 0, "N", struct analyze_options, top, "list N functions (25)"),
    OPTION_STRING("perfetto", 0, "FILE", struct analyze_options, files.perfetto,
                  "write all spans for ui.perfetto.dev"),
    OPTION_STRING("folded", 0, "FILE", struct analyze_options, files.folded,
                  "write folded stacks, for flame graphs"),
    OPTION_STRING("csv", 0, "FILE", struct analyze_options, files.csv,
                  "write all functions with their totals"),
    OPTION_STRING("html", 0, "FILE", struct analyze_options, files.page,
                  "write a page with a timeline of the spans"),
    OPTION_FLAG("json", 0, struct analyze_options, json, "print one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct analyze_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "analyze",
    .arguments = "perf.data | trace.json | --pt FILE [--page 0xADDRESS=FILE]... "
                 "[--elf FILE[@0xBASE]]... [options]",
    .summary = "Decodes Intel PT: what ran, for how long, in which function.",
    .details =
        "Of a perf.data with samples and no trace: in which functions and threads they were.\n"
        "Exit codes: 0 done; 1 failed; 2 bad usage or input.",
    .options = options,
};

// A perf.data may be a directory: it has a file named data, and a run folder has none.
static bool is_perf_directory(const char *path)
{
    char inside[4096];
    struct stat status;
    snprintf(inside, sizeof inside, "%s/data", path);
    if (stat(inside, &status) == 0 && S_ISREG(status.st_mode))
        return true;
    snprintf(inside, sizeof inside, "%s/data.0", path);
    return stat(inside, &status) == 0 && S_ISREG(status.st_mode);
}

bool pt_analyze_wants(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat status;
        const char *word = argv[i];
        if (strcmp(word, "--pt") == 0 || strncmp(word, "--pt=", 5) == 0 || strcmp(word, "-") == 0)
            return true;
        // Of a run's options only this one takes a file.
        if (word[0] == '-' || strcmp(argv[i - 1], "--categories") == 0 || stat(word, &status) < 0)
            continue;
        if (!S_ISDIR(status.st_mode) || is_perf_directory(word))
            return true; // a run is a folder
    }
    return false;
}

// --- values of options -------------------------------------------------------------------------

struct givens ARRAY_OF(struct code_given);

static void givens_free(struct givens *givens)
{
    for (size_t i = 0; i < givens->count; i++)
        code_given_free(&givens->items[i]);
    array_free(givens);
}

static int parse_given(const struct option_list *list,
                       int (*parse)(const char *, struct code_given *, struct error *),
                       struct givens *out, struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < list->count; i++) {
        struct code_given given = {0};
        result = parse(list->items[i], &given, err);
        if (result == 0 && array_push(out, given) < 0) {
            code_given_free(&given);
            result = error_set(err, ERROR_FAILED, "out of memory for files of code");
        }
    }
    return result;
}

static int parse_cpu(const char *text, struct pt_cpu *out, struct error *err)
{
    unsigned family, model, stepping;
    int end = 0;
    if (sscanf(text, "%u/%u/%u%n", &family, &model, &stepping, &end) != 3 || text[end] ||
        family > UINT16_MAX || model > UINT8_MAX || stepping > UINT8_MAX)
        return error_set(err, ERROR_INPUT,
                         "--cpu: \"%s\" is not FAMILY/MODEL/STEPPING, e.g. 6/61/4 "
                         "(see /proc/cpuinfo)",
                         text);
    *out = (struct pt_cpu){.vendor = pcv_intel,
                           .family = (uint16_t)family,
                           .model = (uint8_t)model,
                           .stepping = (uint8_t)stepping};
    return 0;
}

// --- loading -----------------------------------------------------------------------------------

static int load_streams(struct pt_trace *trace, const struct analyze_options *given,
                        struct error *err)
{
    struct pt_recorder recorder = {0};
    int result = given->cpu ? parse_cpu(given->cpu, &recorder.cpu, err) : 0;
    for (size_t i = 0; result == 0 && i < given->streams.count; i++)
        result = pt_trace_add_file(trace, given->streams.items[i], PT_NO_CPU, &recorder, err);
    return result < 0 ? result : pt_trace_scan(trace, err);
}

static bool is_json(const char *path)
{
    size_t length = strlen(path);
    return length >= 5 && strcmp(path + length - 5, ".json") == 0;
}

static int load_from(struct pt_trace *trace, const struct analyze_options *given,
                     const struct givens *code, const char *path, struct error *err)
{
    if (path && !is_json(path)) {
        struct code_image_options how = {.symfs = given->symfs,
                                         .recording = path,
                                         .given = code->items,
                                         .given_count = code->count};
        return pt_trace_load_perf(trace, path, &how, err);
    }
    int result = pt_trace_add_code(trace, code->items, code->count, err);
    if (result < 0)
        return result;
    return path ? pt_trace_load_json(trace, path, err) : load_streams(trace, given, err);
}

static int load(struct pt_trace *trace, const struct analyze_options *given, const char *path,
                struct error *err)
{
    struct givens code = {0};
    int result = parse_given(&given->pages, code_given_parse_page, &code, err);
    if (result == 0)
        result = parse_given(&given->elf_files, code_given_parse_elf, &code, err);
    if (result == 0)
        result = load_from(trace, given, &code, path, err);
    givens_free(&code);
    return result;
}

static int choose_window(const struct pt_trace *trace, const struct analyze_options *given,
                         struct pt_window *out, struct error *err)
{
    uint64_t begin = UINT64_MAX;
    for (size_t i = 0; i < trace->streams.count; i++) {
        const struct pt_packets *packets = &trace->streams.items[i]->packets;
        if (packets->first_tsc && packets->first_tsc < begin)
            begin = packets->first_tsc;
    }
    if (begin == UINT64_MAX || !trace->clock.valid)
        return error_set(err, ERROR_INPUT,
                         "--from, --to: this trace has %s, so it cannot be cut by time",
                         begin == UINT64_MAX ? "no TSC packets" : "no conversion of TSC to time");
    if (given->to_ns && given->to_ns <= given->from_ns)
        return error_set(err, ERROR_INPUT, "--to: not after --from");
    double ticks_per_ns = 1 / pt_trace_duration_ns(trace, 1);
    out->from = begin + (uint64_t)((double)given->from_ns * ticks_per_ns);
    out->to = given->to_ns ? begin + (uint64_t)((double)given->to_ns * ticks_per_ns) : UINT64_MAX;
    return 0;
}

// --- the command -------------------------------------------------------------------------------

static int decode(struct pt_trace *trace, const struct analyze_options *given,
                  struct progress *progress, struct error *err)
{
    struct pt_window window;
    struct pt_decode_options how = {.threads = (unsigned)given->threads, .careful = given->careful};
    struct pt_result result;
    if (given->from_ns || given->to_ns) {
        int chosen = choose_window(trace, given, &window, err);
        if (chosen < 0)
            return chosen;
        how.windows = &window;
        how.window_count = 1;
        chosen = pt_trace_refine(trace, &(struct pt_windows){&window, 1, 1}, err);
        if (chosen < 0)
            return chosen;
    }
    progress_phase(progress, "decoding %s stream%s", TEXT_COUNT(trace->streams.count),
                   trace->streams.count == 1 ? "" : "s");
    struct pt_export_files files = given->files;
    files.strips = given->json ? NULL : stdout;
    int decoded = pt_export_decode(trace, &how, &files, &result, err);
    progress_end(progress);
    if (decoded == 0 && given->json) {
        decoded =
            json_print_new(pt_result_json(&result, given->top), JSON_INDENT(2), "the result", err);
    } else if (decoded == 0) {
        pt_result_print(&result, given->top, stdout);
    }
    pt_result_free(&result);
    return decoded;
}

// A recording without any trace, of samples.
static bool is_of_samples(const struct pt_trace *trace)
{
    const struct perf_data *data = trace->recording;
    return data && data->streams.count == 0 && data->counts[PERF_SAMPLE] > 0;
}

static int analyze_samples(const struct analyze_options *given, const char *path, struct error *err)
{
    const struct samples_analyze_options chosen = {.symfs = given->symfs,
                                                   .folded = given->files.folded,
                                                   .top = given->top,
                                                   .json = given->json};
    if (given->files.perfetto || given->files.csv || given->files.page || given->from_ns ||
        given->to_ns || given->careful || given->threads)
        return error_set(err, ERROR_INPUT,
                         "%s: holds samples and no processor trace; only --top, --folded, --symfs "
                         "and --json are for those",
                         path);
    return samples_analyze(path, &chosen, err);
}

static int analyze(const struct analyze_options *given, int positional, char **argv,
                   struct error *err)
{
    struct pt_trace trace;
    struct progress progress;
    if ((positional > 0) == (given->streams.count > 0) || positional > 1)
        return error_set(err, ERROR_INPUT,
                         "name one recording: a perf.data, a trace.json, or streams with --pt; see "
                         "taillight analyze --help");
    if (given->threads > 256)
        return error_set(err, ERROR_INPUT, "--threads: at most 256");
    int result = pt_trace_init(&trace, err);
    if (result < 0)
        return result;
    trace.threads = (unsigned)given->threads;
    trace.windows_only = given->from_ns || given->to_ns;
    progress_init(&progress, given->quiet);
    progress_phase(&progress, "reading the trace");
    result = load(&trace, given, positional ? argv[1] : NULL, err);
    if (result == 0)
        result = decode(&trace, given, &progress, err);
    else
        progress_end(&progress);
    bool samples = result < 0 && positional && strcmp(argv[1], "-") != 0 && is_of_samples(&trace);
    pt_trace_free(&trace);
    return samples ? analyze_samples(given, argv[1], err) : result;
}

int pt_analyze_command(int argc, char **argv)
{
    struct analyze_options given = {.top = 25};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &given, &positional, &help, &err);
    if (result == 0 && !help) // before any of it is read
        result =
            positional
                ? rights_become_owner((const char *const *)(argv + 1), 1, given.quiet, &err)
                : rights_become_owner(given.streams.items, given.streams.count, given.quiet, &err);
    if (result == 0 && !help)
        result = analyze(&given, positional, argv, &err);
    array_free(&given.streams);
    array_free(&given.pages);
    array_free(&given.elf_files);
    return result < 0 ? error_report(&err) : 0;
}
