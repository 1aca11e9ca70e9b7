// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_pcap.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "loadgen/recording/recording_stream.h"

enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, TYPE_VLAN = 0x8100, TYPE_SERVICE_VLAN = 0x88a8 };
enum { VLANS_MOST = 4, EXTENSIONS_MOST = 8 };
enum { TCP_SYN = 0x02, TCP_ACK = 0x10 };

// What is left of a packet: bytes that the file has, and bytes that it had.
struct packet {
    const uint8_t *at;
    size_t kept, count;
};

enum verdict { TAKEN, NOT_TCP, DAMAGED };

// Captures of several queues are not quite in order, by much less than this.
static const double disorder_most_s = 1;

static uint32_t read_16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t read_32(const uint8_t *at)
{
    return read_16(at) << 16 | read_16(at + 2);
}

static bool strip(struct packet *packet, size_t bytes)
{
    if (packet->kept < bytes)
        return false;
    packet->at += bytes;
    packet->kept -= bytes;
    packet->count -= bytes;
    return true;
}

// Takes the padding of short frames away.
static void shorten(struct packet *packet, size_t count)
{
    packet->count = packet->count < count ? packet->count : count;
    packet->kept = packet->kept < count ? packet->kept : count;
}

// --- below IP ------------------------------------------------------------------------------------

static bool strip_vlans(struct packet *packet, uint32_t *type)
{
    for (unsigned i = 0; i < VLANS_MOST && (*type == TYPE_VLAN || *type == TYPE_SERVICE_VLAN);
         i++) {
        if (packet->kept < 4)
            return false;
        *type = read_16(packet->at + 2);
        strip(packet, 4);
    }
    return true;
}

// A header of so many bytes, with the EtherType at one place.
static bool strip_frame(struct packet *packet, size_t bytes, size_t type_at, uint32_t *type)
{
    if (packet->kept < bytes)
        return false;
    *type = read_16(packet->at + type_at);
    return strip(packet, bytes) && strip_vlans(packet, type);
}

// Raw IP says its version itself.
static bool look_at_version(const struct packet *packet, uint32_t *type)
{
    if (packet->kept < 1)
        return false;
    *type = packet->at[0] >> 4 == 4 ? TYPE_IPV4 : packet->at[0] >> 4 == 6 ? TYPE_IPV6 : 0;
    return true;
}

static bool link_known(int link)
{
    return link == DLT_EN10MB || link == DLT_LINUX_SLL || link == DLT_LINUX_SLL2 ||
           link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6 || link == DLT_NULL ||
           link == DLT_LOOP;
}

static bool strip_link(struct packet *packet, int link, uint32_t *type)
{
    switch (link) {
    case DLT_EN10MB:
        return strip_frame(packet, 14, 12, type);
    case DLT_LINUX_SLL:
        return strip_frame(packet, 16, 14, type);
    case DLT_LINUX_SLL2:
        return strip_frame(packet, 20, 0, type);
    case DLT_NULL: // an address family, by the number that some system has for it
    case DLT_LOOP:
        return strip(packet, 4) && look_at_version(packet, type);
    default:
        return look_at_version(packet, type);
    }
}

// --- IP and TCP ----------------------------------------------------------------------------------

static enum verdict strip_ipv4(struct packet *packet, struct segment *segment)
{
    if (packet->kept < 20)
        return DAMAGED;
    const uint8_t *ip = packet->at;
    const size_t header = (size_t)(ip[0] & 15) * 4;
    const size_t total = read_16(ip + 2); // 0: the NIC was to divide it
    if (ip[9] != IPPROTO_TCP)
        return NOT_TCP;
    if (ip[0] >> 4 != 4 || header < 20 || (total && total < header) || (read_16(ip + 6) & 0x3fff))
        return DAMAGED; // or a fragment
    if (total)
        shorten(packet, total);
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(segment->from.address, mapped, sizeof mapped);
    memcpy(segment->to.address, mapped, sizeof mapped);
    memcpy(segment->from.address + 12, ip + 12, 4);
    memcpy(segment->to.address + 12, ip + 16, 4);
    return strip(packet, header) ? TAKEN : DAMAGED;
}

