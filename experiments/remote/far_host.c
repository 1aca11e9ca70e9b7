// SPDX-License-Identifier: MIT
#include "experiments/remote/far_host.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_numbers.h"
#include "base/units.h"
#include "experiments/common/command_line.h"
#include "experiments/common/program_path.h"
#include "experiments/remote/link_file.h"
#include "experiments/common/supervisor.h"

enum {
    SET_UP_TIMEOUT_MS = 120000, // enough to copy over a slow link; one that is down ends sooner
    LINK_WORDS_MOST = 600,
};

char *far_host_path(const struct far_host *far, const char *name, char path[FAR_PATH_BYTES])
{
    snprintf(path, FAR_PATH_BYTES, "%s/%.60s", far->directory, name);
    return path;
}

// --- setting up ----------------------------------------------------------------------------------

static int make_private_directory(struct far_host *far, const struct experiment_host *plan,
                                  char directory[FAR_PATH_BYTES], struct error *err)
{
    int result = keeper_start(&far->here, false, err);
    if (result < 0)
        return result;
    // The name is short, since ssh appends to it for its socket, whose path must fit into 108
    // bytes.
    snprintf(directory, FAR_PATH_BYTES, "/tmp/taillight-%d-%llx", getpid(),
             (unsigned long long)supervisor_now_ns() & 0xffffffffffff);
    snprintf(far->link_file, sizeof far->link_file, "%.100s/%.40s.json", directory, plan->name);
    if (far->log_path[0] == '\0')
        snprintf(far->log_path, sizeof far->log_path, "%.100s/log", directory);
    return keeper_make_directory(&far->here, directory, err);
}

static int start_link(struct far_host *far, struct keeper *keeper, struct error *err)
{
    char self[4096];
    struct process link;
    const char *const argv[] = {self,       "link",     far->link_file,
                                "--deploy", "--",       "/proc/self/exe",
                                "agent",    "--keeper", NULL};
    // If we die, what runs there ends by and by, over this connection.
    const struct process_place place = {
        .log_path = far->log_path, .pipe_input = true, .pipe_output = true, .writes_at_end = true};
    int result = program_path_self(self, sizeof self, err);
    if (result == 0)
        result = process_start(&link, argv, &place, err);
    return result == 0
               ? keeper_start_far(keeper, link, far->log_path, far->what, SET_UP_TIMEOUT_MS, err)
               : result;
}

// An IPv4 address in the form that everyone here writes it in.
static bool is_address(const char *text)
{
    struct in_addr address;
    return inet_pton(AF_INET, text, &address) == 1;
}

// Checks that the machine has the experiment's cores, and chooses those for our own work.
static int divide_cores(struct far_host *far, const struct experiment_host *plan, const char *text,
                        struct error *err)
{
    char lack[200];
    cpu_set_t common, missing;
    if (units_parse_cores(text, &far->cores, err) < 0)
        return -ERROR_INPUT;
    CPU_AND(&common, &plan->cores, &far->cores);
    CPU_XOR(&missing, &common, &plan->cores);
    if (CPU_COUNT(&missing))
        return error_set(err, ERROR_INPUT, "its machine has no core %s for us, only %s",
                         units_format_cores(&missing, lack, sizeof lack), text);
    CPU_XOR(&far->helpers, &far->cores, &common);
    if (CPU_COUNT(&far->helpers) == 0)
        far->helpers = far->cores;
    return 0;
}

static int take_facts(struct far_host *far, struct keeper *keeper,
                      const struct experiment_host *plan, struct error *err)
{
    char text[KEEPER_TEXT_BYTES];
    const char *cores, *address, *directory, *boot_id, *kernel;
    int uid, stale;
    int result = keeper_facts(keeper, plan->nic ? plan->nic : "", text, err);
    if (result < 0)
        return result;
    json_t *facts = json_loads(text, 0, NULL);
    if (json_unpack(facts, "{s:i, s:s, s:s, s:s, s:s, s:s, s:i}", "uid", &uid, "cores", &cores,
                    "address", &address, "directory", &directory, "boot_id", &boot_id, "kernel",
                    &kernel, "stale_journals", &stale) < 0 ||
        stale < 0 || !is_address(address) ||
        !link_file_directory_is_plain(plan->directory, directory)) {
        result = error_set(err, ERROR_INPUT,
                           "what it says of itself cannot be: %.200s; is that machine what it "
                           "should be?",
                           text);
    } else {
        far->is_root = uid == 0;
        far->stale_journals = (unsigned)stale;
        snprintf(far->address, sizeof far->address, "%s", address);
        snprintf(far->directory, sizeof far->directory, "%.255s", directory);
        snprintf(far->boot_id, sizeof far->boot_id, "%s", boot_id);
        snprintf(far->kernel, sizeof far->kernel, "%s", kernel);
        result = divide_cores(far, plan, cores, err);
    }
    json_decref(facts);
    return result < 0 ? error_prefix(err, "host %s (%s)", plan->name, plan->address) : 0;
}

