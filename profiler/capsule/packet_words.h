// SPDX-License-Identifier: MIT
//
// Which packets Time Capsule follows, in words: a filter in the words of pcap-filter(7) that it
// takes, how many of them are sampled, and the key by which that is decided.
#ifndef PROFILER_CAPSULE_PACKET_WORDS_H
#define PROFILER_CAPSULE_PACKET_WORDS_H

#include <stdint.h>

#include "base/error.h"
#include "profiler/bpf/packet_head.h"

// Reads "udp port 11211", "tcp and dst port 6379 and host 10.0.0.2": of ip, ip6, tcp, udp,
// [src|dst] port N and [src|dst] host ADDRESS each at most once, with or without "and" between
// them; all must hold. An empty text takes every TCP and UDP packet. Errors: ERROR_INPUT.
int packet_filter_parse(const char *text, struct packet_filter *out, struct error *err);

// Reads "1/16", or "1" for every packet, as 16 and 1: at most 2^20. Errors: ERROR_INPUT.
int packet_sample_parse(const char *text, uint32_t *one_in, struct error *err);

// Reads "0x1f", with or without 0x: what --`option` asks for, as the key of packet_flow(); up to 16
// digits and not 0. Errors: ERROR_INPUT.
int packet_key_parse(const char *option, const char *text, uint64_t *key, struct error *err);

// What packet_is_sampled() is given for one in so many.
uint32_t packet_sample_limit(uint32_t one_in);

#endif
