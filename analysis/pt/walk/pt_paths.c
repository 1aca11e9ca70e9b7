// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    MOST_STRETCHES = 64, // in a path
    MOST_FLOWS = 32,
    FLOWS_A_STRETCH = 3, // at the most
    EARLY = 64,          // a walk that asks no more than that needs no table
    ALL_SLOTS = 2 * PT_PATH_SLOTS,
    CALLED = 1 << 15, // in a slot: not a path, but what was asked for there last
};
_Static_assert((unsigned)PT_PATH_MOST < (unsigned)CALLED, "a path's number fits a slot");

void pt_paths_init(struct pt_paths *paths, struct pt_stretches *stretches,
                   const struct pt_symbols *symbols)
{
    *paths = (struct pt_paths){
        .stretches = stretches, .symbols = symbols, .last = PT_NO_PATH, .most = PT_PATH_MOST};
}

void pt_paths_free(struct pt_paths *paths)
{
    struct room *room = paths->stretches->room;
    room_free(room, paths->slots, ALL_SLOTS * sizeof *paths->slots);
    room_free_array(room, &paths->list);
    room_free_array(room, &paths->flows);
    paths->slots = NULL;
}

// --- going a path --------------------------------------------------------------------------------
// As a walk (pt_walk_once.c) goes from block to block, to the last detail.

struct course {
    struct pt_paths *paths;
    struct pt_path path;
    struct pt_function function; // where it is
    struct pt_passage_flow flows[MOST_FLOWS];
    unsigned left; // branches
};

static struct pt_function function_at(const struct pt_paths *paths, uint32_t space, uint64_t ip)
{
    struct pt_function found = {0};
    if (!paths->symbols) // all code is one function
        found.high = UINT64_MAX;
    else if (!paths->symbols->find(paths->symbols->context, space, ip, &found))
        found = (struct pt_function){0};
    return found;
}

static bool inside(const struct course *course, uint64_t ip)
{
    return ip - course->function.low < course->function.high - course->function.low;
}

static struct pt_passage_flow *add_flow(struct course *course, enum pt_flow_kind kind,
                                        uint64_t from)
{
    struct pt_passage_flow *flow = &course->flows[course->path.passage.flow_count++];
    *flow = (struct pt_passage_flow){.kind = (uint8_t)kind,
                                     .from = from,
                                     .timed = course->path.passage.timed,
                                     .instruction = course->path.passage.instructions};
    return flow;
}

static void jump(struct course *course, uint32_t space, uint64_t ip, bool direct)
{
    uint64_t left = course->function.key;
    if (course->paths->symbols)
        course->function = function_at(course->paths, space, ip);
    if (course->function.key == left)
        return;
    struct pt_passage_flow *flow = add_flow(course, PT_FLOW_JUMP, course->path.passage.last_ip);
    flow->to = ip;
    flow->unmarked = true;
    flow->function = course->function.key;
    flow->at_start = course->function.whole && (direct || course->function.low == ip);
}

static void arrive(struct course *course, const struct pt_stretch *stretch)
{
    struct pt_passage_flow *flow = &course->flows[course->path.passage.flow_count - 1];
    if (course->paths->symbols)
        course->function = function_at(course->paths, stretch->space, stretch->ip);
    flow->to = stretch->ip;
    flow->function = course->function.key;
    flow->at_start =
        course->function.key && course->function.whole && course->function.low == stretch->ip;
    course->path.passage.leaves = false;
}

// What passing the stretch leaves in the walk. False: not on a path.
static bool pass(struct course *course, const struct pt_stretch *stretch)
{
    struct pt_path *path = &course->path;
    enum pt_insn_class class = (enum pt_insn_class)stretch->class;
    if (class == ptic_far_call || class == ptic_far_return || class == ptic_far_jump)
        return false;
    if (path->passage.leaves)
        arrive(course, stretch);
    else if (path->passage.blocks && stretch->key != course->function.key &&
             !inside(course, stretch->ip))
        jump(course, stretch->space, stretch->ip, false);
    path->passage.blocks++;
    path->passage.instructions += stretch->instructions;
    path->passage.last_ip = stretch->end_ip;
    if (!(stretch->key == course->function.key && stretch->one_function) &&
        !inside(course, stretch->end_ip))
        jump(course, stretch->space, stretch->end_ip, true);
    if (class == ptic_cond_jump)
        return true;
    path->passage.timed = true;
    path->passage.leaves = class == ptic_call || class == ptic_return;
    if (class == ptic_call) {
        add_flow(course, PT_FLOW_CALL, stretch->end_ip)->unmarked = true;
        path->passage.calls++;
    } else if (class == ptic_return) {
        add_flow(course, PT_FLOW_RETURN, stretch->end_ip);
        path->passage.returned++;
    }
    return true;
}

