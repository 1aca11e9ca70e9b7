#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# node under the shim: libuv closes by syscall(), the files it reads get the numbers of connections,
# and in a cluster the workers get theirs by SCM_RIGHTS. Every byte that the client sent and got is
# in the log, once, and no comparison with the kernel's counts came out odd.
# Time limit: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/ports.sh
command -v node >/dev/null || { echo 'node is not installed'; exit 77; }
build=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
rings=$(mktemp -u /dev/shm/taillight-node-XXXXXX)
failures=0
server_pid='' capture_pid=''
end() {
    [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null
    [ -n "$capture_pid" ] && kill "$capture_pid" 2>/dev/null
    rm -rf "$work" "$rings"
}
trap end EXIT
fail() {
    echo "FAIL: $*"
    failures=1
}

cat >"$work/server.js" <<'JS'
const net = require('net'), fs = require('fs'), cluster = require('cluster');
const port = Number(process.argv[2]), workers = Number(process.argv[3]);
function serve() {
    net.createServer(socket => {
        socket.on('error', () => {});
        socket.on('data', data => fs.readFile(process.argv[4], () => socket.write(data)));
    }).listen(port, '127.0.0.1');
}
if (workers && cluster.isPrimary)
    for (let i = 0; i < workers; i++) cluster.fork();
else
    serve();
JS
# 200 connections, 20 at once, each with 10 requests of its own length; prints the bytes of each way.
cat >"$work/client.js" <<'JS'
const net = require('net');
let begun = 0, open = 0, bytes = 0;
function next() {
    if (begun === 200) {
        if (open === 0) console.log(bytes);
        return;
    }
    const size = 100 + 37 * begun++;
    let requests = 0, waiting = 0;
    const socket = net.connect(Number(process.argv[2]), '127.0.0.1');
    const ask = () => {
        if (requests++ === 10) return socket.end();
        waiting = size;
        bytes += size;
        socket.write(Buffer.alloc(size, 'x'));
    };
    open++;
    socket.on('connect', ask);
    socket.on('data', data => { waiting -= data.length; if (waiting === 0) ask(); });
    socket.on('error', error => { console.error(error); process.exit(1); });
    socket.on('close', () => { open--; next(); });
}
for (let i = 0; i < 20; i++) next();
JS

check() { # WORKERS
    local workers=$1 port out=$work/out-$1 sent
    claim_port
    mkfifo "$work/stop-$workers"
    "$build/taillight" capture --out "$out" --port "$port" --no-events --backend none --shim "$rings" \
        <"$work/stop-$workers" >"$work/ready-$workers" 2>"$work/log-$workers" &
    capture_pid=$!
    exec 5>"$work/stop-$workers"
    await grep -q ready "$work/ready-$workers" || fail "$workers workers: the capture"
    LD_PRELOAD=$build/libtaillight-shim.so TAILLIGHT_SHIM_DIR=$rings \
        node "$work/server.js" "$port" "$workers" "$work/server.js" 2>>"$work/log-$workers" 5>&- &
    server_pid=$!
    await ports_listening "$port" || fail "$workers workers: the server"
    sent=$(node "$work/client.js" "$port") || fail "$workers workers: the client"
    sleep 0.5 # the last closes
    exec 5>&-
    wait "$capture_pid"
    capture_pid=''
    kill "$server_pid"
    wait "$server_pid" 2>/dev/null
    server_pid=''
    python3 - "$out" "$sent" <<'PY' || fail "$workers workers"
import glob, json, struct, sys
folder, sent = sys.argv[1], int(sys.argv[2])
shim = json.load(open(folder + '/capture.json'))['shim']
HEADER = 128 # base/log_file.h
moved, opened = {1: 0, 2: 0}, 0
for name in glob.glob(folder + '/calls*.tlog'): # a long capture has segments
    data = open(name, 'rb').read()
    for at in range(HEADER, len(data), 64):
        length, kind = struct.unpack_from('<24xI22xB', data, at)
        if kind in moved:
            moved[kind] += length
        opened += kind == 3
said = {name: shim[name] for name in ('calls', 'connections', 'dropped', 'doubtful', 'closed_unseen', 'checks', 'checks_agreed')}
print(f'{sent} bytes each way; received {moved[1]}, sent {moved[2]}, {opened} accepted;', said)
sys.exit(not (moved[1] == sent and moved[2] == sent and opened >= 200 and shim['dropped'] == 0 and shim['closed_unseen'] == 0 and shim['checks'] >= 400))
PY
}

check 0
check 2
[ $failures -eq 0 ] || cat "$work"/log-*
exit $failures
