// SPDX-License-Identifier: MIT
//
// Which descriptors are watched, and whose bytes they carry. A connection lives in a slot; the
// descriptors that name it (dup) hold references; the last one gone frees the slot, whose counters
// get the next generation so that a call still under way cannot be charged to its next user.
#include "shim/preload_local.h"

#include <string.h>
#include <sys/syscall.h>

enum { NOT_FREE = 0, COOKIES = SLOT_LIMIT };

// In a vfork child the memory is the parent's: what the child closes before its exec is its own
// copy of the descriptor, not the parent's. This is only checked when a watched descriptor changes.
// Under a filter nobody asks, and nothing may change.
bool shim_borrowed_memory(void)
{
    if (!shim_calls_begin())
        return true;
    uint32_t here = (uint32_t)shim_kernel(SYS_getpid);
    shim_calls_end();
    uint32_t owner = atomic_load(&shim.session->process);
    if (owner == 0) { // a fork child that has not done anything yet: the memory is its own
        atomic_store(&shim.session->process, here);
        return false;
    }
    return owner != here;
}

static uint32_t slot_take(void)
{
    uint64_t head = atomic_load(&shim.free_slots);
    while ((uint32_t)head != NOT_FREE) {
        uint32_t slot = (uint32_t)head;
        uint64_t next = ((head >> 32) + 1) << 32 | atomic_load(&shim.slots[slot].next_free);
        if (atomic_compare_exchange_weak(&shim.free_slots, &head, next))
            return slot;
    }
    uint32_t fresh = atomic_load(&shim.slots_used);
    while (fresh < SLOT_LIMIT - 1)
        if (atomic_compare_exchange_weak(&shim.slots_used, &fresh, fresh + 1))
            return fresh + 1;
    return 0;
}

static void slot_give(uint32_t slot)
{
    uint64_t head = atomic_load(&shim.free_slots);
    uint64_t next;
    do {
        atomic_store(&shim.slots[slot].next_free, (uint32_t)head);
        next = ((head >> 32) + 1) << 32 | slot;
    } while (!atomic_compare_exchange_weak(&shim.free_slots, &head, next));
}

static uint16_t slot_generation(const struct connection_slot *slot)
{
    return (uint16_t)(atomic_load(&slot->moved[DIRECTION_IN]) >> 48);
}

// Removes fd's entry from the table. 0: it was not watched, or this process must not change it.
uint32_t shim_descriptor_take(int fd)
{
    if (!shim_known(fd) || shim_borrowed_memory())
        return 0;
    uint32_t entry = atomic_exchange(&shim.descriptors[fd], 0);
    return entry == DESCRIPTOR_OTHER ? 0 : entry;
}

void shim_descriptor_put_back(int fd, uint32_t watched)
{
    uint32_t nobody = 0;
    if (watched && !atomic_compare_exchange_strong(&shim.descriptors[fd], &nobody, watched))
        shim_connection_release(watched, NULL);
}

static void highest_note(int fd)
{
    uint32_t highest = atomic_load(&shim.highest_descriptor);
    while ((uint32_t)fd > highest &&
           !atomic_compare_exchange_weak(&shim.highest_descriptor, &highest, (uint32_t)fd))
        ;
}

static void descriptor_set(int fd, uint32_t entry)
{
    highest_note(fd);
    uint32_t stale = atomic_exchange(&shim.descriptors[fd], entry);
    if (stale & 0xffff) { // closed in a way the shim does not see
        atomic_fetch_add(&shim.page->stale, 1);
        shim_connection_release(stale, NULL);
    }
}

void shim_descriptor_is_other(int fd)
{
    if ((uint32_t)fd < shim.descriptor_limit)
        descriptor_set(fd, DESCRIPTOR_OTHER);
}

// Whose the descriptor is may have changed: it is looked at again when it is used.
void shim_descriptor_forget(int fd)
{
    if ((uint32_t)fd < shim.descriptor_limit && atomic_load(&shim.descriptors[fd]))
        descriptor_set(fd, 0);
}

// One more reference to the connection of an entry, unless that has been closed in the meantime.
static bool reference_take(uint32_t entry)
{
    struct connection_slot *slot = &shim.slots[entry & 0xffff];
    uint32_t references = atomic_load(&slot->references);
    do {
        if (references == 0 || slot_generation(slot) != entry >> 16)
            return false;
    } while (!atomic_compare_exchange_weak(&slot->references, &references, references + 1));
    return true;
}

// From now on `to` names the same socket as `from`, or one that nobody has looked at.
void shim_descriptor_alias(int from, int to)
{
    uint32_t watched = shim_known(from);
    bool plain = (uint32_t)to >= shim.descriptor_limit || !atomic_load(&shim.descriptors[to]);
    if ((!watched && plain) || shim_borrowed_memory())
        return;
    if ((uint32_t)to >= DESCRIPTOR_LIMIT) {
        atomic_fetch_add(&shim.page->unwatched, 1);
        return;
    }
    descriptor_set(to, watched && reference_take(watched) ? watched : 0);
}

// Another descriptor of a connection that is watched already. 0: it is not.
uint32_t shim_descriptor_adopt(int fd, uint64_t cookie)
{
    uint32_t entry = atomic_load(&shim.by_cookie[cookie % COOKIES]), nobody = 0;
    if (!cookie || !entry || shim.slots[entry & 0xffff].cookie != cookie || !reference_take(entry))
        return 0;
    if (shim.slots[entry & 0xffff].cookie == cookie &&
        atomic_compare_exchange_strong(&shim.descriptors[fd], &nobody, entry)) {
        highest_note(fd);
        return entry;
    }
    shim_connection_release(entry, NULL);
    return shim_known(fd);
}