static void push(struct pt_path *path, uint64_t ip, uint32_t caller)
{
    if (!ip)
        return;
    path->push[path->return_count++] = (struct pt_return){ip, caller};
    if (path->return_count > path->peak + path->popped)
        path->peak = (uint8_t)(path->return_count - path->popped);
}

// Where a path goes on.
struct way {
    uint64_t ip;   // 0: not known, the path ends there
    uint32_t from; // the stretch that remembers where that is; PT_NO_STRETCH: none
    enum pt_stretch_link link;
};

// Where a return leads that the trace took as called for.
static struct way pop(struct pt_path *path)
{
    if (path->return_count) {
        const struct pt_return *to = &path->push[--path->return_count];
        return (struct way){to->ip, to->caller, PT_LINK_RETURN};
    }
    path->looks = true;
    path->pops = path->popped || !path->top;
    path->popped = path->top != 0;
    return (struct way){path->pops ? 0 : path->top, PT_NO_STRETCH, PT_LINK_RETURN};
}

// Whether a path may go over that stretch, whose decision, if it has one, is then known.
static bool may_pass(const struct course *course, const struct pt_stretch *stretch)
{
    const struct pt_path *path = &course->path;
    if (path->passage.flow_count + FLOWS_A_STRETCH > MOST_FLOWS ||
        path->return_count == PT_PATH_RETURNS)
        return false;
    bool taken = path->asked >> (course->left ? course->left - 1 : 0) & 1;
    bool target = !course->left && (path->asked & PT_PATH_THEN_TARGET);
    switch ((enum pt_stretch_end)stretch->end) {
    case PT_STRETCH_ON:
        return true;
    case PT_STRETCH_BRANCH:
        return course->left > 0;
    case PT_STRETCH_RETURN:
        return course->left ? taken : target;
    case PT_STRETCH_CALL:
    case PT_STRETCH_TRANSFER:
        return target;
    default:
        return false;
    }
}

// Passes the stretch `at`. False: not passed.
static bool step(struct course *course, uint32_t at, struct way *way)
{
    struct pt_path *path = &course->path;
    const struct pt_stretch *stretch = &course->paths->stretches->items[at];
    bool decides = stretch->end == PT_STRETCH_BRANCH || stretch->end == PT_STRETCH_RETURN;
    if (!may_pass(course, stretch) || !pass(course, stretch))
        return false;
    if (decides && course->left) {
        bool taken = path->asked >> --course->left & 1;
        path->bits++;
        *way = stretch->end == PT_STRETCH_RETURN ? pop(path)
               : taken                           ? (struct way){stretch->taken, at, PT_LINK_TAKEN}
                                                 : (struct way){stretch->next, at, PT_LINK_NEXT};
    } else if (stretch->end == PT_STRETCH_ON) {
        push(path, stretch->returns_to, at);
        *way = (struct way){stretch->next, at, PT_LINK_NEXT};
    } else {
        if (stretch->end == PT_STRETCH_CALL)
            push(path, stretch->returns_to, at);
        path->indirect = at;
    }
    return true;
}

static uint32_t stretch_on(struct pt_stretches *stretches, uint32_t space, const struct way *way)
{
    return way->from == PT_NO_STRETCH
               ? pt_stretches_find(stretches, space, way->ip, PT_AIM_DECISION, 0)
               : pt_stretches_follow(stretches, way->from, way->link, way->ip);
}

// False: the stretches were forgotten meanwhile, or there is no memory.
static bool go(struct course *course)
{
    struct pt_path *path = &course->path;
    struct pt_stretches *stretches = course->paths->stretches;
    uint32_t space = stretches->items[path->passage.from].space, at = path->passage.from;
    for (int i = 0; i < MOST_STRETCHES && at != PT_NO_STRETCH; i++) {
        struct way way = {.from = PT_NO_STRETCH};
        if (!step(course, at, &way))
            break;
        if (path->pops || path->indirect != PT_NO_STRETCH) {
            at = PT_NO_STRETCH;
        } else if (!pt_stretches_link(stretches, path->passage.from, way.ip)) {
            path->passage.blocks = 0; // it does not lead to one place
            at = PT_NO_STRETCH;
        } else if ((at = stretch_on(stretches, space, &way)) == PT_NO_STRETCH) {
            return false;
        }
        if (stretches->generation != course->paths->generation)
            return false;
        if (path->bits && !course->left && !(path->asked & PT_PATH_THEN_TARGET))
            break;
    }
    path->passage.to = at;
    return true;
}

