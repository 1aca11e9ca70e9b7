// SPDX-License-Identifier: MIT
//
// The server behind labserver (--backend): asked once for each request, over a few connections that
// all workers share. Who finds none free waits for one. Ground truth for waits for another server.
#ifndef WORKLOADS_LAB_LAB_BACKEND_H
#define WORKLOADS_LAB_LAB_BACKEND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { LAB_BACKEND_CONNECTIONS = 64 };

struct lab_backend {
    uint16_t port;     // on this machine, memcached's protocol; 0: there is none
    unsigned capacity; // connections
    pthread_mutex_t lock;
    pthread_cond_t returned;
    unsigned idle_count;               // of those at hand
    int idle[LAB_BACKEND_CONNECTIONS]; // sockets; -1: not connected yet
};

// "PORT" or "PORT,CONNECTIONS": "11212,4". One connection where it says no number.
int lab_backend_parse(const char *text, struct lab_backend *backend, struct error *err);

// Asks for a key that it does not have. False: it did not answer. Any thread may call it.
bool lab_backend_ask(struct lab_backend *backend);

#endif
