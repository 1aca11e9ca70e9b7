// SPDX-License-Identifier: MIT
//
// A recorded schedule as packets: a pcap or pcapng file, read by libpcap (pcap-savefile(5)). Of
// Ethernet (with VLANs), Linux cooked, raw IP and loopback frames the TCP segments over IPv4 and
// IPv6 are taken, and the commands in what clients sent (recording_stream.h). A request counts from
// the packet that made it whole.
#ifndef LOADGEN_RECORDING_RECORDING_PCAP_H
#define LOADGEN_RECORDING_RECORDING_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "loadgen/recording/recording.h"

// By a file's first bytes.
bool pcap_begins(const void *bytes, size_t count);

// Reads it, which may hold any bytes, and closes it, also after an error. path: for errors, which
// are ERROR_INPUT with the packet. The caller frees with recording_free, also after an error.
int recording_parse_pcap(FILE *file, const char *path, const struct workload *workload,
                         struct recording *recording, struct error *err);

#endif