// --- the table -----------------------------------------------------------------------------------

static int paths_forget(struct pt_paths *paths)
{
    size_t bytes = ALL_SLOTS * sizeof *paths->slots;
    if (!paths->slots && !(paths->slots = room_resize(paths->stretches->room, NULL, 0, bytes)))
        return -1;
    memset(paths->slots, 0, bytes);
    paths->list.count = paths->flows.count = 0;
    paths->last = PT_NO_PATH;
    paths->generation = paths->stretches->generation;
    return 0;
}

static const struct pt_path *keep(struct pt_paths *paths, struct course *course)
{
    struct pt_passage_flows *flows = &paths->flows;
    struct pt_path *path = &course->path;
    path->next = (uint32_t)paths->list.count;
    path->passage.flows = (uint32_t)flows->count;
    path->passage.last = course->function;
    struct room *room = paths->stretches->room;
    if (room_reserve(room, flows, flows->count + path->passage.flow_count) < 0 ||
        room_push(room, &paths->list, *path) < 0)
        return NULL;
    if (path->passage.flow_count)
        memcpy(flows->items + flows->count, course->flows,
               path->passage.flow_count * sizeof *course->flows);
    flows->count += path->passage.flow_count;
    return &paths->list.items[paths->list.count - 1];
}

static unsigned branches_of(uint64_t asked)
{
    asked &= ~PT_PATH_THEN_TARGET;
    return asked ? 63 - (unsigned)__builtin_clzll(asked) : 0;
}

// The place of a path that looks at the return address, beside that of one with another.
static uint32_t slot_with(uint32_t from, uint64_t asked, uint64_t top)
{
    return pt_path_slot(from ^ (uint32_t)(top * 0x9e3779b97f4a7c15u >> 32), asked);
}

// Whether a path is there that differs in the return address only.
static bool other_top(const struct pt_paths *paths, uint32_t slot, uint32_t from, uint64_t asked)
{
    for (uint32_t way = 0; way < PT_PATH_WAYS; way++) {
        uint32_t found = paths->slots[slot ^ way] - 1u;
        if (found < paths->list.count && paths->list.items[found].passage.from == from &&
            paths->list.items[found].asked == asked)
            return true;
    }
    return false;
}

// What is lost where something else is written there.
static int worth(uint16_t slot, uint16_t called)
{
    return slot == called ? 0 : !slot ? 1 : slot & CALLED ? 2 : 3;
}

// Where that call is noted, or is to be.
static uint16_t *place_for(const struct pt_paths *paths, uint32_t slot, uint16_t called)
{
    uint16_t *place = &paths->slots[slot];
    for (uint32_t way = 1; way < PT_PATH_WAYS; way++)
        if (worth(paths->slots[slot ^ way], called) < worth(*place, called))
            place = &paths->slots[slot ^ way];
    return place;
}

const struct pt_path *pt_paths_learn(struct pt_paths *paths, uint32_t from, uint64_t asked,
                                     uint64_t top)
{
    const struct pt_path *learned;
    if (paths->early < EARLY) {
        paths->early++;
        return NULL;
    }
    if ((!paths->slots || paths->generation != paths->stretches->generation ||
         paths->list.count >= paths->most || paths->flows.count >= PT_PATH_FLOWS) &&
        paths_forget(paths) < 0)
        return NULL;
    uint32_t slot = pt_path_slot(from, asked);
    if (other_top(paths, slot, from, asked)) {
        slot = slot_with(from, asked, top);
        uint32_t found = pt_paths_at(paths, slot, from, asked, top);
        if (found != PT_NO_PATH)
            return pt_paths_found(paths, found);
    }
    paths->last = PT_NO_PATH;
    uint16_t called = (uint16_t)(CALLED | hash_pair(from ^ top, asked) >> 48);
    uint16_t *place = place_for(paths, slot, called);
    if (*place != called) {
        *place = called;
        return NULL;
    }
    const struct pt_stretch *stretch = &paths->stretches->items[from];
    struct course course;
    course.paths = paths;
    course.function = function_at(paths, stretch->space, stretch->ip);
    course.left = branches_of(asked);
    course.path =
        (struct pt_path){.asked = asked,
                         .top = top,
                         .indirect = PT_NO_STRETCH,
                         .passage = {.from = from, .to = PT_NO_STRETCH, .first = course.function}};
    if (!go(&course) || !(learned = keep(paths, &course)))
        return NULL;
    *place = (uint16_t)paths->list.count;
    return learned->passage.blocks ? learned : NULL;
}
