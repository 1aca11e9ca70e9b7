// SPDX-License-Identifier: MIT
#include "shim/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/process.h"
#include "shim/ring_directory.h"

enum { OTHERS_SHARE = 16 }; // of the budget, for the pool of each other user

// --- pools ---------------------------------------------------------------------------------------

static bool pool_read(const struct pool_file *pool, void *to, size_t bytes, size_t from)
{
    return pread(pool->fd, to, bytes, (off_t)from) == (ssize_t)bytes;
}

bool pool_read_places(const struct pool_file *pool, uint64_t *places)
{
    return pool_read(pool, places, pool->chunks * sizeof *places, pool->layout.places);
}

bool pool_read_owners(const struct pool_file *pool, uint32_t *owners)
{
    return pool_read(pool, owners, pool->chunks * sizeof *owners, pool->layout.owners);
}

bool pool_read_page(const struct pool_file *pool, uint32_t place, struct process_page *page)
{
    return pool_read(pool, page, sizeof *page, pool->layout.pages + (place - 1) * sizeof *page);
}

static size_t chunk_at(const struct pool_file *pool, uint32_t index)
{
    return pool->layout.chunks + (size_t)index * RING_CHUNK_BYTES;
}

bool pool_read_chunk(const struct pool_file *pool, uint32_t index, struct ring_chunk *chunk)
{
    return pool_read(pool, chunk, sizeof *chunk, chunk_at(pool, index));
}

bool pool_read_chunk_head(const struct pool_file *pool, uint32_t index, struct ring_chunk *chunk)
{
    return pool_read(pool, chunk, offsetof(struct ring_chunk, entries), chunk_at(pool, index));
}

static void pool_write(const struct pool_file *pool, const void *from, size_t bytes, size_t to)
{
    // A pool that somebody has cut takes nothing, and what is in it is lost.
    if (pwrite(pool->fd, from, bytes, (off_t)to) != (ssize_t)bytes)
        return;
}

// The owner's word goes last: from then on the chunk is somebody else's. It goes from nonzero to
// zero, so that a half-written one is still nobody's to take.
void pool_free_chunk(const struct pool_file *pool, uint32_t index)
{
    static const char zeros[offsetof(struct ring_chunk, entries)];
    const uint32_t nobody = 0;
    uint32_t search = UINT32_MAX;
    size_t search_at = offsetof(struct pool_header, search);
    pool_write(pool, zeros, sizeof zeros, chunk_at(pool, index));
    pool_write(pool, &nobody, sizeof nobody, pool->layout.owners + index * sizeof nobody);
    // Chunks used before are taken first: fewer pages are touched by the servers.
    if (pool_read(pool, &search, sizeof search, search_at) && search > index)
        pool_write(pool, &index, sizeof index, search_at);
}

void pool_free_place(const struct pool_file *pool, uint32_t place)
{
    static const struct process_page zeros;
    const uint64_t nobody = 0;
    pool_write(pool, &zeros, sizeof zeros, pool->layout.pages + (place - 1) * sizeof zeros);
    pool_write(pool, &nobody, sizeof nobody, pool->layout.places + (place - 1) * sizeof nobody);
}

void pool_discard_chunk(const struct pool_file *pool, uint32_t index)
{
    fallocate(pool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)chunk_at(pool, index),
              RING_CHUNK_BYTES);
}

// So many chunks, with all that belongs to them, fit in so many bytes.
static uint32_t chunks_in(uint64_t bytes)
{
    size_t each = RING_CHUNK_BYTES + sizeof(struct process_page) + sizeof(uint64_t) + 4;
    uint64_t chunks = bytes > 3 * RING_PAGE_BYTES ? (bytes - 3 * RING_PAGE_BYTES) / each : 0;
    return chunks < 1 ? 1 : chunks > RING_MAX_CHUNKS ? RING_MAX_CHUNKS : (uint32_t)chunks;
}

