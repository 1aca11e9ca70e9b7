// SPDX-License-Identifier: MIT
#include "experiments/remote/deployment.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "experiments/common/program_path.h"

enum { SECTOR_BYTES = 512, SUMS_TIMEOUT_MS = 60000, STALL_MS = 10000 };

static const char sums_name[] = "SHA256SUMS";

// dd reads that many blocks and no byte more, because what follows is for the agent. The shell
// stays until that has ended: whoever ends a link before the keeper has adopted the directory
// leaves nobody else who would remove it. From then on the keeper does, which may set something in
// it aside first.
const char deployment_bootstrap[] =
    "exec sh -c '"
    "umask 077; read -r b h n && d=$(mktemp -d \"$b/taillight-$h-XXXXXX\") || exit 1; "
    "if dd bs=65536 iflag=fullblock count=\"$n\" 2>/dev/null | tar -xf - -C \"$d\" && "
    "cd \"$d\" && sha256sum -c SHA256SUMS >/dev/null && ./taillight agent --help >/dev/null; "
    "then ./taillight agent --start; s=$?; else s=1; fi; "
    "cd /; [ -e \"$d/" DEPLOYMENT_ADOPTED "\" ] || rm -rf \"$d\"; exit $s'";

// --- what there is -------------------------------------------------------------------------------

static int add_file(struct deployment *deployment, const char *path, const char *name,
                    struct error *err)
{
    struct deployed_file file = {.bytes = 0};
    struct stat status;
    if ((size_t)snprintf(file.path, sizeof file.path, "%s", path) >= sizeof file.path ||
        snprintf(file.name, sizeof file.name, "%s", name) >= 100)
        return error_set(err, ERROR_FAILED, "%s: its name is too long to be copied", path);
    file.fd = open(path, O_RDONLY); // sha256sum inherits it
    if (file.fd < 0 || fstat(file.fd, &status) < 0) {
        int result = error_set_errno(err, ERROR_FAILED, "cannot read %s", path);
        if (file.fd >= 0)
            close(file.fd);
        return result;
    }
    file.bytes = (uint64_t)status.st_size;
    if (array_push(&deployment->files, file) == 0)
        return 0;
    close(file.fd);
    return error_set(err, ERROR_FAILED, "out of memory");
}

struct collection {
    struct deployment *deployment;
    struct error *err;
};

// The C library is not copied: the host's own fits its kernel and its name services.
static bool is_c_library(const char *name)
{
    static const char *const patterns[] = {"ld-linux*",      "linux-vdso*",    "libc.so.*",
                                           "libm.so.*",      "libdl.so.*",     "librt.so.*",
                                           "libpthread.so*", "libresolv.so.*", "libasan.so*",
                                           "libubsan.so*",   "libtsan.so*"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return false;
}

static int add_library(struct dl_phdr_info *info, size_t bytes, void *context)
{
    struct collection *collection = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)bytes;
    if (!slash || is_c_library(slash + 1))
        return 0;
    return add_file(collection->deployment, info->dlpi_name, slash + 1, collection->err);
}

static int add_files(struct deployment *deployment, struct error *err)
{
    static const char *const beside[] = {"libtaillight-shim.so", "labserver"};
    char path[4096];
    struct collection collection = {deployment, err};
    int result = add_file(deployment, "/proc/self/exe", "taillight", err);
    for (size_t i = 0; result == 0 && i < 2; i++) {
        result = program_path_beside(beside[i], path, sizeof path, err);
        if (result == 0)
            result = add_file(deployment, path, beside[i], err);
    }
    return result == 0 ? dl_iterate_phdr(add_library, &collection) : result;
}

// --- their sums ----------------------------------------------------------------------------------

