// SPDX-License-Identifier: MIT
//
// Attaching a process to a collector (again after a fork, and again when another collector comes),
// and letting each thread record. All of this is off the hot path; it preserves errno, and on any
// failure the process goes on as if the shim were not there.
#include "shim/preload_local.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

struct shim_state shim;
__thread struct shim_thread shim_thread = {.epoch = 1};

enum { ATTEMPT_INTERVAL_CYCLES = 1 << 28 }; // about 0.1 s

static int close_quietly(int fd)
{
    // so that neither the application's close nor ours closes it
    return (int)shim_kernel(SYS_close, fd);
}

// --- the collector's memory ----------------------------------------------------------------------

// The user of this process. filtered: without a system call.
static uid_t user_now(bool filtered)
{
    return filtered ? (uid_t)getauxval(AT_EUID) : geteuid();
}

// Opens a file of the directory; its status and first bytes are read. Negative: there is none, or
// it is no regular file.
static int shared_file_open(const char *name, int flags, bool filtered, struct stat *status,
                            void *start, size_t start_bytes)
{
    char path[sizeof shim.directory + 32];
    snprintf(path, sizeof path, "%s/%s", shim.directory, name);
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    // Nobody else's: who can cut a file can kill whoever has it mapped.
    if (fstat(fd, status) == 0 && S_ISREG(status->st_mode) &&
        (status->st_uid == 0 || status->st_uid == user_now(filtered)) &&
        shim_kernel(SYS_read, fd, start, start_bytes) == (ssize_t)start_bytes)
        return fd;
    close_quietly(fd);
    errno = EINVAL;
    return -1;
}

// Tells the collector that a user without a pool is here. It makes one, which is found at a later
// attempt.
static void hello_send(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(shim.directory) + sizeof "/hello" > sizeof address.sun_path)
        return;
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s/hello", shim.directory);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    shim_kernel(SYS_sendto, fd, "", 1, MSG_NOSIGNAL, &address, sizeof address);
    close_quietly(fd);
}

// Maps a pool where no other was mapped just before: a thread that was interrupted while it wrote
// may still do so. The memory before becomes private, so that it does not keep the old pool alive.
static bool pool_map(int fd, uint32_t chunks)
{
    struct pool_range *range = &shim.ranges[shim.pools_mapped % 2];
    struct pool_range *before = &shim.ranges[(shim.pools_mapped + 1) % 2];
    size_t bytes = pool_layout_of(chunks).bytes;
    bool fits = range->bytes >= bytes;
    void *mapping = mmap(fits ? range->base : NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | (fits ? MAP_FIXED : 0), fd, 0);
    if (mapping == MAP_FAILED)
        return false;
    if (!fits)
        *range = (struct pool_range){mapping, bytes};
    if (before->bytes) // when it fails, the old pool stays, which costs memory only
        (void)mmap(before->base, before->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    shim.pools_mapped++;
    shim.pool = ring_pool_at(mapping, chunks);
    return true;
}

static bool pool_open(bool filtered)
{
    char name[32];
    struct pool_header header;
    struct stat status;
    snprintf(name, sizeof name, "pool-%u", (unsigned)user_now(filtered));
    int fd = shared_file_open(name, O_RDWR, filtered, &status, &header, sizeof header);
    if (fd < 0) {
        if (!filtered)
            hello_send();
        return false;
    }
    bool usable = header.magic == POOL_MAGIC && header.version == RING_VERSION &&
                  header.chunks > 0 && header.chunks <= RING_MAX_CHUNKS &&
                  (uint64_t)status.st_size == pool_layout_of(header.chunks).bytes &&
                  pool_map(fd, header.chunks);
    close_quietly(fd);
    return usable;
}

// What was of no interest to one collector may be to the next.
static void others_forget(void)
{
    uint32_t highest = shim.descriptors ? atomic_load(&shim.highest_descriptor) : 0;
    for (uint32_t fd = 0; fd <= highest && highest; fd++) {
        uint32_t other = DESCRIPTOR_OTHER;
        atomic_compare_exchange_strong(&shim.descriptors[fd], &other, 0);
    }
}

// Maps the collector's pool and control page, unless these are the ones that are mapped already.
static void control_open(bool filtered)
{
    struct control_page control;
    struct stat status;
    int fd = shared_file_open("control", O_RDONLY, filtered, &status, &control, sizeof control);
    if (fd < 0)
        return;
    if (status.st_ino != shim.control_inode && status.st_size >= RING_PAGE_BYTES &&
        control.magic == CONTROL_MAGIC && control.version == RING_VERSION &&
        control.state <= CONTROL_ENABLED && pool_open(filtered) &&
        mmap(shim.control, RING_PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) !=
            MAP_FAILED) {
        shim.control_inode = status.st_ino;
        if (!filtered)
            others_forget();
    }
    close_quietly(fd);
}

// --- attaching -----------------------------------------------------------------------------------

// The PID namespace that this process is in. A child may be in another than its parent; where /proc
// is not to be seen, it is the parent's, unless the child is the first of its own.
static uint64_t namespace_now(void)
{
    struct stat namespace;
    if (stat("/proc/self/ns/pid", &namespace) == 0)
        shim.pid_namespace = namespace.st_ino;
    else if (getppid() == 0)
        shim.pid_namespace = 0;
    return shim.pid_namespace;
}

// Takes a place in the pool. False: there is none.
static bool place_take(struct session_page *session)
{
    uint32_t process = atomic_load(&session->process);
    session->place = ring_pool_take_place(&shim.pool, process, session->instance);
    if (!session->place)
        return false;
    struct process_page *page = &shim.pool.pages[session->place - 1];
    page->pid_namespace = namespace_now();
    prctl(PR_GET_NAME, page->name);
    atomic_store_explicit(&page->ready, session->instance, memory_order_release);
    shim.page = page;
    return true;
}

// Attaches this process to the collector, if there is one. At most one thread at a time; files are
// looked at ten times a second at most.
void shim_attach(void)
{
    struct session_page *session = shim.session;
    if (atomic_exchange(&session->attaching, 1))
        return;
    uint64_t now = tsc_now();
    if (session->instance == 0) { // a new process, or a child after fork
        session->instance = now;
        atomic_store(&session->process, (uint32_t)getpid());
    }
    uint32_t state = atomic_load(&shim.control->state);
    if (state == CONTROL_CLOSED && atomic_load(&session->epoch) != 0) {
        shim.page = shim.nobody;
        atomic_store(&session->epoch, 0);
    }
    if ((state == CONTROL_NONE || state == CONTROL_CLOSED) &&
        now >= atomic_load(&session->next_attempt_tsc)) {
        atomic_store(&session->next_attempt_tsc, now + ATTEMPT_INTERVAL_CYCLES);
        control_open(false);
        state = atomic_load(&shim.control->state);
    }
    bool open = state == CONTROL_ARMED || state == CONTROL_ENABLED;
    if (open && atomic_load(&session->epoch) == 0 && shim.pool.header &&
        now >= session->place_tsc) {
        session->place_tsc = now + RING_RETRY_CYCLES;
        if (place_take(session))
            atomic_store(&session->epoch, now | 2); // neither 0 nor a fresh thread's 1
    }
    atomic_store(&session->attaching, 0);
}

// The thread's kernel id, as libc knows it: the owner of a lock that the thread holds.
static uint32_t thread_id(void)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&mutex);
    uint32_t id = (uint32_t)mutex.__data.__owner;
    pthread_mutex_unlock(&mutex);
    return id;
}

