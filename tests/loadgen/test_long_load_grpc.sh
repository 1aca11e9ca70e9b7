#!/usr/bin/env bash
# Unary calls against gRPC's own library, over TCP and over TLS: the calls and the bytes that it has
# seen are those of the load, each verdict is its status, and calls of a method that it does not
# have are errors in its words.
set -u
. "$(dirname "$0")/secured_lib.sh" grpc
python=''
for each in python3 /usr/bin/python3; do
    "$each" -c 'import grpc' 2>/dev/null && python=$each
done
[ "$python" ] || { echo 'not installed: python3-grpcio' && exit 77; }
have openssl || { echo 'not installed: openssl' && exit 77; }
load() { # method, options ...
    printf 'protocol: grpc\nkeys: {count: 100, size: {fixed: 4}}\nvalues: {size: {bimodal: [200, 1MiB, 0.1]}}\nmix: {%s}\n' \
        "$mix" >"$dir/workload.yaml"
    printf 'http: {path: /test.Lab/%s}\n' "$1" >>"$dir/workload.yaml"
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --quiet --json --rate 500 --duration 1s --timeout 20s --seed 5 \
        --connections 2 --depth 8 --workload "$dir/workload.yaml" "${@:2}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    [ "$(value connections_ended)" = 0 ] || fail "load $*: a connection ended"
}
end() { # METHOD calls ...: what the server has seen
    local server=${servers[-1]}
    kill "$server" && wait "$server" 2>/dev/null
    unset 'servers[-1]'
    while [ $# -gt 0 ]; do
        [ "$(sed -n "s/^$1 \([0-9]*\) .*/\1/p" "$dir/log")" = "$2" ] || fail "$1: the server does not count $2"
        shift 2
    done
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
    -subj /CN=server -addext 'subjectAltName=IP:127.0.0.1' -days 2 2>>"$dir/log"

start "$python" "$here/servers/grpc_server.py" PORT
mix='call: 1'
load Half
grep -q '"errors": {}' "$dir/out" || fail 'a call: errors'
[ "$(value misses)" -gt 100 ] && [ "$(value misses)" -lt "$(value answered)" ] || fail 'NOT_FOUND is no miss'
half=$(value answered)
load Full
grep -q "\"server_error\": $(value answered)" "$dir/out" && grep -q 'grpc-status 8: no room' "$dir/out" ||
    fail 'RESOURCE_EXHAUSTED is no error, or is not quoted'
full=$(value answered)
load Missing
grep -q "\"client_error\": $(value answered)" "$dir/out" && grep -q 'grpc-status 12: ' "$dir/out" ||
    fail 'a method that there is not is no error'
mix='call: 1, send: 1, raw: 1'
load Echo
grep -q '"errors": {}' "$dir/out" || fail 'sends: errors'
end Half "$half" Full "$full" Echo "$(value answered)"
[ "$(sed -n 's/^Full [0-9]* //p' "$dir/log")" = $((full * 6)) ] || fail 'a message of one key has not six bytes'
[ "$(sed -n 's/^Echo [0-9]* //p' "$dir/log")" -gt 1048576 ] || fail 'no large message arrived'

start "$python" "$here/servers/grpc_server.py" PORT "$dir/cert.pem" "$dir/key.pem"
load Echo --tls-ca "$dir/cert.pem"
grep -q '"errors": {}' "$dir/out" && grep -q '"suite": "TLSv1' "$dir/out" || fail 'TLS: errors'
end Echo "$(value answered)"
exit 0
