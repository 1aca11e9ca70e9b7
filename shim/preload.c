// SPDX-License-Identifier: MIT
//
// The shim's life cycle in a process: starting, attaching to a collector (again after a fork, and
// again when another collector comes), and giving each thread its ring. All of this is off the hot
// path; it preserves errno, and on any failure the process goes on as if the shim were not there.
#include "shim/preload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct shim_state shim;
__thread struct shim_thread shim_thread = {.epoch = 1};

enum { ATTEMPT_INTERVAL_CYCLES = 1 << 28, NAME_TRIES = 64 }; // about 0.1 s

static void *private_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int close_quietly(int fd)
{
    // so that neither the application's close nor ours closes it
    return (int)syscall(SYS_close, fd);
}

// Makes directory/<name>-<...> of `bytes`, all of them really there: a write into a sparse file on
// a full tmpfs would be a SIGBUS in the server. Returns the mapping at `at` (or anywhere), or NULL
// with errno.
static void *shared_file_make(const char *path, size_t bytes, void *at)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
        errno = EFBIG; // posix_fallocate beyond the limit would raise SIGXFSZ
        return NULL;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return NULL;
    void *mapping = MAP_FAILED;
    int flags = MAP_SHARED | MAP_POPULATE | (at ? MAP_FIXED : 0);
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0)
        mapping = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    int saved = errno;
    if (mapping == MAP_FAILED)
        unlink(path);
    close_quietly(fd);
    errno = saved;
    return mapping == MAP_FAILED ? NULL : mapping;
}