static int set_up_host(struct far_host *far, struct keeper *keeper,
                       const struct experiment_host *plan, struct error *err)
{
    char private[FAR_PATH_BYTES], control[FAR_PATH_BYTES];
    int result = make_private_directory(far, plan, private, err);
    if (result < 0)
        return result;
    snprintf(control, sizeof control, "%.100s/s", private);
    json_t *link = link_file_make(plan, control);
    result = link ? json_write(link, JSON_COMPACT, far->link_file, err)
                  : error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0)
        result = start_link(far, keeper, err);
    if (result == 0)
        result = take_facts(far, keeper, plan, err);
    if (result == 0)
        result = keeper_clock_offset(keeper, &far->clock_offset_ns, &far->clock_bound_ns, err);
    if (result == 0) {
        json_object_set_new(link, "directory", json_string(far->directory));
        result = json_write(link, JSON_COMPACT, far->link_file, err);
    }
    json_decref(link);
    return result;
}

int far_host_start(struct far_host *far, struct keeper *keeper, const struct experiment_host *plan,
                   const char *log_path, struct error *err)
{
    struct error ignored;
    *far = (struct far_host){.here.channel = -1};
    *keeper = (struct keeper){.channel = -1};
    snprintf(far->log_path, sizeof far->log_path, "%s", log_path ? log_path : "");
    snprintf(far->what, sizeof far->what, "host %s", plan->name);
    int result = set_up_host(far, keeper, plan, err);
    if (result < 0) {
        keeper_end(keeper, &ignored);
        far_host_end(far);
    }
    return result;
}

void far_host_pretend(struct far_host *far, const struct experiment_host *plan)
{
    *far = (struct far_host){.here.channel = -1, .cores = plan->cores, .is_root = true};
    snprintf(far->directory, sizeof far->directory, "%.200s/taillight-HASH", plan->directory);
    snprintf(far->link_file, sizeof far->link_file, "LINK");
}

char *far_host_describe(const struct experiment_host *plan, char *out, size_t out_bytes)
{
    struct link_file link = {.document = link_file_make(plan, "SOCKET"), .address = plan->address};
    const char *words[LINK_WORDS_MAX];
    struct error ignored;
    out[0] = '\0';
    if (link.document && link_file_words(&link, true, NULL, words, &ignored) == 0)
        process_describe(words, out, out_bytes);
    link_file_free(&link);
    return out;
}

void far_host_end(struct far_host *far)
{
    struct error ignored;
    keeper_end(&far->here, &ignored);
}

// --- processes there -----------------------------------------------------------------------------

static int start_link_process(const struct far_host *far, const char *direction, const char *folder,
                              const char *const *argv, const struct process_place *place,
                              struct process *process, struct error *err)
{
    char self[4096], cores[1024];
    struct command_line line = {.failed = false};
    struct process_place here = *place;
    int result = program_path_self(self, sizeof self, err);
    if (result < 0)
        return result;
    command_line_add_list(&line, (const char *const[]){self, "link", far->link_file, NULL});
    if (place->cores)
        command_line_add_option(&line, "--cores", "%s",
                                units_format_cores(place->cores, cores, sizeof cores));
    if (place->nice)
        command_line_add_option(&line, "--nice", "%d", place->nice);
    if (place->cgroup)
        command_line_add_option(&line, "--cgroup", "%s", place->cgroup);
    if (place->discard_output)
        command_line_add(&line, "--discard");
    if (place->directory)
        command_line_add(&line, "--inside");
    if (place->last_words)
        command_line_add_option(&line, "--last-words", "%s", place->last_words);
    if (direction)
        command_line_add_option(&line, direction, "%s", folder);
    for (const char *const *one = place->environment; one && *one; one++)
        command_line_add_option(&line, "--set", "%s", *one);
    command_line_add(&line, "--");
    command_line_add_list(&line, argv);
    here.cores = NULL; // those are cores of the other machine
    here.cgroup = NULL;
    here.environment = NULL;
    here.netns = NULL;
    here.nice = 0;
    here.directory = NULL;
    result = command_line_result(&line, err);
    if (result == 0 && line.words.count > LINK_WORDS_MOST)
        result = error_set(err, ERROR_FAILED, "a command of more than %d words", LINK_WORDS_MOST);
    if (result == 0)
        result = process_start(process, line.words.items, &here, err);
    command_line_free(&line);
    return result;
}

int far_host_process(const struct far_host *far, const char *const *argv,
                     const struct process_place *place, struct process *process, struct error *err)
{
    return start_link_process(far, NULL, NULL, argv, place, process, err);
}

int far_host_send(const struct far_host *far, const char *from_here, const char *to_there,
                  const struct process_place *place, struct process *process, struct error *err)
{
    const char *const argv[] = {"tar", "-xf", "-", "-C", to_there, NULL};
    return start_link_process(far, "--from", from_here, argv, place, process, err);
}

// Not by tar's own options, which each tar has others of. The names are the capture's.
static const char fetch_script[] = "cd \"$1\" && case $2 in\n"
                                   "    1) set -- $(ls -A | grep -xE 'perf.data|symfs') ;;\n"
                                   "    2) set -- $(ls -A | grep -vxE 'perf.data|symfs') ;;\n"
                                   "    *) set -- . ;;\n"
                                   "esac && exec tar -cf - \"$@\"";

int far_host_fetch(const struct far_host *far, const char *from_there, const char *to_here,
                   enum far_part part, const struct process_place *place, struct process *process,
                   struct error *err)
{
    const char number[] = {(char)('0' + (int)part), '\0'};
    const char *const argv[] = {"sh", "-c", fetch_script, "sh", from_there, number, NULL};
    return start_link_process(far, "--into", to_here, argv, place, process, err);
}
