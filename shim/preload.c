// SPDX-License-Identifier: MIT
//
// The shim's start in a process: it finds the functions behind its own and the collector's
// directory, and has its memory, before the program's first call. Without any of these it is inert:
// every call is passed on.
#include "shim/preload_local.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void *private_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// The directory as an absolute path: servers change their working directory.
static bool directory_find(const char *name, bool filtered)
{
    size_t used = 0;
    if (name[0] != '/') {
        if (filtered || !getcwd(shim.directory, sizeof shim.directory - 2))
            return false;
        used = strlen(shim.directory);
        shim.directory[used++] = '/';
    }
    if (name[0] == '\0' || strlen(name) >= sizeof shim.directory - used)
        return false;
    memcpy(shim.directory + used, name, strlen(name) + 1);
    if (filtered)
        return true;
    struct stat status; // a directory that does not exist yet may still come
    return stat(shim.directory, &status) == 0 ? S_ISDIR(status.st_mode) : errno == ENOENT;
}

__attribute__((constructor)) static void shim_start(void)
{
    int saved = errno;
    real_calls_find();
    shim_syscall_start();
    const char *directory = secure_getenv("TAILLIGHT_SHIM_DIR");
    bool filtered = directory && shim_seccomp_present();
    if (!directory || !directory_find(directory, filtered))
        goto out;
    if (filtered) {
        shim.control = private_memory(RING_PAGE_BYTES);
        if (shim.control)
            shim_attach_filtered();
        goto out;
    }
    const char *port = secure_getenv("TAILLIGHT_SHIM_PORT");
    if (port)
        shim.port = (uint16_t)strtoul(port, NULL, 10);
    shim.descriptors = private_memory(sizeof *shim.descriptors * DESCRIPTOR_LIMIT);
    shim.slots = private_memory(sizeof *shim.slots * SLOT_LIMIT);
    shim.by_cookie = private_memory(sizeof *shim.by_cookie * SLOT_LIMIT);
    shim.control = private_memory(RING_PAGE_BYTES);
    shim.page = shim.nobody = private_memory(RING_PAGE_BYTES);
    shim.session = private_memory(RING_PAGE_BYTES);
    if (!shim.descriptors || !shim.slots || !shim.by_cookie || !shim.control || !shim.page ||
        !shim.session || madvise(shim.session, RING_PAGE_BYTES, MADV_WIPEONFORK) < 0)
        goto out; // the shim stays inert
    shim.retire = pthread_key_create(&shim.retire_key, shim_ring_retire) == 0;
    shim_attach();
    __atomic_store_n(&shim.descriptor_limit, DESCRIPTOR_LIMIT, __ATOMIC_RELEASE);
out:
    errno = saved;
}
