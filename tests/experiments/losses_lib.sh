# SPDX-License-Identifier: MIT
#
# What the tests of requests that are lost over UDP share: neighbours of an experiment, for its YAML, that lose some
# at a known place. Sourced after run_lib.sh.

# For 300 ms a host's link passes a third of what it sends, and has no queue: narrow HOST DEVICE BEGIN
narrow() {
    echo "{host: $1, start: $3, command: [sh, -ec, 'tc qdisc add dev $2 root tbf rate 800kbit burst 1600 limit 1600; sleep 0.3; tc qdisc del dev $2 root']}"
}
# For half a second the host server's memcached is stopped, until its socket is full: stopped BEGIN
stopped() {
    echo "{host: server, start: $1, command: [sh, -ec, 'for p in \$(pidof memcached); do [ /proc/\$p/ns/net -ef /proc/self/ns/net ] && pid=\$p; done; kill -STOP \$pid; sleep 0.5; kill -CONT \$pid']}"
}