// Drops one descriptor's reference; after the last, the connection has ended. observation, if
// given, holds the entry of the close that did it, and is completed and recorded.
void shim_connection_release(uint32_t watched, struct observation *observation)
{
    struct connection_slot *slot = &shim.slots[watched & 0xffff];
    if (atomic_fetch_sub(&slot->references, 1) != 1)
        return;
    uint64_t epoch = atomic_load(&shim.session->epoch);
    if (observation && observation->recording && epoch != 0 &&
        atomic_load(&slot->announced) == epoch) {
        struct call_exit exit;
        exit.tsc = tsc_now_on_core(&exit.core);
        uint64_t received = atomic_load(&slot->moved[DIRECTION_IN]) & 0xffffffffffffULL;
        shim_record(observation, &exit, CALL_CLOSE, received, 0, 0);
    }
    uint64_t next = (uint64_t)(uint16_t)((watched >> 16) + 1) << 48;
    atomic_store(&slot->announced, 0);
    atomic_store(&slot->moved[DIRECTION_OUT], next);
    atomic_store(&slot->moved[DIRECTION_IN], next);
    slot_give(watched & 0xffff);
}

bool shim_announce_slow(const struct observation *observation, uint64_t epoch)
{
    struct connection_slot *slot = observation->slot;
    uint64_t before = atomic_load(&slot->announced);
    if (before == epoch || !atomic_compare_exchange_strong(&slot->announced, &before, epoch))
        return true; // another thread is announcing it
    if (!shim_record_begin()) {
        atomic_store(&slot->announced, 0);
        return false;
    }
    struct ring_producer *ring = &shim_thread.ring;
    union ring_entry *entry = ring_reserve(ring, observation->entry_tsc);
    if (entry) {
        entry->announcement = (struct ring_announcement){
            .cookie = slot->cookie,
            .opened_tsc = slot->opened_tsc,
            .local_port = slot->local_port,
            .kind = RING_ANNOUNCEMENT,
            .outgoing = slot->outgoing,
            .peer_port = slot->peer_port,
            .protocol = slot->protocol,
            .connection = observation->connection,
        };
        memcpy(entry->announcement.local, slot->local, sizeof slot->local);
        memcpy(entry->announcement.peer, slot->peer, sizeof slot->peer);
        if (slot_generation(slot) == observation->generation)
            // otherwise the slot went to another connection while we copied
            ring_commit(ring, entry);
    } else {
        atomic_fetch_add(&shim.page->dropped_full, 1);
        atomic_store(&slot->announced, 0);
    }
    shim_record_end();
    return entry != NULL;
}

// A slot for a connection, with what is known of it and one reference. Its entry; 0: none is free.
static uint32_t connection_enter(int fd, const struct connection_slot *facts)
{
    const uint32_t limit = shim.descriptor_limit; // 0: a filter is about to come
    uint32_t index = (uint32_t)fd < limit ? slot_take() : 0;
    if (!index) {
        if (limit)
            atomic_fetch_add(&shim.page->unwatched, 1);
        return 0;
    }
    struct connection_slot *slot = &shim.slots[index];
    uint64_t generation = slot_generation(slot);
    slot->id = atomic_fetch_add(&shim.last_id, 1) + 1;
    slot->cookie = facts->cookie;
    slot->opened_tsc = facts->opened_tsc;
    slot->local_port = facts->local_port;
    slot->peer_port = facts->peer_port;
    slot->outgoing = facts->outgoing;
    slot->protocol = facts->protocol;
    memcpy(slot->local, facts->local, sizeof slot->local);
    memcpy(slot->peer, facts->peer, sizeof slot->peer);
    for (int d = 0; d < 2; d++)
        atomic_store(&slot->moved[d], generation << 48 | atomic_load(&facts->moved[d]));
    atomic_store(&slot->references, 1);
    if (!facts->outgoing)
        atomic_fetch_add(&shim.page->accepted, 1);
    uint32_t entry = (uint32_t)generation << 16 | index;
    if (facts->cookie)
        atomic_store(&shim.by_cookie[facts->cookie % COOKIES], entry);
    return entry;
}

// Watches a connection from its first byte, and records the call that made it.
void shim_connection_watch(int fd, const struct connection_slot *facts, enum call_kind kind,
                           struct observation *observation)
{
    uint32_t entry = connection_enter(fd, facts);
    if (!entry)
        return;
    struct connection_slot *slot = &shim.slots[entry & 0xffff];
    observation->slot = slot;
    observation->connection = slot->id;
    observation->generation = (uint16_t)(entry >> 16);
    struct observation begun = *observation;
    observe_stamp(&begun); // attaches, if this thread has not yet
    if (begun.recording && shim_announce(observation)) {
        struct call_exit exit = {.tsc = begun.entry_tsc, .core = begun.entry_core};
        shim_record(observation, &exit, kind, 0, 0, 0);
    }
    descriptor_set(fd, entry);
}

// Watches one that is older than what is known of it: facts->moved is how far its streams are.
uint32_t shim_connection_join(int fd, const struct connection_slot *facts)
{
    uint32_t entry = connection_enter(fd, facts), nobody = 0;
    if (!entry)
        return 0;
    highest_note(fd);
    if (atomic_compare_exchange_strong(&shim.descriptors[fd], &nobody, entry))
        return entry;
    shim_connection_release(entry, NULL); // another thread was faster
    return shim_known(fd);
}