static enum verdict strip_ipv6(struct packet *packet, struct segment *segment)
{
    if (packet->kept < 40)
        return DAMAGED;
    const uint8_t *ip = packet->at;
    const size_t payload = read_16(ip + 4);
    uint8_t next = ip[6];
    if (ip[0] >> 4 != 6)
        return DAMAGED;
    if (payload)
        shorten(packet, payload + 40);
    memcpy(segment->from.address, ip + 8, 16);
    memcpy(segment->to.address, ip + 24, 16);
    strip(packet, 40);
    for (unsigned i = 0;
         i < EXTENSIONS_MOST &&
         (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS);
         i++) {
        if (packet->kept < 8)
            return DAMAGED;
        next = packet->at[0];
        if (!strip(packet, ((size_t)packet->at[1] + 1) * 8))
            return DAMAGED;
    }
    return next == IPPROTO_TCP ? TAKEN : next == IPPROTO_FRAGMENT ? DAMAGED : NOT_TCP;
}

static enum verdict read_packet(struct packet *packet, int link, struct segment *segment)
{
    uint32_t type;
    if (!strip_link(packet, link, &type))
        return DAMAGED;
    enum verdict verdict = type == TYPE_IPV4   ? strip_ipv4(packet, segment)
                           : type == TYPE_IPV6 ? strip_ipv6(packet, segment)
                                               : NOT_TCP;
    if (verdict != TAKEN)
        return verdict;
    if (packet->kept < 20)
        return DAMAGED;
    const uint8_t *tcp = packet->at;
    segment->from.port = (uint16_t)read_16(tcp);
    segment->to.port = (uint16_t)read_16(tcp + 2);
    segment->sequence = read_32(tcp + 4);
    segment->acknowledged = read_32(tcp + 8);
    segment->syn = tcp[13] & TCP_SYN;
    segment->ack = tcp[13] & TCP_ACK;
    const size_t header = (size_t)(tcp[12] >> 4) * 4;
    if (header < 20 || header > packet->count)
        return DAMAGED;
    shorten(packet, 1 << 24); // more than any segment has
    // A capture may keep less than the header: then it keeps no data.
    const size_t kept = header < packet->kept ? header : packet->kept;
    segment->bytes = (const char *)tcp + kept;
    segment->kept = (uint32_t)(packet->kept - kept);
    segment->count = (uint32_t)(packet->count - header);
    return TAKEN;
}

// --- the file ------------------------------------------------------------------------------------

bool pcap_begins(const void *bytes, size_t count)
{
    static const char magics[][4] = {"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d",
                                     "\x4d\x3c\xb2\xa1", "\x0a\x0d\x0d\x0a"};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (count >= sizeof *magics && memcmp(bytes, magics[i], sizeof *magics) == 0)
            return true;
    return false;
}

// libpcap is loaded when a capture is read: it brings seven more libraries (D-Bus, systemd), which
// a load generator and what it copies to other hosts have no other use for.
struct library {
    void *handle;
    pcap_t *(*open)(FILE *file, u_int precision, char *text);
    int (*link)(pcap_t *pcap);
    const char *(*link_name)(int link);
    int (*next)(pcap_t *pcap, struct pcap_pkthdr **header, const u_char **bytes);
    char *(*why)(pcap_t *pcap);
    void (*close)(pcap_t *pcap);
};

static int library_load(struct library *library, const char *path, struct error *err)
{
    static const char name[] = "libpcap.so.0.8";
    *library = (struct library){.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (!library->handle)
        return error_set(err, ERROR_FAILED,
                         "%s: packets are read by libpcap, which is not there (%s); install it: "
                         "apt-get install libpcap0.8",
                         path, dlerror());
    const struct {
        const char *name;
        void *function; // where it goes
    } functions[] = {{"pcap_fopen_offline_with_tstamp_precision", &library->open},
                     {"pcap_datalink", &library->link},
                     {"pcap_datalink_val_to_name", &library->link_name},
                     {"pcap_next_ex", &library->next},
                     {"pcap_geterr", &library->why},
                     {"pcap_close", &library->close}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library->handle, functions[i].name);
        if (!found) {
            dlclose(library->handle);
            return error_set(err, ERROR_FAILED, "%s: %s has no %s", path, name, functions[i].name);
        }
        memcpy(functions[i].function, &found, sizeof found); // as dlsym(3) has it
    }
    return 0;
}

