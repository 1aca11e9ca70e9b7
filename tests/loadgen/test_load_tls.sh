#!/usr/bin/env bash
# TLS against Redis, memcached and nginx, with certificates of an authority made here: believed, not
# believed, of another name; sessions resumed on reconnects; and servers that speak no TLS, or stop.
# Every request is counted once, and the kernel's stamps hold.
# Runs beside others: it asserts counts and words, no times. What takes longer is left to check-long.
set -u
. "$(dirname "$0")/secured_lib.sh" tls
load() { # server, options ...
    local sleep=--sleep
    [[ $* = *--agent* ]] && sleep= # agents never do
    timeout 60 "$taillight" load $sleep --server "$1" --quiet --json --rate 4k --duration 100ms --timeout 20s --seed 5 \
        --connections 4 --workload "$dir/workload.yaml" --tls-ca "$dir/ca.pem" "${@:2}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    grep -q '"errors": {}' "$dir/out" || fail "load $*: errors"
    [ "$(tls handshakes)" -eq 4 ] && grep -q '"suite": "TLSv1.[23], ' "$dir/out" || fail "load $*: handshakes"
    # What TCP sends again is stamped again; were the offsets wrong, every stamp would be unknown.
    [ $(($(value tx_stamps_unknown) * 2)) -lt "$(value answered)" ] || fail "load $*: stamps of other bytes"
}
# Whoever has no core for half a second is not waited for, and what it speaks is not known: then another time.
refused() { # text, server, options ...
    refuses() {
        timeout 20 "$taillight" load --server "$2" --rate 1k --duration 100ms --quiet "${@:3}" >"$dir/out" 2>"$dir/err"
        [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err"
    }
    await refuses "$@" || fail "load ${*:2}: does not say $1"
}
prepare() { # server, options ...
    timeout 60 "$taillight" load --server "$1" --quiet --prepare --workload "$dir/workload.yaml" --tls-ca "$dir/ca.pem" \
        "${@:2}" >"$dir/out" 2>"$dir/err" || fail "prepare $*"
    grep -q '^200* keys stored and verified' "$dir/out" || fail "prepare $*"
}
tls() { # handshakes or resumed: how many
    jq ".tls.$1.count" "$dir/out"
}
certificate() { # name, what it is for
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/$1.key" -out "$dir/req.pem" \
        -subj /CN=server 2>>"$dir/log"
    echo "subjectAltName=$2" >"$dir/extension"
    openssl x509 -req -in "$dir/req.pem" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -extfile "$dir/extension" \
        -out "$dir/$1.pem" -days 2 2>>"$dir/log"
}
printf 'keys: {count: 200}\nmix: {get: 1, set: 1}\n' >"$dir/workload.yaml"

have openssl || { echo 'not installed: openssl' && exit 77; }
have jq || { echo 'not installed: jq' && exit 77; }
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/ca.key" -out "$dir/ca.pem" \
    -subj /CN=authority -days 2 2>>"$dir/log"
certificate server DNS:localhost,IP:127.0.0.1
certificate other DNS:elsewhere.example

# --- what is wrong before anybody is asked -------------------------------------------------------
refused '--tls-ca' 127.0.0.1:1 --tls-ca "$dir/none"
refused 'holds no certificates' 127.0.0.1:1 --tls-ca "$dir/workload.yaml"
refused 'exclude each other' 127.0.0.1:1 --tls-ca "$dir/ca.pem" --tls-insecure
refused 'holds no certificate to show' 127.0.0.1:1 --tls-cert "$dir/server.key"
refused 'holds no key of the certificate' 127.0.0.1:1 --tls-cert "$dir/server.pem"
refused 'holds no key of the certificate' 127.0.0.1:1 --tls-cert "$dir/server.pem" --tls-key "$dir/other.key"
refused '--tls-key is for --tls-cert' 127.0.0.1:1 --tls-key "$dir/server.key"
refused 'TLS goes over TCP only' udp:127.0.0.1:1 --tls
refused 'TLS goes over TCP only' unix:/nowhere --tls

# --- Redis ---------------------------------------------------------------------------------------
if have redis-server; then
    start redis-server --port 0 --tls-port PORT --bind 127.0.0.1 --save '' --dir "$dir" --tls-cert-file "$dir/server.pem" \
        --tls-key-file "$dir/server.key" --tls-ca-cert-file "$dir/ca.pem" --tls-auth-clients no --requirepass word
    ask() { REDISCLI_AUTH=word redis-cli -p "$port" --tls --cacert "$dir/ca.pem" "$@"; }
    at=127.0.0.1:$port
    refused 'its certificate is not believed' "$at" --protocol redis --tls
    refused "$at wants a login (\"-NOAUTH" "$at" --protocol redis --tls-ca "$dir/ca.pem"
    export TAILLIGHT_PASSWORD=word
    prepare "redis://$at"
    ask config resetstat >"$dir/log"
    load "redis://localhost:$port" --depth 16
    [ "$(value misses)" = 0 ] || fail 'redis: misses'
    seen=$(ask info commandstats | sed -n 's/^cmdstat_[gs]et:calls=\([0-9]*\),.*/\1/p' | paste -sd+ | bc)
    [ "$seen" -eq "$(value answered)" ] || fail "redis: the server counts $seen requests"
    if is_long; then
        load "redis://$at" --agent symmetric,connections=4
        # Values of several records, both ways. The kernel stamps again what it sends again.
        printf 'keys: {count: 20}\nmix: {get: 1, set: 1}\nvalues: {size: {uniform: [10000, 200000]}}\n' >"$dir/large.yaml"
        prepare "redis://$at" --workload "$dir/large.yaml"
        timeout 60 "$taillight" load --sleep --server "redis://$at" --quiet --json --rate 300 --duration 300ms --timeout 20s \
            --connections 4 --workload "$dir/large.yaml" --tls-ca "$dir/ca.pem" >"$dir/out" 2>"$dir/err"
        [ "$(value answered)" = "$(value scheduled)" ] && grep -q '"errors": {}' "$dir/out" || fail 'values of several records'
    fi
    unset TAILLIGHT_PASSWORD
    # One that wants a certificate of its clients, as it does unless told otherwise.
    start redis-server --port 0 --tls-port PORT --bind 127.0.0.1 --save '' --dir "$dir" --tls-cert-file "$dir/server.pem" \
        --tls-key-file "$dir/server.key" --tls-ca-cert-file "$dir/ca.pem"
    at=127.0.0.1:$port
    openssl req -x509 -key "$dir/other.key" -out "$dir/self.pem" -subj /CN=self -days 2 2>>"$dir/log"
    refused '--tls-cert FILE' "redis://$at" --tls-ca "$dir/ca.pem"
    refused 'alert unknown ca' "redis://$at" --tls-ca "$dir/ca.pem" --tls-cert "$dir/self.pem" --tls-key "$dir/other.key"
    prepare "redis://$at" --tls-cert "$dir/other.pem" --tls-key "$dir/other.key"
    load "redis://$at" --tls-cert "$dir/other.pem" --tls-key "$dir/other.key"
    cat "$dir/other.key" "$dir/other.pem" >"$dir/both.pem"
    is_long && load "redis://$at" --agent symmetric,connections=4 --tls-cert "$dir/both.pem"
fi

# --- memcached -----------------------------------------------------------------------------------
if have memcached && memcached -h | grep -q -e --enable-ssl; then
    user=()
    [ "$(id -u)" -eq 0 ] && user=(-u root)
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 64 -Z \
        -o "ssl_chain_cert=$dir/server.pem,ssl_key=$dir/server.key"
    prepare "memcached://127.0.0.1:$port"
    load "memcached://127.0.0.1:$port"
    [ "$(value misses)" = 0 ] || fail 'memcached: misses'
    refused 'try --protocol memcached' "127.0.0.1:$port" --protocol redis --tls-ca "$dir/ca.pem"
    # What it says to those it has no room for is no TLS.
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 64 -c 20 -Z \
        -o "ssl_chain_cert=$dir/server.pem,ssl_key=$dir/server.key"
    timeout 20 "$taillight" load --server "memcached://127.0.0.1:$port" --rate 1k --duration 100ms --quiet --connections 40 \
        --tls-ca "$dir/ca.pem" 2>"$dir/err"
    [ $? -eq 1 ] && grep -qF 'refuses connections: "ERROR Too many open connections"' "$dir/err" || fail "full: $(cat "$dir/err")"
fi

# --- HTTP: each connection serves few requests, and its session is resumed in the next one --------
PATH=$PATH:/usr/sbin
if have nginx; then
    mkdir "$dir/html"
    for key in 0 1 2 3; do head -c 200 /dev/zero | tr '\0' x >"$dir/html/$key"; done
    cat >"$dir/nginx.in" <<'END'
daemon off; pid DIR/nginx.pid; error_log DIR/error.log; worker_processes 1;
events { worker_connections 64; }
http { log_format reused '"$request" $ssl_session_reused'; access_log DIR/access.log reused; keepalive_requests 50; default_type text/plain;
  client_body_temp_path DIR; proxy_temp_path DIR; fastcgi_temp_path DIR; uwsgi_temp_path DIR; scgi_temp_path DIR;
  server { listen 127.0.0.1:PORT ssl; root DIR/html; ssl_protocols TLSvVERSION;
    ssl_certificate DIR/server.pem; ssl_certificate_key DIR/server.key; } }
END
    printf 'protocol: http\nkeys: {count: 4, size: {fixed: 1}}\n' >"$dir/http.yaml"
    # The server's account: each request that it answered, and whether the session was a resumed one (r).
    over_nginx() { # version, options ...
        claim_port
        sed "s|DIR|$dir|g; s|PORT|$port|g; s|VERSION|$1|" "$dir/nginx.in" >"$dir/nginx.conf"
        rm -f "$dir/access.log"
        nginx -p "$dir" -c "$dir/nginx.conf" >"$dir/log" 2>&1 &
        nginx=$!
        servers+=($nginx)
        await ports_listening "$port" || fail 'nginx does not listen'
        timeout 60 "$taillight" load --sleep --server "http://127.0.0.1:$port" --quiet --json --rate 3k --duration 150ms --timeout 20s \
            --connections 4 --depth 1 --workload "$dir/http.yaml" --tls-ca "$dir/ca.pem" "${@:2}" >"$dir/out" 2>"$dir/err"
        case $? in 0 | 4) ;; *) fail "nginx, TLS $*" ;; esac
        grep -q "\"suite\": \"TLSv$1, " "$dir/out" || fail "nginx: not TLS $*"
        [ "$(value answered)" = "$(value scheduled)" ] && grep -q '"errors": {}' "$dir/out" || fail "nginx, TLS $*: not all was answered"
        [ "$(value reconnects)" -ge 4 ] || fail "nginx, TLS $*: connections did not end"
        kill "$nginx" && wait "$nginx" 2>/dev/null # writes its log
        [ "$(grep -vc '"OPTIONS \* ' "$dir/access.log")" -eq "$(value answered)" ] || fail "nginx, TLS $*: its log has other requests"
    }
    for version in 1.3 $(is_long && echo 1.2); do
        over_nginx "$version"
        [ "$(tls resumed)" -eq "$(value reconnects)" ] && grep -q '" r$' "$dir/access.log" || fail "nginx, TLS $version: sessions"
        [ "$(tls handshakes)" -eq 4 ] || fail "nginx, TLS $version: handshakes that were resumed count twice"
        over_nginx "$version" --tls-full-handshakes
        [ "$(tls resumed)" -eq 0 ] && [ "$(tls handshakes)" -eq $(($(value reconnects) + 4)) ] &&
            ! grep -q '" r$' "$dir/access.log" || fail "nginx, TLS $version: sessions are resumed unasked"
    done