// Lets the thread record in the present attachment. What it wrote in the one before was that
// collector's, or its parent's.
static void thread_enter(uint64_t epoch)
{
    struct shim_thread *thread = &shim_thread;
    struct session_page *session = shim.session;
    thread->ring = (struct ring_producer){.used = RING_CHUNK_ENTRIES,
                                          .place = session->place,
                                          .process = atomic_load(&session->process),
                                          .thread = thread_id(),
                                          .instance = session->instance,
                                          .began = tsc_now(),
                                          .pool = shim.pool};
    thread->checked_tsc = thread->ring.began;
    ring_advance(&thread->ring, thread->checked_tsc);
    if (shim.retire)
        pthread_setspecific(shim.retire_key, thread);
    thread->epoch = epoch;
}

void shim_ring_retire(void *unused)
{
    (void)unused;
    struct shim_thread *thread = &shim_thread;
    thread->retired = true;
    if (thread->epoch == atomic_load(&shim.session->epoch))
        ring_seal(&thread->ring);
    thread->ring.place = 0;
}

void shim_observe_slow(struct observation *observation)
{
    struct shim_thread *thread = &shim_thread;
    struct session_page *session = shim.session;
    uint32_t state = atomic_load(&shim.control->state);
    uint64_t epoch = atomic_load(&session->epoch);
    if (!thread->slow && !thread->busy && !thread->retired) {
        if (!shim_calls_begin())
            return; // under a filter by now
        int saved = errno, cancel;
        // a signal must not interrupt it halfway
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        thread->slow = true;
        if (epoch == 0 || state == CONTROL_CLOSED || state == CONTROL_NONE)
            shim_attach();
        epoch = atomic_load(&session->epoch);
        state = atomic_load(&shim.control->state);
        bool open = state == CONTROL_ARMED || state == CONTROL_ENABLED;
        if (epoch != 0 && epoch != thread->epoch && open)
            thread_enter(epoch);
        thread->slow = false;
        pthread_setcancelstate(cancel, NULL);
        errno = saved;
        shim_calls_end();
    }
    if (state != CONTROL_ENABLED)
        return;
    if (epoch == 0) {
        atomic_fetch_add_explicit(&shim.pool.header->lost, 1, memory_order_relaxed);
        return;
    }
    if (epoch != thread->epoch || thread->retired) {
        atomic_fetch_add_explicit(&shim.page->without_ring, 1, memory_order_relaxed);
        return;
    }
    observation->recording = true;
    observation->entry_tsc = tsc_now_on_core(&observation->entry_core);
}

// Under a filter: tells the collector that there is a process that it will not see, with no calls
// but those of the loader.
void shim_attach_filtered(void)
{
    control_open(true);
    uint64_t instance = tsc_now();
    uint32_t process = thread_id();
    uint32_t place = shim.pool.header ? ring_pool_take_place(&shim.pool, process, instance) : 0;
    if (!place)
        return;
    struct process_page *page = &shim.pool.pages[place - 1];
    strncpy(page->name, program_invocation_short_name, sizeof page->name - 1);
    page->inert = INERT_SECCOMP;
    atomic_store_explicit(&page->ready, instance, memory_order_release);
}
