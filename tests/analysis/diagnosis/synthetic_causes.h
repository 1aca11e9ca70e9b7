// SPDX-License-Identifier: MIT
//
// What can make a message of a random server (synthetic.h) slow, what the diagnosis must call it,
// and the names of all that runs on that server.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_CAUSES_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_CAUSES_H

#include "analysis/lifetime/lifetime.h"

enum synthetic_cause {
    CAUSED_BY_TASK_A,    // a busy neighbour has the application's core
    CAUSED_BY_IRQ_A,     // a device interrupt during the service
    CAUSED_BY_SOFTIRQ_A, // a softirq during the service
    CAUSED_BY_WAKE_UP,   // the woken thread is switched in late
    CAUSED_BY_SLEEP,     // the thread sleeps in the middle of the service, nobody knows what for
    CAUSED_BY_LOCK,      // it waits for a lock, whose holder waits for a device
    CAUSED_BY_TIMER,     // it sleeps for a stated time
    CAUSED_BY_PEER,      // it waits for another server's answer, nobody knows on which connection
    CAUSED_BY_FAR,       // the same, on one that it made to a server that was not captured
    CAUSED_BY_BACKEND,   // to one that was: it is that one's work
    CAUSED_BY_BACKEND_TASK,  // or a busy neighbour has its core,
    CAUSED_BY_BACKEND_LOCK,  // it waits for a lock itself,
    CAUSED_BY_BACKEND_TIMER, // it sleeps for a stated time,
    CAUSED_BY_BACKEND_QUOTA, // its control group may not run,
    CAUSED_BY_BACKEND_BUSY,  // it serves somebody else first,
    CAUSED_BY_BACKEND_FAR,   // or it asks the one that was not captured: time is CAUSED_BY_FAR
    CAUSED_BY_QUOTA,         // its control group may not run
    CAUSED_BY_SEND_QUEUE,    // TCP keeps the reply for a while
    CAUSED_BY_DELIVERY,      // the interrupt comes late
    CAUSED_BY_TASK_R,        // a task keeps the softirq from its core
    CAUSED_BY_SLOW_USER,     // a leaf of the application is slow
    CAUSED_BY_SLOW_SEND,     // the kernel is slow to send
    CAUSED_BY_SLOW_RECEIVE,  // the kernel is slow to receive
    CAUSED_BY_MORE_CALLS,    // the application calls a function many times
    CAUSED_BY_UNEXPECTED,    // a page fault, with all that it calls
    CAUSED_BY_CLIENT_QUEUE,
    CAUSED_BY_CLIENT_STACK,
    CAUSED_BY_NETWORK,
    CAUSED_BY_CLIENT_RECEIVE,
    CAUSED_BY_SERVER_A, // another server of the same capture has the application's core
    CAUSED_BY_SERVER_R, // another server's packets are ahead
    CAUSED_BY_BURST,    // many messages at once: the ones ahead, on either core
    SYNTHETIC_CHOSEN,   // the above are chosen; what follows comes about
    CAUSED_BY_AHEAD_A = SYNTHETIC_CHOSEN,
    CAUSED_BY_AHEAD_SAME, // on the same connection
    CAUSED_BY_AHEAD_R,
    CAUSED_BY_AHEAD_FAR, // a message ahead waits for another server
    CAUSED_BY_AHEAD_BACKEND,
    SYNTHETIC_CAUSES
};