static int add_sum(struct deployment *deployment, const char *sum, const char *name,
                   struct error *err)
{
    char line[300];
    int length = snprintf(line, sizeof line, "%.64s  %s\n", sum, name);
    for (int i = 0; i < length; i++)
        if (array_push(&deployment->sums, line[i]) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}

static int sum_files(struct deployment *deployment, struct error *err)
{
    size_t count = deployment->files.count, room = count * 4300;
    const char **words = calloc(count + 3, sizeof *words);
    char(*paths)[64] = calloc(count + 1, sizeof *paths);
    char *sums = malloc(room + 1);
    int result = words && paths && sums ? 0 : error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0) {
        words[0] = "sha256sum";
        words[1] = "--";
        for (size_t i = 0; i < count; i++) {
            snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", deployment->files.items[i].fd);
            words[2 + i] = paths[i];
        }
        result = process_run(words, NULL, SUMS_TIMEOUT_MS, sums, room, err);
    }
    char *line = sums;
    for (size_t i = 0; result == 0 && i < count; i++) {
        if (strspn(line, "0123456789abcdef") != 64)
            result = error_set(err, ERROR_FAILED, "sha256sum says: %.80s", line);
        else
            result = add_sum(deployment, line, deployment->files.items[i].name, err);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(words);
    free(paths);
    free(sums);
    return result;
}

static uint64_t sectors(uint64_t bytes)
{
    return (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

int deployment_make(struct deployment *deployment, struct error *err)
{
    *deployment = (struct deployment){.blocks = 0};
    int result = add_files(deployment, err);
    if (result == 0)
        result = sum_files(deployment, err);
    if (result == 0)
        snprintf(deployment->hash, sizeof deployment->hash, "%.16s", deployment->sums.items);
    uint64_t all = 1 + sectors(deployment->sums.count) + 2; // two empty ones end an archive
    for (size_t i = 0; i < deployment->files.count; i++)
        all += 1 + sectors(deployment->files.items[i].bytes);
    deployment->blocks = (all * SECTOR_BYTES + DEPLOYMENT_BLOCK_BYTES - 1) / DEPLOYMENT_BLOCK_BYTES;
    return result;
}

void deployment_free(struct deployment *deployment)
{
    for (size_t i = 0; i < deployment->files.count; i++)
        close(deployment->files.items[i].fd);
    array_free(&deployment->files);
    array_free(&deployment->sums);
}

// --- the stream ----------------------------------------------------------------------------------

struct stream {
    int fd;
    uint64_t written;
    struct error *err;
};

static int write_bytes(struct stream *stream, const char *bytes, size_t count)
{
    while (count) {
        struct pollfd ready = {.fd = stream->fd, .events = POLLOUT};
        int polled = poll(&ready, 1, STALL_MS);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled == 0)
            return error_set(stream->err, ERROR_FAILED, "the link took nothing for %d s",
                             STALL_MS / 1000);
        // A pipe that is ready takes that much without blocking.
        ssize_t took = write(stream->fd, bytes, count < 4096 ? count : 4096);
        if (took < 0 && errno != EINTR)
            return error_set_errno(stream->err, ERROR_FAILED, "the link does not take the program");
        if (took > 0) {
            bytes += took;
            count -= (size_t)took;
            stream->written += (uint64_t)took;
        }
    }
    return 0;
}

static int pad(struct stream *stream, size_t unit)
{
    static const char zeros[SECTOR_BYTES];
    int result = 0;
    while (result == 0 && stream->written % unit) {
        size_t left = unit - stream->written % unit;
        result = write_bytes(stream, zeros, left < sizeof zeros ? left : sizeof zeros);
    }
    return result;
}

// POSIX.1-1988 ustar: octal numbers as text; the checksum is taken with blanks in its place.
static int put_header(struct stream *stream, const char *name, uint64_t bytes)
{
    char sector[SECTOR_BYTES] = "";
    unsigned sum = 0;
    snprintf(sector, 100, "%s", name);
    memcpy(sector + 100, "0000700", 8);
    memcpy(sector + 108, "0000000", 8);
    memcpy(sector + 116, "0000000", 8);
    snprintf(sector + 124, 12, "%011llo", (unsigned long long)bytes);
    memcpy(sector + 136, "00000000000", 12);
    memset(sector + 148, ' ', 8);
    sector[156] = '0';
    memcpy(sector + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof sector; i++)
        sum += (unsigned char)sector[i];
    snprintf(sector + 148, 8, "%06o", sum & 0777777);
    return write_bytes(stream, sector, sizeof sector);
}

static int put_contents(struct stream *stream, const struct deployed_file *file)
{
    char chunk[65536];
    uint64_t at = 0;
    int result = 0;
    while (result == 0 && at < file->bytes) {
        uint64_t left = file->bytes - at;
        ssize_t got = pread(file->fd, chunk, left < sizeof chunk ? left : sizeof chunk, (off_t)at);
        if (got <= 0)
            result = error_set(stream->err, ERROR_FAILED, "%s has become shorter", file->path);
        else
            result = write_bytes(stream, chunk, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
    }
    return result < 0 ? result : pad(stream, SECTOR_BYTES);
}

int deployment_write(const struct deployment *deployment, int fd, struct error *err)
{
    struct stream stream = {.fd = fd, .err = err};
    int result = put_header(&stream, sums_name, deployment->sums.count);
    if (result == 0)
        result = write_bytes(&stream, deployment->sums.items, deployment->sums.count);
    if (result == 0)
        result = pad(&stream, SECTOR_BYTES);
    for (size_t i = 0; result == 0 && i < deployment->files.count; i++) {
        const struct deployed_file *file = &deployment->files.items[i];
        result = put_header(&stream, file->name, file->bytes);
        if (result == 0)
            result = put_contents(&stream, file);
    }
    static const char end[2 * SECTOR_BYTES];
    if (result == 0)
        result = write_bytes(&stream, end, sizeof end);
    return result < 0 ? result : pad(&stream, DEPLOYMENT_BLOCK_BYTES);
}