fi

# --- servers that are none for TLS ---------------------------------------------------------------
if is_long && have redis-server; then
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" # waits for the end of a line
    TAILLIGHT_PASSWORD=word timeout 20 "$taillight" load --sleep --server "redis://127.0.0.1:$port" --rate 1k --duration 100ms --quiet \
        --tls >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] && grep -q 'does it speak TLS?' "$dir/err" || fail 'a server without TLS'
fi
if have python3; then
    start python3 "$here/servers/tls_server.py" PORT "$dir/other"
    refused 'its certificate is not believed' "redis://127.0.0.1:$port" --tls-ca "$dir/ca.pem"
    refused 'mismatch' "redis://127.0.0.1:$port" --tls-ca "$dir/ca.pem"
    faults='garbage cut'
    is_long && faults="$faults alert closes"
    for fault in $faults; do
        timeout 20 "$taillight" load --sleep --server "redis://127.0.0.1:$((port))" --quiet --json --rate 1k --duration 100ms --reconnect 50ms \
            --timeout 20s --connections 2 --workload "$dir/workload.yaml" --tls-insecure --user $fault >"$dir/out" 2>"$dir/err"
        case $? in 1 | 4) ;; *) fail "$fault: nobody saw it" ;; esac
        [ $(($(value answered) + $(value lost) + $(value unsent) + $(value timed_out))) -eq "$(value scheduled)" ] ||
            fail "$fault: requests are not accounted for"
        [ "$(value answered)" -ge 10 ] || fail "$fault: it came too soon"
    done
    # Whoever shows no certificate may be told so when requests are long under way (RFC 8446, 4.4.2.4).
    if is_long; then
        start python3 "$here/servers/tls_server.py" PORT "$dir/other" late
        timeout 60 "$taillight" load --sleep --server "http://127.0.0.1:$port" --quiet --json --rate 1k --duration 3s \
            --timeout 20s --connections 2 --tls-insecure >"$dir/out" 2>"$dir/err"
        [ $? -eq 1 ] && grep -qF -- 'certificate required (it wants one of its clients: --tls-cert FILE)' "$dir/err" ||
            fail 'a late refusal does not say what helps'
        [ "$(value lost)" -gt 0 ] && [ $(($(value lost) + $(value unsent) + $(value timed_out))) -eq "$(value scheduled)" ] ||
            fail 'a late refusal: requests are not accounted for'
    fi
    # Each connection says that it ends, be it in front of the next one or behind all (RFC 8446, 6.1).
    start python3 "$here/servers/tls_server.py" PORT "$dir/other"
    timeout 20 "$taillight" load --sleep --server "redis://127.0.0.1:$port" --quiet --json --rate 1k --duration 100ms --session 5 \
        --timeout 20s --connections 2 --workload "$dir/workload.yaml" --tls-insecure --user nobody >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail 'connections that end' ;; esac
    ended() { [ "$(grep -cE 'closed|cut off|reset' "$dir/log")" -ge $(($(jq .sessions.opening.count "$dir/out") + 2)) ]; }
    await ended || fail 'connections that end: not all were seen'
    grep -q 'cut off' "$dir/log" && fail 'connections end without a word'
    # Those that only asked what the server speaks may end before they read its tickets.
    [ "$(grep -c reset "$dir/log")" -le 2 ] || fail 'connections end with what they had not read'
fi

[ -z "$missing" ] || { echo "not installed:$missing" && exit 77; }
exit 0