// Replaces the control page by the collector's. False: there is none (yet), or it is not ours.
static bool control_open(void)
{
    char path[sizeof shim.directory + 16];
    snprintf(path, sizeof path, "%s/control", shim.directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    struct control_page control;
    struct stat status;
    bool usable =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= RING_PAGE_BYTES &&
        pread(fd, &control, sizeof control, 0) == sizeof control &&
        control.magic == CONTROL_MAGIC && control.version == RING_VERSION &&
        (control.state == CONTROL_ARMED || control.state == CONTROL_ENABLED) &&
        control.ring_entries >= RING_MIN_ENTRIES && control.ring_entries <= RING_MAX_ENTRIES &&
        (control.ring_entries & (control.ring_entries - 1)) == 0 &&
        mmap(shim.control, RING_PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close_quietly(fd);
    if (usable) {
        shim.session->ring_entries = control.ring_entries;
        shim.session->ring_limit = control.ring_limit;
    }
    return usable;
}

static bool process_page_make(uint32_t process, uint64_t instance)
{
    char path[sizeof shim.directory + 48];
    struct process_page *page = NULL;
    for (int n = 0; n < NAME_TRIES && !page; n++) {
        snprintf(path, sizeof path, "%s/process-%u-%d", shim.directory, process, n);
        page = shared_file_make(path, RING_PAGE_BYTES, shim.page);
        if (!page && errno != EEXIST)
            return false;
    }
    if (!page)
        return false;
    page->version = RING_VERSION;
    page->process = process;
    page->instance = instance;
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t length = syscall(SYS_read, fd, page->name, sizeof page->name - 1);
        if (length > 0 && page->name[length - 1] == '\n')
            page->name[length - 1] = '\0';
        close_quietly(fd);
    }
    atomic_thread_fence(memory_order_release);
    page->magic = PROCESS_MAGIC;
    return true;
}

// Rings left behind by ended threads belong to an attachment that is over.
static void idle_rings_drop(struct session_page *session)
{
    for (int i = 0; i < IDLE_RINGS; i++) {
        struct ring_header *ring = atomic_exchange(&session->idle[i], NULL);
        if (ring)
            munmap(ring, ring_file_bytes(session->ring_entries));
    }
    atomic_store(&session->rings, 0);
}

// Attaches this process to the collector, if there is one. At most one thread at a time, and not
// more often than ten times a second.
static void process_attach(void)
{
    struct session_page *session = shim.session;
    uint64_t now = tsc_now();
    if (now < atomic_load(&session->next_attempt_tsc) || atomic_exchange(&session->attaching, 1))
        return;
    atomic_store(&session->next_attempt_tsc, now + ATTEMPT_INTERVAL_CYCLES);
    uint32_t state = atomic_load(&shim.control->state);
    uint32_t process = (uint32_t)getpid();
    if (session->instance == 0) { // a new process, or a child after fork
        session->instance = now;
        atomic_store(&session->process, process);
    }
    if (state == CONTROL_CLOSED && atomic_load(&session->epoch) != 0) {
        atomic_store(&session->epoch, 0);
        idle_rings_drop(session);
    }
    bool attached = atomic_load(&session->epoch) != 0;
    if (!attached && control_open() && process_page_make(process, session->instance))
        atomic_store(&session->epoch, now | 2); // neither 0 nor a fresh thread's 1
    atomic_store(&session->attaching, 0);
}

static struct ring_header *ring_take_idle(struct session_page *session, uint64_t epoch)
{
    for (int i = 0; i < IDLE_RINGS; i++) {
        if (!atomic_load_explicit(&session->idle[i], memory_order_relaxed))
            continue;
        struct ring_header *ring = atomic_exchange(&session->idle[i], NULL);
        if (ring && ring->epoch == epoch && ring->entries == session->ring_entries)
            return ring;
    }
    return NULL;
}

static struct ring_header *ring_make(struct session_page *session, uint64_t epoch)
{
    struct shim_thread *thread = &shim_thread;
    if (atomic_fetch_add(&session->rings, 1) >= session->ring_limit) {
        errno = EDQUOT;
        return NULL;
    }
    char path[sizeof shim.directory + 64];
    struct ring_header *ring = NULL;
    for (int n = 0; n < NAME_TRIES && !ring; n++) {
        snprintf(path, sizeof path, "%s/ring-%u-%u-%d", shim.directory, thread->process,
                 thread->thread, n);
        ring = shared_file_make(path, ring_file_bytes(session->ring_entries), NULL);
        if (!ring && errno != EEXIST)
            return NULL;
    }
    if (!ring)
        return NULL;
    // A child after fork must not write into its parent's ring, and never touches it.
    madvise(ring, ring_file_bytes(session->ring_entries), MADV_DONTFORK);
    ring->version = RING_VERSION;
    ring->process = thread->process;
    ring->instance = session->instance;
    ring->epoch = epoch;
    ring->entries = session->ring_entries;
    ring->thread = thread->thread;
    atomic_thread_fence(memory_order_release);
    ring->magic = RING_MAGIC;
    return ring;
}

static void thread_ring_leave(struct shim_thread *thread)
{
    if (thread->ring.shared && thread->instance == shim.session->instance)
        munmap(thread->ring.shared, ring_file_bytes(thread->ring_entries));
    thread->ring.shared = NULL; // otherwise it is the parent's, and not mapped here
}

// Gives the thread a ring of the present attachment. If that fails, the thread's calls are counted
// as lost until the next attachment.
static void thread_ring_enter(uint64_t epoch)
{
    struct shim_thread *thread = &shim_thread;
    struct session_page *session = shim.session;
    thread_ring_leave(thread);
    thread->instance = session->instance;
    thread->process = (uint32_t)getpid();
    thread->thread = (uint32_t)syscall(SYS_gettid);
    struct ring_header *ring = ring_take_idle(session, epoch);
    if (!ring)
        ring = ring_make(session, epoch);
    if (ring) {
        thread->ring_entries = session->ring_entries;
        ring_producer_init(&thread->ring, ring, thread->ring_entries);
        if (shim.retire)
            pthread_setspecific(shim.retire_key, ring);
    } else {
        atomic_store(&shim.page->ring_last_errno, (uint32_t)errno);
        atomic_fetch_add(&shim.page->rings_failed, 1);
    }
    thread->epoch = epoch;
}

void shim_ring_retire(void *unused)
{
    (void)unused;
    struct shim_thread *thread = &shim_thread;
    struct session_page *session = shim.session;
    thread->retired = true;
    if (!thread->ring.shared || thread->instance != session->instance)
        return;
    for (int i = 0; i < IDLE_RINGS && thread->epoch == atomic_load(&session->epoch); i++) {
        struct ring_header *nobody = NULL;
        if (atomic_compare_exchange_strong(&session->idle[i], &nobody, thread->ring.shared)) {
            thread->ring.shared = NULL;
            return;
        }
    }
    thread_ring_leave(thread);
}

void shim_observe_slow(struct observation *observation)
{
    struct shim_thread *thread = &shim_thread;
    struct session_page *session = shim.session;
    uint32_t state = atomic_load(&shim.control->state);
    uint64_t epoch = atomic_load(&session->epoch);
    if (!thread->slow && !thread->busy && !thread->retired) {
        int saved = errno, cancel;
        // a signal must not interrupt it halfway
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        thread->slow = true;
        if (epoch == 0 || state == CONTROL_CLOSED || state == CONTROL_NONE)
            process_attach();
        epoch = atomic_load(&session->epoch);
        state = atomic_load(&shim.control->state);
        bool open = state == CONTROL_ARMED || state == CONTROL_ENABLED;
        if (epoch != 0 && epoch != thread->epoch && open)
            thread_ring_enter(epoch);
        thread->slow = false;
        pthread_setcancelstate(cancel, NULL);
        errno = saved;
    }
    if (state != CONTROL_ENABLED || epoch == 0)
        return;
    if (epoch != thread->epoch || thread->retired) {
        atomic_fetch_add_explicit(&shim.page->without_ring, 1, memory_order_relaxed);
        return;
    }
    observation->recording = true;
    observation->entry_tsc = tsc_now_on_core(&observation->entry_core);
}

// The directory as an absolute path: servers change their working directory.
static bool directory_find(const char *name)
{
    size_t used = 0;
    if (name[0] != '/') {
        if (!getcwd(shim.directory, sizeof shim.directory - 2))
            return false;
        used = strlen(shim.directory);
        shim.directory[used++] = '/';
    }
    if (name[0] == '\0' || strlen(name) >= sizeof shim.directory - used)
        return false;
    memcpy(shim.directory + used, name, strlen(name) + 1);
    struct stat status; // a directory that does not exist yet may still come
    return stat(shim.directory, &status) == 0 ? S_ISDIR(status.st_mode) : errno == ENOENT;
}

__attribute__((constructor)) static void shim_start(void)
{
    int saved = errno;
    real_calls_find();
    const char *directory = secure_getenv("TAILLIGHT_SHIM_DIR");
    if (!directory || !directory_find(directory))
        goto out;
    const char *port = secure_getenv("TAILLIGHT_SHIM_PORT");
    if (port)
        shim.port = (uint16_t)strtoul(port, NULL, 10);
    shim.descriptors = private_memory(sizeof *shim.descriptors * DESCRIPTOR_LIMIT);
    shim.slots = private_memory(sizeof *shim.slots * SLOT_LIMIT);
    shim.control = private_memory(RING_PAGE_BYTES);
    shim.page = private_memory(RING_PAGE_BYTES);
    shim.session = private_memory(RING_PAGE_BYTES);
    if (!shim.descriptors || !shim.slots || !shim.control || !shim.page || !shim.session ||
        madvise(shim.session, RING_PAGE_BYTES, MADV_WIPEONFORK) < 0)
        goto out; // the shim stays inert
    shim.retire = pthread_key_create(&shim.retire_key, shim_ring_retire) == 0;
    process_attach();
    __atomic_store_n(&shim.descriptor_limit, DESCRIPTOR_LIMIT, __ATOMIC_RELEASE);
    shim_connections_inherited();
out:
    errno = saved;
}