static const struct synthetic_name {
    const char *name;
    enum core_role role;
} synthetic_names[SYNTHETIC_CAUSES] = {
    [CAUSED_BY_TASK_A] = {"nginx", ROLE_A},
    [CAUSED_BY_IRQ_A] = {"nvme0q1 interrupt", ROLE_A},
    [CAUSED_BY_SOFTIRQ_A] = {"BLOCK softirq", ROLE_A},
    [CAUSED_BY_WAKE_UP] = {"wake-up latency", ROLE_A},
    [CAUSED_BY_SLEEP] = {"asleep in futex_wait", ROLE_A},
    [CAUSED_BY_LOCK] = {"lock wait (futex): held by lru, blocked in fsync (nvme0q1)", ROLE_A},
    [CAUSED_BY_TIMER] = {"sleeping (timer)", ROLE_A},
    [CAUSED_BY_PEER] = {"waiting for a packet", ROLE_A},
    [CAUSED_BY_FAR] = {"waiting for postgres (10.0.0.9:5432)", ROLE_A},
    [CAUSED_BY_BACKEND] = {"redis: application time", ROLE_A},
    [CAUSED_BY_BACKEND_TASK] = {"redis: nginx", ROLE_A},
    [CAUSED_BY_BACKEND_LOCK] = {"redis: lock wait (futex): held by bio, blocked in fsync (nvme0q1)",
                                ROLE_A},
    [CAUSED_BY_BACKEND_BUSY] = {"redis: head-of-line blocking", ROLE_A},
    [CAUSED_BY_BACKEND_TIMER] = {"redis: sleeping (timer)", ROLE_A},
    [CAUSED_BY_BACKEND_QUOTA] = {"redis: throttled (CPU quota)", ROLE_A},
    [CAUSED_BY_QUOTA] = {"throttled (CPU quota)", ROLE_A},
    [CAUSED_BY_SEND_QUEUE] = {"send queue", ROLE_A},
    [CAUSED_BY_DELIVERY] = {"interrupt delivery", ROLE_R},
    [CAUSED_BY_TASK_R] = {"backup", ROLE_R},
    [CAUSED_BY_SLOW_USER] = {"assoc_find slower", ROLE_A},
    [CAUSED_BY_SLOW_SEND] = {"tcp_write_xmit slower", ROLE_A},
    [CAUSED_BY_SLOW_RECEIVE] = {"tcp_rcv_established slower", ROLE_R},
    [CAUSED_BY_MORE_CALLS] = {"item_get called more often", ROLE_A},
    [CAUSED_BY_UNEXPECTED] = {"unexpected asm_exc_page_fault", ROLE_A},
    [CAUSED_BY_SERVER_A] = {"redis", ROLE_A},
    [CAUSED_BY_SERVER_R] = {"redis", ROLE_R},
    [CAUSED_BY_CLIENT_QUEUE] = {"client queue", ROLE_CLIENT},
    [CAUSED_BY_CLIENT_STACK] = {"client stack", ROLE_CLIENT},
    [CAUSED_BY_NETWORK] = {"network to server", ROLE_NETWORK},
    [CAUSED_BY_CLIENT_RECEIVE] = {"client receive", ROLE_CLIENT},
    [CAUSED_BY_AHEAD_A] = {"head-of-line blocking", ROLE_A},
    [CAUSED_BY_AHEAD_SAME] = {"head-of-line blocking (same connection)", ROLE_A},
    [CAUSED_BY_AHEAD_R] = {"head-of-line blocking", ROLE_R},
    [CAUSED_BY_AHEAD_FAR] = {"head-of-line blocking: waiting for postgres (10.0.0.9:5432)", ROLE_A},
    [CAUSED_BY_AHEAD_BACKEND] = {"head-of-line blocking: waiting for redis (127.0.0.1:6379)",
                                 ROLE_A},
};

#define SYNTHETIC_NAMES(X)                                                                         \
    X(idle)                                                                                        \
    X(memcached)                                                                                   \
    X(nginx)                                                                                       \
    X(backup)                                                                                      \
    X(bystander)                                                                                   \
    X(holder)                                                                                      \
    X(writer)                                                                                      \
    X(local_timer)                                                                                 \
    X(redis)                                                                                       \
    X(eth0)                                                                                        \
    X(nvme0q1)                                                                                     \
    X(NET_RX)                                                                                      \
    X(BLOCK)                                                                                       \
    X(do_idle)                                                                                     \
    X(event_base_loop)                                                                             \
    X(main_loop)                                                                                   \
    X(asm_common_interrupt)                                                                        \
    X(handle_irq)                                                                                  \
    X(handle_softirqs)                                                                             \
    X(net_rx_action)                                                                               \
    X(napi_poll)                                                                                   \
    X(napi_gro_receive)                                                                            \
    X(ip_rcv)                                                                                      \
    X(tcp_v4_rcv)                                                                                  \
    X(tcp_rcv_established)                                                                         \
    X(tcp_ack)                                                                                     \
    X(sock_def_readable)                                                                           \
    X(blk_complete_reqs)                                                                           \
    X(epoll_wait)                                                                                  \
    X(do_epoll_wait)                                                                               \
    X(drive_machine)                                                                               \
    X(recvmsg)                                                                                     \
    X(sock_recvmsg)                                                                                \
    X(tcp_recvmsg)                                                                                 \
    X(skb_copy_datagram_iter)                                                                      \
    X(process_command)                                                                             \
    X(tokenize_command)                                                                            \
    X(assoc_find)                                                                                  \
    X(item_get)                                                                                    \
    X(memcmp)                                                                                      \
    X(futex_wait)                                                                                  \
    X(__schedule)                                                                                  \
    X(task_pid_nr_ns)                                                                              \
    X(asm_exc_page_fault)                                                                          \
    X(handle_mm_fault)                                                                             \
    X(clear_page)                                                                                  \
    X(_raw_spin_lock)                                                                              \
    X(native_queued_spin_lock_slowpath)                                                            \
    X(osq_lock)                                                                                    \
    X(sendmsg)                                                                                     \
    X(sock_sendmsg)                                                                                \
    X(tcp_sendmsg)                                                                                 \
    X(tcp_write_xmit)                                                                              \
    X(ip_queue_xmit)                                                                               \
    X(dev_queue_xmit)
#define SYNTHETIC_ENUM(name) NAME_##name,
enum synthetic_function { SYNTHETIC_NAMES(SYNTHETIC_ENUM) SYNTHETIC_NAME_COUNT };

#endif