// Makes a user's pool, all of it really there: a write into a sparse file on a full tmpfs would be
// a SIGBUS in the server. Where there is no room for it, a smaller one.
static int pool_make(struct ring_memory *memory, uid_t user, uint64_t bytes, struct error *err)
{
    char name[32];
    struct pool_file *pool = &memory->pools[memory->pool_count];
    snprintf(name, sizeof name, "pool-%u", user);
    *pool = (struct pool_file){.user = user, .chunks = chunks_in(bytes)};
    pool->fd =
        openat(memory->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (pool->fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make %s/%s", memory->dir, name);
    for (;; pool->chunks /= 2) {
        pool->layout = pool_layout_of(pool->chunks);
        if (fallocate(pool->fd, 0, 0, (off_t)pool->layout.bytes) == 0)
            break;
        if (ftruncate(pool->fd, 0) < 0 || pool->chunks == 1) {
            error_set_errno(err, ERROR_FAILED, "cannot make %s/%s", memory->dir, name);
            close(pool->fd);
            unlinkat(memory->dir_fd, name, 0);
            return -ERROR_FAILED;
        }
    }
    struct pool_header header = {
        .magic = POOL_MAGIC, .version = RING_VERSION, .chunks = pool->chunks};
    pool_write(pool, &header, sizeof header, 0);
    if (user != geteuid() && fchown(pool->fd, user, (gid_t)-1) < 0) {
        error_set_errno(err, ERROR_FAILED, "cannot give %s/%s away", memory->dir, name);
        close(pool->fd);
        unlinkat(memory->dir_fd, name, 0);
        return -ERROR_FAILED;
    }
    memory->pool_count++;
    return 0;
}

// This user's pool; root leaves something for servers of other users.
static int pool_make_own(struct ring_memory *memory, struct error *err)
{
    uint64_t others = geteuid() == 0 ? memory->budget / OTHERS_SHARE * (RING_POOLS - 1) : 0;
    return pool_make(memory, geteuid(), memory->budget - others, err);
}

static int hello_open(struct ring_memory *memory)
{
    char path[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int yes = 1;
    memory->hello = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (memory->hello < 0)
        return -1;
    // The directory's own path may be too long for an address.
    snprintf(path, sizeof path, "/proc/self/fd/%d/hello", memory->dir_fd);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlinkat(memory->dir_fd, "hello", 0);
    if (setsockopt(memory->hello, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
        bind(memory->hello, (struct sockaddr *)&address, sizeof address) == 0 &&
        fchmodat(memory->dir_fd, "hello", 0666, 0) == 0)
        return 0;
    close(memory->hello);
    memory->hello = -1;
    return -1;
}

void ring_memory_greet(struct ring_memory *memory)
{
    for (int i = 0; i < 64 && memory->hello >= 0; i++) {
        char byte, control[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        struct error ignored;
        if (recvmsg(memory->hello, &message, MSG_DONTWAIT) < 0)
            return;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (!head || head->cmsg_type != SCM_CREDENTIALS)
            continue;
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(head), sizeof sender);
        bool known = memory->pool_count == RING_POOLS;
        for (size_t p = 0; p < memory->pool_count; p++)
            known |= memory->pools[p].user == sender.uid;
        if (!known)
            pool_make(memory, sender.uid, memory->budget / OTHERS_SHARE, &ignored);
    }
}

// --- the control page ----------------------------------------------------------------------------

static int control_map(struct ring_memory *memory, int fd, struct error *err)
{
    void *page = mmap(NULL, RING_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "cannot map %s/control", memory->dir);
    memory->control = page;
    return 0;
}

// The file gets its name only when it is complete: a server may read it at any time.
static int control_make(struct ring_memory *memory, struct error *err)
{
    int fd = openat(memory->dir_fd, "control.partial",
                    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    // The server may run as another user whatever our umask is.
    if (fd < 0 || fchmod(fd, 0644) < 0 || fallocate(fd, 0, 0, RING_PAGE_BYTES) < 0) {
        error_set_errno(err, ERROR_FAILED, "cannot make %s/control", memory->dir);
        if (fd >= 0)
            close(fd);
        return -ERROR_FAILED;
    }
    int result = control_map(memory, fd, err);
    close(fd);
    if (result < 0)
        return result;
    memory->control->version = RING_VERSION;
    memory->control->magic = CONTROL_MAGIC;
    if (renameat(memory->dir_fd, "control.partial", memory->dir_fd, "control") < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot name %s/control", memory->dir);
    return 0;
}

// Opens this user's pool, which was made together with a control page.
static int pool_adopt(struct ring_memory *memory)
{
    char name[32];
    struct pool_file *pool = &memory->pools[0];
    struct pool_header header;
    struct stat status;
    snprintf(name, sizeof name, "pool-%u", geteuid());
    *pool = (struct pool_file){.user = geteuid()};
    pool->fd = openat(memory->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (pool->fd < 0)
        return -1;
    if (fstat(pool->fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & 077) == 0 && status.st_nlink == 1 &&
        pool_read(pool, &header, sizeof header, 0) && header.magic == POOL_MAGIC &&
        header.version == RING_VERSION && header.chunks > 0 && header.chunks <= RING_MAX_CHUNKS) {
        pool->chunks = header.chunks;
        pool->layout = pool_layout_of(header.chunks);
        if ((uint64_t)status.st_size == pool->layout.bytes) {
            memory->pool_count = 1;
            return 0;
        }
    }
    close(pool->fd);
    return -1;
}

// What is there already: 1: it was made for a collector to come, and is taken over; 0: it is to be
// made anew, servers that know it are told to detach; negative: it is somebody's.
static int control_take_over(struct ring_memory *memory, struct error *err)
{
    int fd = openat(memory->dir_fd, "control", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    struct control_page control;
    struct stat status;
    int result = 0;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & 022)) {
        close(fd); // a foreign file, over which directory_fill() stumbles
        return 0;
    }
    if (pread(fd, &control, sizeof control, 0) == sizeof control &&
        control.magic == CONTROL_MAGIC) {
        bool alive = control.owner != 0 && control.owner <= INT32_MAX &&
                     !process_has_ended((pid_t)control.owner);
        uint32_t closed = CONTROL_CLOSED;
        if (alive && control.owner != (uint32_t)getpid() && control.state != CONTROL_CLOSED)
            result = error_set(err, ERROR_INPUT,
                               "%s is in use by the capture with pid %u: give another directory, "
                               "or end that one",
                               memory->dir, control.owner);
        else if (control.state == CONTROL_NONE && control.version == RING_VERSION &&
                 control_map(memory, fd, err) == 0 && pool_adopt(memory) == 0)
            result = 1;
        else if (pwrite(fd, &closed, sizeof closed, offsetof(struct control_page, state)) < 0)
            result = error_set_errno(err, ERROR_FAILED, "cannot write %s/control", memory->dir);
    }
    close(fd);
    if (result != 1 && memory->control) {
        munmap(memory->control, RING_PAGE_BYTES);
        memory->control = NULL;
    }
    return result;
}

static int directory_fill(struct ring_memory *memory, struct error *err)
{
    int foreign = ring_directory_clear(memory->dir_fd);
    if (foreign != 0)
        return error_set(err, ERROR_INPUT,
                         "%s holds %d other files, or files of other users, and is removed at the "
                         "end: give an empty or a new "
                         "directory",
                         memory->dir, foreign);
    int result = fchmod(memory->dir_fd, 0711) < 0
                     ? error_set_errno(err, ERROR_FAILED, "cannot open up %s", memory->dir)
                     : pool_make_own(memory, err);
    if (result == 0)
        result = control_make(memory, err);
    if (result < 0)
        ring_directory_clear(memory->dir_fd);
    return result;
}

int ring_memory_open(struct ring_memory *memory, const char *dir, uint64_t bytes, struct error *err)
{
    *memory = (struct ring_memory){.dir_fd = -1, .hello = -1};
    memory->budget = bytes ? bytes : RING_DEFAULT_BYTES;
    if (dir[0] == '\0' || strlen(dir) >= sizeof memory->dir)
        return error_set(err, ERROR_INPUT, "the shim's directory '%.80s': 1 to 399 characters",
                         dir);
    strcpy(memory->dir, dir);
    int result = ring_directory_open(memory->dir, &memory->dir_fd, err);
    if (result == 0)
        result = control_take_over(memory, err);
    if (result == 0)
        result = directory_fill(memory, err);
    if (result >= 0)
        hello_open(memory); // without it, servers of other users are not seen
    else
        ring_memory_leave(memory);
    return result < 0 ? result : 0;
}

void ring_memory_leave(struct ring_memory *memory)
{
    if (memory->control)
        munmap(memory->control, RING_PAGE_BYTES);
    for (size_t i = 0; i < memory->pool_count; i++)
        close(memory->pools[i].fd);
    if (memory->hello >= 0)
        close(memory->hello);
    if (memory->dir_fd >= 0)
        close(memory->dir_fd);
    *memory = (struct ring_memory){.dir_fd = -1, .hello = -1};
}

void ring_memory_remove(struct ring_memory *memory)
{
    char dir[sizeof memory->dir];
    if (memory->dir_fd < 0)
        return;
    strcpy(dir, memory->dir);
    atomic_store(&memory->control->state, CONTROL_CLOSED);
    ring_directory_clear(memory->dir_fd);
    ring_memory_leave(memory);
    ring_directory_remove(dir);
}
