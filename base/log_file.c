// SPDX-License-Identifier: MIT
#include "base/log_file.h"

#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/text.h"

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
    result = error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.path);
    return new_file_finish(&writer->out, result, err);
}

int log_writer_append(struct log_writer *writer, const void *records, size_t count,
                      struct error *err)
{
    if (count && fwrite(records, writer->header.record_bytes, count, writer->out.file) != count)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.path);
    writer->header.records += count;
    return 0;
}

int log_writer_flush(struct log_writer *writer, struct error *err)
{
    return fflush(writer->out.file) == 0
               ? 0
               : error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.path);
}

int log_writer_cut(struct log_writer *writer, struct error *err)
{
    FILE *file = writer->out.file;
    struct stat there;
    if (fstat(fileno(file), &there) < 0 || !S_ISREG(there.st_mode) ||
        there.st_size < (off_t)sizeof writer->header)
        return -(int)err->kind;
    const size_t record_bytes = writer->header.record_bytes;
    uint64_t records = ((uint64_t)there.st_size - sizeof writer->header) / record_bytes;
    __fpurge(file);
    clearerr(file);
    if (ftruncate(fileno(file), (off_t)(sizeof writer->header + records * record_bytes)) < 0)
        return -(int)err->kind;
    writer->header.records = records;
    return 0;
}

int log_writer_rewrite(struct log_writer *writer, const void *records, size_t count,
                       struct error *err)
{
    FILE *file = writer->out.file;
    const size_t bytes = count * writer->header.record_bytes;
    if (fseek(file, sizeof writer->header, SEEK_SET) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.path);
    writer->header.records = 0;
    int status = log_writer_append(writer, records, count, err);
    if (status == 0)
        status = log_writer_flush(writer, err);
    if (status == 0 && ftruncate(fileno(file), (off_t)(sizeof writer->header + bytes)) < 0)
        status = error_set_errno(err, ERROR_FAILED, "cannot write %s", writer->out.path);
    return status;
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

int log_rescue(const char *path, enum log_kind kind, uint32_t version, size_t record_bytes,
               struct error *err)
{
    char partial[4300];
    struct log_header header;
    struct stat there;
    int result = 0, fd = new_file_open_abandoned(path, partial, sizeof partial);
    if (fd < 0)
        return 0;
    if (fstat(fd, &there) < 0 || pread(fd, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.magic, log_magic, sizeof log_magic) != 0 || header.kind != (uint32_t)kind ||
        header.version != version || header.record_bytes != record_bytes ||
        header.header_bytes != sizeof header)
        goto out;
    header.records = ((uint64_t)there.st_size - sizeof header) / record_bytes;
    header.cut_short = 1;
    if (header.records == 0)
        goto out;
    result = ftruncate(fd, (off_t)(sizeof header + header.records * record_bytes)) == 0 &&
                     pwrite(fd, &header, sizeof header, 0) == sizeof header &&
                     rename(partial, path) == 0
                 ? 1
                 : error_set_errno(err, ERROR_FAILED,
                                   "cannot make %s of %s, which a killed "
                                   "program left",
                                   path, partial);
out:
    close(fd);
    return result;
}

static int log_header_check(const struct log_header *header, size_t file_bytes, const char *path,
                            enum log_kind kind, uint32_t version, size_t record_bytes,
                            struct error *err)
{
    if (memcmp(header->magic, log_magic, sizeof log_magic) != 0)
        return error_set(err, ERROR_INPUT, "%s: not a Taillight log (bad magic); " INPUT_COPY_AGAIN,
                         path);
    if (header->kind != (uint32_t)kind)
        return error_set(err, ERROR_INPUT,
                         "%s: a log of kind %u where kind %u was expected; " INPUT_COPY_AGAIN, path,
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
                         "%s: the header promises %s records, the file holds %zu bytes of them: "
                         "it is truncated or damaged; " INPUT_COPY_AGAIN,
                         path, TEXT_COUNT(header->records), file_bytes - sizeof *header);
    return 0;
}

// No record is a block of zeros. Where the disk has none for a part of the file, that part was
// never written, as after a crash of the machine, or its length is made up: terabytes take no room
// so.
static int check_for_holes(int fd, const char *path, struct error *err)
{
    struct stat there;
    const off_t hole = fstat(fd, &there) == 0 && there.st_size > 0 ? lseek(fd, 0, SEEK_HOLE) : -1;
    if (hole < 0 || hole >= there.st_size)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s: nothing was written of it from its byte %lld on, though it has %lld: it "
                     "is damaged; " INPUT_COPY_AGAIN,
                     path, (long long)hole, (long long)there.st_size);
}

int log_reader_open(struct log_reader *reader, const char *path, enum log_kind kind,
                    uint32_t version, size_t record_bytes, struct error *err)
{
    memset(reader, 0, sizeof *reader);
    int fd = input_open(path, err);
    if (fd < 0)
        return fd;
    int result = check_for_holes(fd, path, err);
    if (result == 0)
        result = input_map(fd, path, &reader->mapping, &reader->mapping_bytes, err);
    close(fd);
    if (result < 0)
        return result;
    if (reader->mapping_bytes < sizeof reader->header) {
        log_reader_close(reader);
        return error_set(err, ERROR_INPUT, "%s: too short for a Taillight log; " INPUT_COPY_AGAIN,
                         path);
    }
    memcpy(&reader->header, reader->mapping, sizeof reader->header);
    result = log_header_check(&reader->header, reader->mapping_bytes, path, kind, version,
                              record_bytes, err);
    if (result < 0) {
        log_reader_close(reader);
        return result;
    }
    reader->records = (const char *)reader->mapping + sizeof reader->header;
    reader->count = (size_t)reader->header.records;
    return 0;
}

void log_reader_close(struct log_reader *reader)
{
    input_unmap(reader->mapping);
    memset(reader, 0, sizeof *reader);
}
