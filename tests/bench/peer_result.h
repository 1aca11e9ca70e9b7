// SPDX-License-Identifier: MIT
//
// What a peer of the load generator's benchmark came to.
#ifndef TESTS_BENCH_PEER_RESULT_H
#define TESTS_BENCH_PEER_RESULT_H

struct peer_result {
    double requests, rate; // rate in requests a second
};

#endif
