// SPDX-License-Identifier: MIT
#include "analysis/decomposition/components.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

static const struct component fixed_components[FIXED_COMPONENTS] = {
#define COMPONENT(NAME, called, ROLE, CLASS, counts, divided, remedy, means)                       \
    {.name = called,                                                                               \
     .role = ROLE_##ROLE,                                                                          \
     .class = CAUSE_##CLASS,                                                                       \
     .explains = (counts),                                                                         \
     .functions = (divided),                                                                       \
     .category = (remedy)},
#include "analysis/decomposition/causes.tbl.h"
};

// What is a part of which one (causes.tbl.h).
static void join_parts(struct component *fixed)
{
#define COMPONENT_PART(NAME, WHOLE, words)                                                         \
    fixed[COMPONENT_##NAME].part = (words);                                                        \
    fixed[COMPONENT_##NAME].whole = COMPONENT_##WHOLE + 1;
#include "analysis/decomposition/causes.tbl.h"
}

const char *cause_class_name(enum cause_class class)
{
    switch (class) {
#define CAUSE_CLASS(NAME, name, means)                                                             \
    case CAUSE_##NAME:                                                                             \
        return name;
#include "analysis/decomposition/causes.tbl.h"
    }
    return "?";
}

enum {
    CORE_ROLES = 2,  // R or A
    TIER_BYTES = 40, // of another server's name, with which causes there begin
};

static const char own_work[] = "the server's own work"; // a category

static bool is_apart(const char *category)
{
    return category &&
           (strcmp(category, "Taillight itself") == 0 || strcmp(category, "virtual machine") == 0);
}

static struct component stand_apart(struct component component)
{
    component.apart = is_apart(component.category);
    component.explains &= !component.apart;
    return component;
}

int component_family_length(const char *name)
{
    const char *slash = strchr(name, '/'), *own = strchr(name, ':');
    size_t end = strlen(name), digits = 0;
    if (slash && slash != name && !(own && own < slash))
        return (int)(slash - name);
    while (digits < end && isdigit((unsigned char)name[end - digits - 1]))
        digits++;
    const char *number = name + end - digits;
    bool numbered = own && digits && number > own + 2 && strchr("-_#./ ", number[-1]);
    return (int)(numbered ? end - digits - 1 : end);
}

char *component_context_name(const char *name, enum span_kind kind, char *out, size_t bytes)
{
    switch (kind) {
    case SPAN_TASK:
        snprintf(out, bytes, "%.*s", component_family_length(name), name);
        return out;
    case SPAN_SOFTIRQ:
    case SPAN_IRQ:
    case SPAN_VECTOR:
        snprintf(out, bytes, "%.50s %s", name, span_kind_word(kind));
        return out;
    case SPAN_STOLEN: // these names say enough by themselves
    case SPAN_IDLE:
    case SPAN_UNKNOWN:
    case SPAN_FUNCTION:
        break;
    }
    snprintf(out, bytes, "%s", name);
    return out;
}

static struct component context_component(const struct component_table *table, const char *name,
                                          enum span_kind kind, enum core_role role)
{
    struct component component = {.role = role,
                                  .class = CAUSE_CONTEXT,
                                  .explains = true,
                                  .functions = true,
                                  .interrupts = kind != SPAN_TASK};
    component_context_name(name, kind, component.name, sizeof component.name);
    component.category = categories_of_context(table->categories, kind, name);
    return component;
}

static uint64_t hash_of(const struct component *component)
{
    return hash_pair(hash_bytes(component->name, strlen(component->name)), component->role);
}

// -1: it is not there.
static int64_t find(const struct component_table *table, const struct component *wanted)
{
    const struct component *all = table->components.items;
    const uint32_t found =
        map_find(&table->by_name, hash_of(wanted), at,
                 all[at].role == wanted->role && strcmp(all[at].name, wanted->name) == 0);
    return found == MAP_NONE ? -1 : (int64_t)found;
}

static int64_t add(struct component_table *table, const struct component *component)
{
    const size_t number = table->components.count;
    if (array_push(&table->components, stand_apart(*component)) < 0 ||
        map_add(&table->by_name, hash_of(component), number) < 0)
        return -1;
    return (int64_t)number;
}

static int64_t find_or_add(struct component_table *table, const struct component *wanted)
{
    const int64_t number = find(table, wanted);
    return number < 0 ? add(table, wanted) : number;
}

// Found by their names, as those that appear with the first context of theirs.
static int add_event_components(struct component_table *table)
{
    static const struct {
        enum span_kind kind;
        const char *name;
    } rows[] = {
#define EVENT_COMPONENT(KIND, name) {SPAN_##KIND, name},
#include "profiler/bpf/events.tbl.h"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (enum core_role role = ROLE_R; role <= ROLE_A; role++) {
            struct component one = context_component(table, rows[i].name, rows[i].kind, role);
            if (add(table, &one) < 0)
                return -1;
        }
    return 0;
}

int component_table_init(struct component_table *table, const struct host_timeline *host,
                         const struct host_timeline *client, const struct categories *categories)
{
    *table = (struct component_table){.host = host, .client = client, .categories = categories};
    size_t names = host ? host->names.count : 0, clients = client ? client->names.count : 0;
    table->by_context = calloc((names + 1) * SPAN_KINDS * CORE_ROLES, sizeof *table->by_context);
    table->by_client = calloc((clients + 1) * SPAN_KINDS, sizeof *table->by_client);
    table->spins = calloc(names + 1, sizeof *table->spins);
    if (!table->spins || !table->by_context || !table->by_client)
        return -1;
    for (int i = 0; i < FIXED_COMPONENTS; i++)
        if (array_push(&table->components, stand_apart(fixed_components[i])) < 0)
            return -1;
    join_parts(table->components.items);
    return add_event_components(table);
}

void component_table_fini(struct component_table *table)
{
    free(table->spins);
    free(table->by_context);
    free(table->by_client);
    table->spins = NULL;
    table->by_context = table->by_client = NULL;
    array_free(&table->components);
    map_free(&table->by_name);
}

int64_t component_of_wait(struct component_table *table, const char *name)
{
    static const char asleep[] = "asleep in ";
    struct component component = {.role = ROLE_A, .class = CAUSE_GAP, .explains = true};
    if (strcmp(name, fixed_components[COMPONENT_UNKNOWN_WAIT].name) == 0)
        return COMPONENT_UNKNOWN_WAIT;
    // Copied, not formatted: with sanitizers GCC takes the name for one that may be NULL there.
    memccpy(component.name, name, '\0', sizeof component.name - 1);
    const int64_t number = find(table, &component);
    if (number >= 0)
        return number;
    if (strncmp(name, asleep, sizeof asleep - 1) == 0)
        component.category =
            categories_of_function(table->categories, name + sizeof asleep - 1, true);
    if (!component.category)
        component.category = categories_of_wait(table->categories, name);
    return add(table, &component);
}

int64_t component_of_collectors_pages(struct component_table *table)
{
    const int64_t whole = component_of_wait(table, "garbage collection");
    if (whole < 0)
        return -1;
    struct component component = table->components.items[whole];
    strcpy(component.name, "garbage collection: page faults meanwhile");
    component.part = "page faults meanwhile";
    component.whole = (uint32_t)whole + 1;
    return find_or_add(table, &component);
}

int64_t component_of_peer(struct component_table *table, const char *name, const char *tier,
                          const char *category)
{
    static const char pool[] = "waiting for a free connection";
    struct component component = {.role = ROLE_A, .class = CAUSE_GAP, .explains = true};
    component.category = strncmp(name, pool, sizeof pool - 1) == 0 ? "connection pool" : category;
    snprintf(component.name, sizeof component.name, "%s", name);
    snprintf(component.tier, sizeof component.tier, "%s", tier);
    return find_or_add(table, &component);
}

int64_t component_of_tier(struct component_table *table, uint32_t number, const char *tier)
{
    struct component component = table->components.items[number];
    if (component.tier[0])
        return number; // at a server further down
    component.name[0] = '\0';
    text_append(component.name, sizeof component.name, "%.*s: %s", TIER_BYTES, tier,
                table->components.items[number].name);
    snprintf(component.tier, sizeof component.tier, "%s", tier);
    component.explains = !component.apart;
    component.functions = false;
    if (component.whole) {
        const int64_t whole = component_of_tier(table, component.whole - 1, tier);
        if (whole < 0)
            return -1;
        component.whole = (uint32_t)whole + 1;
    }
    return find_or_add(table, &component);
}

bool component_is_at_tier(const char *name, const char *tier)
{
    size_t length = strnlen(tier, TIER_BYTES);
    return length && strncmp(name, tier, length) == 0 && name[length] == ':';
}

int64_t component_of_context(struct component_table *table, const struct span *span,
                             enum core_role role)
{
    size_t slot =
        ((size_t)span->name * SPAN_KINDS + span->kind) * CORE_ROLES + (role == ROLE_A ? 1 : 0);
    if (table->by_context[slot])
        return (int64_t)table->by_context[slot] - 1;
    struct component component =
        context_component(table, table->host->names.items[span->name], span->kind, role);
    int64_t number = find_or_add(table, &component);
    if (number >= 0)
        table->by_context[slot] = (uint32_t)number + 1;
    return number;
}

int64_t component_of_client(struct component_table *table, const struct span *span)
{
    uint32_t *slot = &table->by_client[(size_t)span->name * SPAN_KINDS + span->kind];
    if (*slot)
        return (int64_t)*slot - 1;
    struct component component =
        context_component(table, table->client->names.items[span->name], span->kind, ROLE_CLIENT);
    component.functions = false;
    component.intrudes = span->kind == SPAN_TASK;
    // The load is Taillight itself: what its other processes do there makes the client late, too.
    if (!component.category || strcmp(component.category, "virtual machine") != 0)
        component.category = "client's cores";
    int64_t number = find_or_add(table, &component);
    if (number >= 0)
        *slot = (uint32_t)number + 1;
    return number;
}

int64_t component_of_client_sleep(struct component_table *table, const char *name)
{
    struct component component = fixed_components[COMPONENT_CLIENT_ASLEEP];
    snprintf(component.name, sizeof component.name, "%.*s", CAUSE_NAME_BYTES - 1, name);
    return find_or_add(table, &component);
}

int64_t component_of_own_thread(struct component_table *table, const struct span *task,
                                enum core_role role, bool forked)
{
    char name[CAUSE_NAME_BYTES];
    struct component component = {.role = role,
                                  .class = CAUSE_CONTEXT,
                                  .explains = true,
                                  .functions = true,
                                  .category = forked ? "forked child" : own_work};
    component_context_name(table->host->names.items[task->name], task->kind, name, sizeof name);
    const char *own = strchr(name, ':');
    snprintf(component.name, sizeof component.name,
             forked ? "%.48s (forked child)" : "%.48s (own thread)",
             own && !forked ? own + 1 : name);
    return find_or_add(table, &component);
}

int64_t component_of_process(struct component_table *table, const struct span *task,
                             enum core_role role, uint32_t process)
{
    const char *name = table->host->names.items[task->name];
    const int length = component_family_length(name);
    struct component component = {
        .role = role, .class = CAUSE_CONTEXT, .explains = true, .functions = true};
    snprintf(component.name, sizeof component.name, "%.*s (process %u)", length < 40 ? length : 40,
             name, process);
    const int64_t number = find(table, &component);
    if (number >= 0)
        return number;
    component.category = categories_of_context(table->categories, task->kind, name);
    return add(table, &component);
}

int64_t component_of_unknown(struct component_table *table, const struct span *span,
                             enum core_role role)
{
    enum fixed_component plain = role == ROLE_A ? COMPONENT_UNKNOWN_A : COMPONENT_UNKNOWN_R;
    const char *name = span ? table->host->names.items[span->name] : NULL;
    if (!name || strcmp(name, fixed_components[plain].name) == 0)
        return plain;
    struct component component = fixed_components[plain];
    snprintf(component.name, sizeof component.name, "lost records (%.48s)", name);
    return find_or_add(table, &component);
}

int64_t component_of_application(struct component_table *table,
                                 const struct applications *applications, uint32_t application,
                                 enum core_role role)
{
    struct component component = {.role = role, .class = CAUSE_BLOCKING, .explains = true};
    snprintf(component.name, sizeof component.name, "%s",
             applications->items.items[application].name);
    const int64_t number = find(table, &component);
    if (number >= 0)
        return number;
    component.category = categories_of_context(table->categories, SPAN_TASK, component.name);
    return add(table, &component);
}

int64_t component_of_holdup(struct component_table *table, const struct holdup *holdup)
{
    static const uint32_t fixed[HOLDUP_QUEUE] = {
#define HOLDUP_COMPONENT(NAME) [HOLDUP_##NAME] = COMPONENT_##NAME
        HOLDUP_COMPONENT(TIMEOUT_TO_SERVER),
        HOLDUP_COMPONENT(FAST_TO_SERVER),
        HOLDUP_COMPONENT(PROBE_TO_SERVER),
        HOLDUP_COMPONENT(LOCAL_TO_SERVER),
        HOLDUP_COMPONENT(TIMEOUT_TO_CLIENT),
        HOLDUP_COMPONENT(FAST_TO_CLIENT),
        HOLDUP_COMPONENT(PROBE_TO_CLIENT),
        HOLDUP_COMPONENT(LOCAL_TO_CLIENT),
        HOLDUP_COMPONENT(WINDOW),
        HOLDUP_COMPONENT(CONGESTION),
        HOLDUP_COMPONENT(NAGLE),
        HOLDUP_COMPONENT(CORK),
        HOLDUP_COMPONENT(PACING),
#undef HOLDUP_COMPONENT
    };
    struct component component = {.role = ROLE_A, .class = CAUSE_TRANSPORT, .explains = true};
    if (holdup->kind < HOLDUP_QUEUE) {
        component = fixed_components[fixed[holdup->kind]];
        if (!holdup->by)
            return fixed[holdup->kind];
        text_append(component.name, sizeof component.name, ", dropped by %s",
                    event_loss_name(holdup->by));
        const char *category = categories_of_wait(table->categories, component.name);
        if (category)
            component.category = category;
        return find_or_add(table, &component);
    }
    snprintf(component.name, sizeof component.name, "qdisc (%s)", event_queue_name(holdup->by));
    if (holdup->kind == HOLDUP_CLIENT_QUEUE)
        component.role = ROLE_CLIENT;
    component.category = "queueing discipline";
    return find_or_add(table, &component);
}

int64_t component_of_held_question(struct component_table *table, uint8_t why, const char *whom,
                                   bool of_others)
{
    struct component component = fixed_components[why == HELD_CONGESTION ? COMPONENT_CONGESTION
                                                  : why == HELD_CORK     ? COMPONENT_CORK
                                                  : why == HELD_PACING   ? COMPONENT_PACING
                                                                         : COMPONENT_NAGLE];
    char name[CAUSE_NAME_BYTES] = "";
    text_append(name, sizeof name, "%s%s, asking %s", of_others ? "head-of-line blocking: " : "",
                component.name, whom);
    strcpy(component.name, name);
    return find_or_add(table, &component);
}

int64_t component_of_hop(struct component_table *table, const struct hop_stay *stay,
                         const struct hop_place *places)
{
    uint32_t *slot = &table->by_link[stay->from][stay->to][stay->part];
    const char *qdisc = hop_stay_qdisc(stay, places);
    struct component component = {
        .role = ROLE_NETWORK, .class = CAUSE_STAGE, .explains = true, .category = "network"};
    if (*slot)
        return (int64_t)*slot - 1;
    if (stay->part == STAY_IN_QUEUE) {
        snprintf(component.name, sizeof component.name, "in the queue of %.80s (%s)",
                 places[stay->from].name, qdisc[0] ? qdisc : "?");
        component.category = "queueing discipline";
    } else {
        snprintf(component.name, sizeof component.name, "hop %.52s -> %.52s",
                 places[stay->from].name, places[stay->to].name);
        if (qdisc[0])
            text_append(component.name, sizeof component.name, " (qdisc %s)", qdisc);
    }
    int64_t number = find_or_add(table, &component);
    if (number >= 0)
        *slot = (uint32_t)number + 1;
    return number;
}

// What the names of components begin with that say what packets waited for between two hops.
static size_t link_words(const struct hop_place *from, const struct hop_place *to,
                         char out[CAUSE_NAME_BYTES])
{
    enum { SHOWN = 36 }; // of a hop's name, so that there is room for what else they say
    return (size_t)snprintf(out, CAUSE_NAME_BYTES, "hop %.*s -> %.*s, ", SHOWN, from->name, SHOWN,
                            to->name);
}

const char *component_hop_wait(const char *name, const struct hop_place *from,
                               const struct hop_place *to)
{
    char words[CAUSE_NAME_BYTES];
    const size_t length = link_words(from, to, words);
    return strncmp(name, words, length) == 0 ? name + length : NULL;
}

int64_t component_of_hop_behind(struct component_table *table, const struct hop_stay *stay,
                                const struct hop_place *places, const struct span *context)
{
    char holder[CAUSE_NAME_BYTES];
    const char *name = table->host->names.items[context->name];
    struct component component = {
        .role = ROLE_NETWORK,
        .class = CAUSE_CONTEXT,
        .explains = true,
        .category = categories_of_context(table->categories, context->kind, name)};
    component_context_name(name, context->kind, holder, sizeof holder);
    link_words(&places[stay->from], &places[stay->to], component.name);
    text_append(component.name, sizeof component.name, "behind %s", holder);
    return find_or_add(table, &component);
}

int64_t component_of_hop_machine(struct component_table *table, const struct hop_stay *stay,
                                 const struct hop_place *places, const char *thread,
                                 const struct host_timeline *host, const struct span *context,
                                 const char *why)
{
    char holder[CAUSE_NAME_BYTES];
    const char *name = context ? host->names.items[context->name] : "";
    struct component component = {
        .role = ROLE_NETWORK,
        .class = CAUSE_CONTEXT,
        .explains = true,
        .category = context ? categories_of_context(table->categories, context->kind, name)
                            : categories_of_wait(table->categories, why)};
    if (context)
        component_context_name(name, context->kind, holder, sizeof holder);
    link_words(&places[stay->from], &places[stay->to], component.name);
    text_append(component.name, sizeof component.name, "%s %s%s", thread, context ? "behind " : "",
                context ? holder : why);
    return find_or_add(table, &component);
}

static bool is_spinning(const char *function)
{
    // Entered only when a lock is not free.
    static const char *const names[] = {
        "native_queued_spin_lock_slowpath",
        "queued_spin_lock_slowpath",
        "__pv_queued_spin_lock_slowpath",
        "queued_read_lock_slowpath",
        "queued_write_lock_slowpath",
        "osq_lock",
        "mutex_spin_on_owner",
        "rwsem_spin_on_owner",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(function, names[i]) == 0)
            return true;
    return false;
}

bool component_spins(const struct component_table *table, const struct span *function)
{
    uint8_t *known = &table->spins[function->name];
    if (!*known)
        *known = is_spinning(table->host->names.items[function->name]) + 1;
    return *known > 1;
}

int64_t component_of_spin(struct component_table *table, const struct span *const *functions,
                          unsigned count, enum core_role role)
{
    struct component component = {
        .role = role, .class = CAUSE_FUNCTION, .explains = true, .category = "kernel locks"};
    const char *name = NULL, *category = "locking";
    while (count > 0 && category && strcmp(category, "locking") == 0) {
        const struct span *function = functions[--count];
        name = table->host->names.items[function->name];
        category = categories_of_function(table->categories, name, function->id & SPAN_ID_KERNEL);
    }
    snprintf(component.name, sizeof component.name, "spinning for a lock in %.60s", name);
    return find_or_add(table, &component);
}

int64_t component_of_function(struct component_table *table, const char *function,
                              enum function_anomaly anomaly, uint32_t within, const char *category)
{
    static const char *const forms[ANOMALIES] = {
        [FUNCTION_SLOWER] = "%.47s slower",
        [FUNCTION_MORE_CALLS] = "%.42s called more often",
        [FUNCTION_UNEXPECTED] = "unexpected %.51s",
    };
    struct component component = {.role = table->components.items[within].role,
                                  .class = CAUSE_FUNCTION,
                                  .explains = true,
                                  .category = category};
    snprintf(component.name, sizeof component.name, forms[anomaly], function);
    return find_or_add(table, &component);
}
