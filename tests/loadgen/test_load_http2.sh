#!/usr/bin/env bash
# HTTP/2 against nginx, over TCP and over TLS: what it logs is what was answered, also where it ends
# connections after every 100th request; bodies larger than its windows; and servers that speak
# another HTTP.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" http2
PATH=$PATH:/usr/sbin
load() { # options ...
    timeout 60 "$taillight" load --sleep --quiet --json --rate 4k --duration 250ms --timeout 20s --seed 5 --connections 4 "$@" \
        >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    grep -q '"errors": {}' "$dir/out" || fail "load $*: errors"
    # What TCP sends again is stamped again; were the offsets wrong, every stamp would be unknown.
    [ $(($(value tx_stamps_unknown) * 2)) -lt "$(value answered)" ] || fail "load $*: stamps of other bytes"
}
refused() { # text, options ...
    refuses() {
        timeout 20 "$taillight" load --rate 1k --duration 100ms --quiet "${@:2}" >"$dir/out" 2>"$dir/err"
        [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err"
    }
    await refuses "$@" || fail "load ${*:2}: does not say $1"
}
have nginx || { echo 'not installed: nginx' && exit 77; }
have jq || { echo 'not installed: jq' && exit 77; }
have openssl || { echo 'not installed: openssl' && exit 77; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
    -subj /CN=server -addext 'subjectAltName=IP:127.0.0.1' -days 2 2>>"$dir/log"
mkdir "$dir/html"
for key in 0 1 2 3; do printf 'page %s\n' $key >"$dir/html/$key"; done
claim_port && plain=$port
claim_port && inner=$port
claim_port && other=$port
claim_port && other_tls=$port
cat >"$dir/nginx.in" <<'END'
daemon off; pid DIR/nginx.pid; error_log DIR/error.log; worker_processes 1;
events { worker_connections 128; }
http { log_format words '$server_protocol $request_method $request_uri $host $http_x_who $content_length $status';
 access_log DIR/words.log words; default_type text/plain;
  keepalive_requests 100; client_max_body_size 8m; client_body_temp_path DIR; proxy_temp_path DIR; fastcgi_temp_path DIR;
  uwsgi_temp_path DIR; scgi_temp_path DIR; ssl_certificate DIR/cert.pem; ssl_certificate_key DIR/key.pem; root DIR/html;
  server { listen 127.0.0.1:PLAIN http2; location /take/ { proxy_pass http://127.0.0.1:INNER; }
    location /early/ { access_log off; return 200; } }
  server { listen 127.0.0.1:INNER; access_log off; location / { return 204; } }
  server { listen 127.0.0.1:OTHER; access_log off; }
  server { listen 127.0.0.1:SECOND ssl; access_log off; }
  server { listen 127.0.0.1:PORT ssl http2; } }
END
claim_port
sed "s|DIR|$dir|g; s|PLAIN|$plain|g; s|INNER|$inner|g; s|OTHER|$other|g; s|SECOND|$other_tls|g; s|PORT|$port|g" \
    "$dir/nginx.in" >"$dir/nginx.conf"
nginx -p "$dir" -c "$dir/nginx.conf" >"$dir/log" 2>&1 &
servers+=($!)
await ports_listening "$port" || fail 'nginx does not listen'

printf 'protocol: http2\nkeys: {count: 8, size: {fixed: 1}}\n' >"$dir/half.yaml" # half of them are not there
cat >"$dir/words.yaml" <<'END'
protocol: http2
keys: {count: 4, size: {fixed: 1}}
values: {size: {bimodal: [300, 1MiB, 0.1]}}
mix: {put: 1, post: 1}
http: {path: "/take/{key}?full", host: shop.example, headers: ["X-Who: me"]}
END
load --server "127.0.0.1:$plain" --workload "$dir/half.yaml" --depth 8
misses=$(value misses)
[ "$misses" -gt 200 ] && [ "$misses" -lt "$(value answered)" ] || fail '404 is no miss'
[ "$(value connections_ended)" -ge 2 ] || fail 'nginx ended no connection'
answered=$(value answered)
load --server "127.0.0.1:$plain" --workload "$dir/words.yaml" --rate 200 --depth 4
answered=$((answered + $(value answered)))
words=$(value answered)
load --server "http2s://127.0.0.1:$port/2?a=b" --tls-ca "$dir/cert.pem" --depth 8
[ "$(value misses)" = 0 ] || fail 'the path of a URL'
grep -q '"suite": "TLSv1' "$dir/out" || fail 'no TLS'
answered=$((answered + $(value answered)))
by_url=$(value answered)

# Replies that come before all of their requests has left: no earlier than what was sent.
printf 'protocol: http2\nvalues: {size: {fixed: 500000}}\nmix: {post: 1}\nhttp: {path: "/early/{key}"}\n' >"$dir/early.yaml"
load --server "127.0.0.1:$plain" --workload "$dir/early.yaml" --rate 200 --depth 4
jq -e '[.uncorrected_latency_us[] | select(. != null) | . > 0] | length > 2 and all' "$dir/out" >"$dir/said" ||
    fail 'replies that came before their requests had left'

# Sessions, which end in order: in the middle of none.
printf 'protocol: http2\nkeys: {count: 4, size: {fixed: 1}}\n' >"$dir/found.yaml"
load --server "127.0.0.1:$plain" --workload "$dir/found.yaml" --depth 4 --session 7
[ "$(jq .sessions.ended "$dir/out")" -gt 100 ] && [ "$(jq .sessions.ended "$dir/out")" = "$(value connections_ended)" ] ||
    fail 'sessions do not end by themselves'
answered=$((answered + $(value answered)))

refused 'but as http: try --protocol http' --server "127.0.0.1:$other" --protocol http2
refused 'speaks http2: try --protocol http2' --server "127.0.0.1:$plain" --protocol http
refused 'no application protocol' --server "127.0.0.1:$other_tls" --protocol http2 --tls-ca "$dir/cert.pem"
printf 'http: {path: /x}\n' >"$dir/bad.yaml"
refused 'which knows neither paths nor headers' --server "127.0.0.1:$plain" --workload "$dir/bad.yaml"

kill "${servers[@]}" && wait "${servers[@]}" 2>/dev/null # writes its log
servers=()

# One that lets nothing through is said to: it allows no stream, or reads no byte of a body.
printf 'protocol: http2\nmix: {post: 1}\nvalues: {size: {fixed: 100}}\n' >"$dir/bodies.yaml"
held() { # how, words, options ...
    start python3 "$here/servers/http2_server.py" PORT "$1"
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol http2 --quiet --json --rate 1k --duration 200ms --timeout 300ms \
        --connections 2 --depth 4 --sleep "${@:3}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] && [ "$(value unsent)" = "$(value scheduled)" ] || fail "$1: not everything is unsent"
    jq -e --arg words "on 2 of 2 connections the server$2" '.reasons | join(" ") | contains($words)' "$dir/out" >>"$dir/log" ||
        fail "$1: it is not said why nothing was sent: $(jq -c .reasons "$dir/out")"
}
held streamless ' allowed no further stream of HTTP/2'
held windowless "'s HTTP/2 window had no room for a body" --workload "$dir/bodies.yaml"

# One that refuses every request with GOAWAY is tried again ever more slowly, and in the end given up.
start python3 "$here/servers/http2_server.py" PORT refuses
timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol http2 --quiet --json --rate 2k --duration 1s --timeout 5s \
    --connections 2 --reconnect 1s --sleep >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || fail 'a server that refuses everything: it is no failure'
[ "$(value connections_given_up)" = 2 ] && [ "$(value answered)" = 0 ] || fail 'a server that refuses everything is not given up'
[ "$(value connections_ended)" -gt 4 ] && [ "$(value connections_ended)" -lt 80 ] ||
    fail "connected $(value connections_ended) times to a server that refuses everything"
grep -q 'broke after 0 replies: the server said that it closes it' "$dir/out" || fail 'it is not said that it refuses everything'

# One that is there no more, and whose machine does not say so: the load ends while connections to it are being opened
# that ended in the middle of a body.
printf 'protocol: http2\nmix: {post: 1}\nvalues: {size: {fixed: 300KiB}}\n' >"$dir/bodies.yaml"
start python3 "$here/servers/http2_server.py" PORT deaf
timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol http2 --quiet --json --rate 2k --duration 500ms --timeout 500ms \
    --connections 2 --depth 4 --sleep --workload "$dir/bodies.yaml" >"$dir/out" 2>"$dir/err"
case $? in 1 | 4) ;; *) fail 'a server that went deaf' ;; esac
jq -e '.connections_ended == 2 and .reconnects == 0 and .unsent > 0 and .scheduled == .answered + .lost + .unsent + .timed_out' \
    "$dir/out" >>"$dir/log" || fail 'a server that went deaf: requests are not counted once'
# One that leaves while a body is on its way, over TLS: what has not left is dropped, and nothing follows it. Which the load's own
# end may forestall on its last connection, and then TLS ends as it should.
printf 'protocol: http2\nmix: {post: 1}\nvalues: {size: {fixed: 300KiB}}\n' >"$dir/bodies.yaml"
start python3 "$here/servers/leaving_server.py" PORT "$dir/cert.pem" "$dir/key.pem"
timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol http2 --quiet --json --rate 20 --duration 500ms --timeout 500ms \
    --connections 1 --depth 1 --sleep --tls-ca "$dir/cert.pem" --workload "$dir/bodies.yaml" >"$dir/out" 2>"$dir/err"
grep -qx 'cut off' "$dir/log" || fail 'a server that leaves: it was not asked'
! grep -qvE '^(cut off|whole)$' "$dir/log" || fail "a server that leaves: TLS broke: $(sort "$dir/log" | uniq -c)"
logged=$(grep -c '^HTTP/2.0 ' "$dir/words.log")
[ "$logged" -eq "$answered" ] || fail "the server's log has $logged of $answered"
[ "$(grep -c ' 404$' "$dir/words.log")" -eq "$misses" ] || fail '404s in the log'
[ "$(grep -cxE 'HTTP/2.0 (PUT|POST) /take/[0-3]\?full shop\.example me (300|1048576) 204' "$dir/words.log")" -eq "$words" ] ||
    fail "not $words with words of their own: $(grep take "$dir/words.log" | head -n 3)"
[ "$(grep -cxF "HTTP/2.0 GET /2?a=b 127.0.0.1 - - 200" "$dir/words.log")" -eq "$by_url" ] ||
    fail "not $by_url by URL: $(grep 'a=b' "$dir/words.log" | head -n 3)"
exit 0
