// SPDX-License-Identifier: MIT
#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char log_magic[8] = "TAILLOG";

void log_boot_id(char out[40])
{
    memset(out, 0, 40);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return;
    if (!fgets(out, 40, file))
        out[0] = '\0';
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

int log_writer_open(struct log_writer *writer, const char *path, enum log_kind kind,
                    uint32_t version, size_t record_bytes, struct error *err)
{
    memset(writer, 0, sizeof *writer);
    memcpy(writer->header.magic, log_magic, sizeof log_magic);
    writer->header.kind = kind;
    writer->header.version = version;
    writer->header.header_bytes = sizeof writer->header;
    writer->header.record_bytes = (uint32_t)record_bytes;
    log_boot_id(writer->header.boot_id);
    int result = new_file_open(&writer->out, path, err);
    if (result < 0)
        return result;
    if (fwrite(&writer->header, sizeof writer->header, 1, writer->out.file) == 1)
        return 0;
    result = error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.partial);
    return new_file_finish(&writer->out, result, err);
}

int log_writer_append(struct log_writer *writer, const void *records, size_t count,
                      struct error *err)
{
    if (count && fwrite(records, writer->header.record_bytes, count, writer->out.file) != count)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.partial);
    writer->header.records += count;
    return 0;
}

int log_writer_close(struct log_writer *writer, uint64_t dropped, struct error *err)
{
    writer->header.dropped = dropped;
    FILE *file = writer->out.file;
    int result = 0;
    if (fseek(file, 0, SEEK_SET) < 0 ||
        fwrite(&writer->header, sizeof writer->header, 1, file) != 1)
        result = error_set_errno(err, ERROR_FAILED, "cannot finish %s", writer->out.path);
    return new_file_finish(&writer->out, result, err);
}

void log_writer_discard(struct log_writer *writer)
{
    new_file_finish(&writer->out, -ERROR_FAILED, NULL);
}

int log_write(const char *path, enum log_kind kind, uint32_t version, size_t record_bytes,
              const void *records, size_t count, uint64_t dropped, struct error *err)
{
    struct log_writer writer;
    int result = log_writer_open(&writer, path, kind, version, record_bytes, err);
    if (result < 0)
        return result;
    result = log_writer_append(&writer, records, count, err);
    if (result < 0) {
        log_writer_discard(&writer);
        return result;
    }
    return log_writer_close(&writer, dropped, err);
}

static int log_header_check(const struct log_header *header, size_t file_bytes, const char *path,
                            enum log_kind kind, uint32_t version, size_t record_bytes,
                            struct error *err)
{
    if (memcmp(header->magic, log_magic, sizeof log_magic) != 0)
        return error_set(err, ERROR_INPUT, "%s: not a Taillight log (bad magic)", path);
    if (header->kind != (uint32_t)kind)
        return error_set(err, ERROR_INPUT, "%s: a log of kind %u where kind %u was expected", path,
                         header->kind, kind);
    if (header->version != version || header->record_bytes != record_bytes ||
        header->header_bytes != sizeof *header)
        return error_set(err, ERROR_INPUT,
                         "%s: record layout version %u of %u bytes; this build reads version %u of "
                         "%zu bytes: analyze it with the build that wrote it",
                         path, header->version, header->record_bytes, version, record_bytes);
    if (header->records != (file_bytes - sizeof *header) / record_bytes ||
        (file_bytes - sizeof *header) % record_bytes != 0)
        return error_set(err, ERROR_INPUT,
                         "%s: the header promises %llu records, the file holds %zu bytes of them: "
                         "it is truncated or damaged",
                         path, (unsigned long long)header->records, file_bytes - sizeof *header);
    return 0;
}

int log_reader_open(struct log_reader *reader, const char *path, enum log_kind kind,
                    uint32_t version, size_t record_bytes, struct error *err)
{
    memset(reader, 0, sizeof *reader);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot open %s", path);
    struct stat status;
    int result = 0;
    if (fstat(fd, &status) < 0) {
        result = error_set_errno(err, ERROR_INPUT, "cannot stat %s", path);
        goto out;
    }
    if (!S_ISREG(status.st_mode) || (size_t)status.st_size < sizeof reader->header) {
        result = error_set(err, ERROR_INPUT, "%s: too short for a Taillight log", path);
        goto out;
    }
    reader->mapping_bytes = (size_t)status.st_size;
    reader->mapping = mmap(NULL, reader->mapping_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (reader->mapping == MAP_FAILED) {
        reader->mapping = NULL;
        result = error_set_errno(err, ERROR_FAILED, "cannot map %s", path);
        goto out;
    }
    memcpy(&reader->header, reader->mapping, sizeof reader->header);
    result = log_header_check(&reader->header, reader->mapping_bytes, path, kind, version,
                              record_bytes, err);
    if (result < 0) {
        log_reader_close(reader);
        goto out;
    }
    reader->records = (const char *)reader->mapping + sizeof reader->header;
    reader->count = (size_t)reader->header.records;
out:
    close(fd);
    return result;
}

void log_reader_close(struct log_reader *reader)
{
    if (reader->mapping)
        munmap(reader->mapping, reader->mapping_bytes);
    memset(reader, 0, sizeof *reader);
}