// libpcap reads no further. A capture that ends within a packet was cut off; where more stands
// behind, such as packets of another link type than the first interface's, that would be lost.
static int end_early(const struct library *library, pcap_t *pcap, FILE *file,
                     const struct reading *reading)
{
    if (feof(file)) {
        reading->recording->damaged++;
        return 0;
    }
    return error_set(reading->err, ERROR_INPUT,
                     "%s: what is behind packet %s cannot be read (%s): divide the capture by its "
                     "interfaces, or where it is damaged (tshark, editcap), and replay one part",
                     reading->path, TEXT_COUNT(reading->line), library->why(pcap));
}

static int read_packets(const struct library *library, pcap_t *pcap, FILE *file,
                        struct streams *streams)
{
    struct reading *reading = streams->reading;
    const int link = library->link(pcap);
    struct pcap_pkthdr *header;
    const u_char *bytes;
    double begin = -1;
    int got;
    while ((got = library->next(pcap, &header, &bytes)) == 1) {
        struct packet packet = {bytes, header->caplen,
                                header->len > header->caplen ? header->len : header->caplen};
        struct segment segment = {0};
        // Of nanosecond precision: what is called microseconds are nanoseconds.
        const double time = (double)header->ts.tv_sec + (double)header->ts.tv_usec / 1e9;
        begin = begin < 0 ? time : begin;
        reading->line++;
        if (time - begin < streams->now_s - disorder_most_s)
            return reading_wrong(reading,
                                 "was captured more than a second before what is above it, so that "
                                 "nobody knows when it was sent: divide the capture where its "
                                 "clock was set back (editcap), and replay one part");
        if (time - begin > streams->now_s) // a request is not before another
            streams->now_s = time - begin;
        const enum verdict verdict = read_packet(&packet, link, &segment);
        reading->recording->damaged += verdict == DAMAGED;
        int status = verdict == TAKEN ? streams_take(streams, &segment) : 0;
        if (status < 0)
            return status;
    }
    int status = got == PCAP_ERROR ? end_early(library, pcap, file, reading) : 0;
    return status < 0 ? status : streams_end(streams);
}

static int parse(const struct library *library, pcap_t *pcap, FILE *file, struct reading *reading)
{
    struct streams streams = {.reading = reading};
    reading_expect_commands(reading);
    const int link = library->link(pcap);
    const char *name = library->link_name(link);
    int result = link_known(link)
                     ? read_packets(library, pcap, file, &streams)
                     : error_set(reading->err, ERROR_INPUT,
                                 "%s: packets of link type %s are not read: capture on an Ethernet "
                                 "device, or on `any`",
                                 reading->path, name ? name : "unknown");
    streams_free(&streams);
    return result == 0 ? reading_finish(reading) : result;
}

int recording_parse_pcap(FILE *file, const char *path, const struct workload *workload,
                         struct recording *recording, struct error *err)
{
    char text[PCAP_ERRBUF_SIZE] = "";
    struct library library;
    *recording = (struct recording){0};
    int result = library_load(&library, path, err);
    if (result < 0) {
        fclose(file);
        return result;
    }
    pcap_t *pcap = library.open(file, PCAP_TSTAMP_PRECISION_NANO, text);
    if (pcap) {
        struct reading reading = {.path = path,
                                  .workload = workload,
                                  .recording = recording,
                                  .begin = -1,
                                  .copies_keys = true,
                                  .err = err};
        result = parse(&library, pcap, file, &reading);
        reading_free(&reading);
        library.close(pcap); // and the file
    } else {
        fclose(file);
        result = error_set(err, ERROR_INPUT, "%s: %s", path, text);
    }
    dlclose(library.handle);
    return result;
}
