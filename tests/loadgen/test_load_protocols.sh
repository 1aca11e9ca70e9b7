#!/usr/bin/env bash
# Every protocol against a real server, which is then asked how many requests it has seen.
# Runs beside others: it asserts counts, no times.
set -u
taillight=${BUILD:-build}/taillight
dir=$(mktemp -d /tmp/test-load-protocols-XXXXXX)
server=0
missing=
cleanup() {
    [ "$server" -ne 0 ] && kill -9 "$server" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    cat "$dir"/out "$dir"/err "$dir"/log 2>/dev/null
    exit 1
}
. "$(dirname "$0")/../ports.sh"
claim_port
start() { # command ...; with PORT in its words
    "${@//PORT/$port}" >"$dir/log" 2>&1 &
    server=$!
    await ports_listening $port || fail "$1 does not listen"
}
stop() {
    kill "$server"
    wait "$server" 2>/dev/null
    server=0
    claim_port
}
have() {
    command -v "$1" >/dev/null || { missing="$missing $1" && return 1; }
}
# The load's own exit code may be 4: the machine may be busy. What it counts must add up all the same.
load() {
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --sleep --quiet --json --rate 4k --duration 500ms \
        --timeout 20s --seed 5 --connections 4 "$@" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    [ "$(value scheduled)" -gt 1500 ] || fail "load $*: only $(value scheduled) requests"
    grep -q '"errors": {}' "$dir/out" || fail "load $*: errors"
}
refused() { # text, options ...
    timeout 10 "$taillight" load --server "127.0.0.1:$port" --rate 1k --duration 100ms "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] || fail "load ${*:2}: not refused"
    grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: does not say $1"
}
prepare() {
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --quiet --json --prepare "$@" >"$dir/out" 2>"$dir/err" ||
        fail "prepare $*"
}

# Asked by that protocol the server is recognized by its answer, for which it has half a second.
mistaken() { # asked by, is
    recognized() {
        timeout 10 "$taillight" load --server "127.0.0.1:$port" --rate 1k --duration 100ms --protocol "$1" \
            >"$dir/out" 2>"$dir/err"
        [ $? -eq 2 ] && grep -q -- "try --protocol $2" "$dir/err"
    }
    await recognized "$1" "$2" || fail "$2 asked by $1: not recognized"
}

# Requests and replies with values of 9 MiB, to a server that takes them.
larger() { # PROTOCOL
    printf 'mix: {set: 1, get: 1}\nvalues: {size: {bimodal: [200, 9MiB, 0.5]}}\nkeys: {count: 10}\n' >"$dir/larger.yaml"
    prepare --protocol "$1" --workload "$dir/larger.yaml"
    timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --rate 20 --duration 1s --connections 4 \
        --protocol "$1" --workload "$dir/larger.yaml" --timeout 20s >"$dir/out" 2>"$dir/err"
    [ "$(value answered)" = "$(value scheduled)" ] && [ "$(value misses)" = 0 ] && grep -q '"errors": {}' "$dir/out" ||
        fail "$1: values of 9 MiB"
}

# --- bad input, before anything is connected -----------------------------------------------------
refused 'is not one of: memcached, memcached-binary' --protocol gopher
refused '--protocol: protocol http has no set' --workload var --protocol http
printf 'values: {size: {fixed: 64MiB}}\n' >"$dir/huge.yaml"
refused '50,000 connections that send values of up to 64 MiB need 3200000 MiB' --workload "$dir/huge.yaml" --connections 50000
printf 'protocol: lab\nvalues: {size: {fixed: 2MiB}}\n' >"$dir/lab.yaml"
refused 'protocol lab has values of at most 1048576 bytes' --workload "$dir/lab.yaml"
refused 'write lognormal:MEDIAN,SIGMA' --arrivals lognormal:1
refused 'cannot be scaled to a rate' --arrivals pareto:1,1
printf 'protocol: redis\nmix: {get: 1, call: 2}\n' >"$dir/bad.yaml"
printf 'mix: {multiget: 1}\nkeys: {count: 5}\n' >"$dir/few.yaml"
refused 'a multiget of 10 keys, and the workload has only 5' --workload "$dir/few.yaml"
printf 'mix: {multiget: 1}\n' >"$dir/many.yaml"
refused 'take TCP' --workload "$dir/many.yaml" --server "udp:127.0.0.1:$port"
refused 'refuses a multiget of keys in several slots' --workload "$dir/many.yaml" --protocol redis --cluster
refused "$dir/bad.yaml:2:15: mix: protocol redis has no call" --workload "$dir/bad.yaml"

# --- memcached, three ways; all that each is asked in check-long ----------------------------------
ways='memcached memcached-meta' one=memcached
is_long && ways='memcached memcached-binary memcached-meta' one=$ways
if have memcached; then
    user=()
    [ "$(id -u)" -eq 0 ] && user=(-u root)
    printf 'mix: {get: 1, set: 1}\nkeys: {count: 2k, popularity: {zipf: 0.99}}\n' >"$dir/memcached.yaml"
    printf 'values: {size: {gpd: [0, 214.476, 0.348238]}}\n' >>"$dir/memcached.yaml"
    values='values: {size: {uniform: [0, 400]}}'
    printf 'keys: {count: 50}\n%s\n' "$values" >"$dir/half.yaml"
    printf 'mix: {multiget: 1}\nkeys: {count: 100, multiget: 20}\n%s\n' "$values" >"$dir/multiget.yaml"
    of_multigets() { sed -n "/\"multigets\"/,/}/s/.*\"$1\": \([0-9]*\).*/\1/p" "$dir/out"; }
    counts() { # of gets and sets the server has seen, or of others
        exec 3<>"/dev/tcp/127.0.0.1/$port"
        printf 'stats\r\nquit\r\n' >&3
        tr -d '\r' <&3 | sed -n "s/^STAT \(${1:-cmd_[gs]et}\) /\1 /p" | sort | sed 's/.* //' | tr '\n' ' '
        exec 3>&-
    }
    for protocol in $ways; do
        start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 64
        prepare --protocol $protocol --workload "$dir/memcached.yaml"
        grep -q '"verified": 2000' "$dir/out" || fail "$protocol: the dataset"
        read -r gets sets <<<"$(counts)"
        load --protocol $protocol --workload "$dir/memcached.yaml" --arrivals uniform --depth 64
        [ "$(value misses)" = 0 ] || fail "$protocol: misses"
        [ "$(value protocol)" = $protocol ] || fail "$protocol: not in the summary"
        [ "$(value arrivals)" = uniform ] || fail "$protocol: arrivals not in the summary"
        read -r gets_after sets_after <<<"$(counts)"
        [ $((gets_after - gets + sets_after - sets)) -eq "$(value answered)" ] ||
            fail "$protocol: the server counts $gets_after - $gets gets, $sets_after - $sets sets"
        [ $((sets_after - sets)) -gt 500 ] || fail "$protocol: few sets"
        stop
        # Nothing was stored: gets are misses, which are answers.
        start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 64
        printf 'mix: {get: 1}\n' >"$dir/gets.yaml"
        load --protocol $protocol --workload "$dir/gets.yaml"
        [ "$(value misses)" = "$(value answered)" ] || fail "$protocol: misses are not counted"
        mistaken redis memcached
        # Many keys at once: a request is one, and the server counts the keys, of which half are there.
        prepare --protocol $protocol --workload "$dir/half.yaml"
        read -r gets missed <<<"$(counts 'cmd_get\|get_misses')"
        load --protocol $protocol --workload "$dir/multiget.yaml"
        read -r gets_after missed_after <<<"$(counts 'cmd_get\|get_misses')"
        keys=$(of_multigets keys)
        [ "$keys" = $((20 * $(value answered))) ] && [ $((gets_after - gets)) = "$keys" ] && [ "$(of_multigets missing)" -gt 0 ] &&
            [ $((missed_after - missed)) = "$(of_multigets missing)" ] || fail "$protocol: multigets of $keys keys"
        stop
    done
    # Too large for the server: an error reply of its own kind, and the run goes on.
    printf 'mix: {set: 1}\nvalues: {size: {fixed: 1MiB}}\nkeys: {count: 10}\n' >"$dir/large.yaml"
    for protocol in $one; do
        start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 64
        timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --rate 50 --duration 500ms \
            --protocol $protocol --workload "$dir/large.yaml" --timeout 20s >"$dir/out" 2>"$dir/err"
        grep -qE '"(server|client)_error": [0-9]' "$dir/out" || fail "$protocol: too large a value"
        [ "$(value answered)" = "$(value scheduled)" ] || fail "$protocol: an error reply ended the run"
        stop
    done
    # Not too large for one that was told.
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 512 -I 16m
    for protocol in $one; do larger $protocol; done
    stop
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 512
    "$taillight" load --server "127.0.0.1:$port" --quiet --prepare --workload "$dir/larger.yaml" >"$dir/out" 2>"$dir/err"
    [ $? = 1 ] && grep -q 'allow it items of 10 MiB (memcached -I 10m)' "$dir/err" || fail "a dataset that is too large for it"
    stop
    # The presets.
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 256
    for preset in etc usr var; do
        load --workload $preset
        [ "$(value arrivals)" = 'gpd:0' ] || fail "$preset: its arrivals are not kept" # cut at the comma
    done
    stop
fi

# --- Redis ---------------------------------------------------------------------------------------
if have redis-server; then
    printf 'protocol: redis\nkeys: {count: 200}\nvalues: {size: {uniform: [0, 300]}}\nmix: {get: 3, set: 1, incr: 1, ' >"$dir/redis.yaml"
    printf 'lpush: 1, lpop: 1, lrange: 1, hset: 1, hget: 1, zadd: 1, zrange: 1, xadd: 1, xrange: 1, script: 1, transaction: 1, multiget: 1}\n' >>"$dir/redis.yaml"
    count() { counted=$(redis-cli -p "$port" info commandstats); }
    calls() { [[ $counted =~ cmdstat_$1:calls=([0-9]*), ]] && echo "${BASH_REMATCH[1]}"; } # by the server's own count
    for protocol in redis-resp3 $(is_long && echo redis); do
        start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir"
        mistaken memcached-binary redis
        prepare --workload "$dir/redis.yaml" --protocol $protocol
        grep -q '"verified": 1000' "$dir/out" || fail "$protocol: the dataset"
        redis-cli -p "$port" config resetstat >"$dir/log"
        load --workload "$dir/redis.yaml" --protocol $protocol --arrivals lognormal:1,0.5
        [ "$(value misses)" = 0 ] || fail "$protocol: misses"
        sum=0
        count
        for command in get set incr lpush lpop lrange hset hget zadd zrange xadd xrange evalsha exec mget; do
            [ "$(calls $command)" -gt 50 ] || fail "$protocol: $command was hardly called"
            sum=$((sum + $(calls $command)))
        done
        sum=$((sum - 2 * $(calls evalsha) - 2 * $(calls exec))) # the script gets and sets, and so do transactions
        [ $sum -eq "$(value answered)" ] || fail "$protocol: the server counts $sum requests"
        [ "$(calls multi)" = "$(calls exec)" ] || fail "$protocol: transactions are not whole"
        [ "$protocol" = redis ] || [ "$(calls hello)" = 4 ] || fail 'RESP3 was not asked for once a connection'
        printf 'protocol: redis\nkeys: {count: 200}\nmix: {delete: 1, set: 1}\n' >"$dir/removing.yaml"
        load --workload "$dir/removing.yaml" --protocol $protocol
        count
        [ $(($(calls del) + $(calls set))) -ge "$(value answered)" ] && [ "$(calls del)" -gt 50 ] || fail "$protocol: DEL"
        grep -q '"errors": {}' "$dir/out" || fail "$protocol: DEL has errors"
        larger $protocol
        # A key of another type: error replies, counted, and the run goes on.
        redis-cli -p "$port" del "$(printf '%031d' 0)" >"$dir/log"
        redis-cli -p "$port" lpush "$(printf '%031d' 0)" x >"$dir/log"
        printf 'protocol: redis\nkeys: {count: 1}\nmix: {get: 1}\n' >"$dir/wrong.yaml"
        timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --rate 500 --duration 500ms \
            --protocol $protocol --workload "$dir/wrong.yaml" --timeout 20s >"$dir/out" 2>"$dir/err"
        [ $? -eq 4 ] || fail "$protocol: errors do not show in the verdict"
        grep -q "\"client_error\": $(value answered)" "$dir/out" || fail "$protocol: WRONGTYPE is not counted"
        stop
    done
    replays() {
        # What its MONITOR prints of a load is a load itself: the same requests, to keys and of values as long.
        start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir"
        before='' after=''
        captured=''
        if [ "$(id -u)" = 0 ]; then
            python3 "$(dirname "$0")/capture_packets.py" "$port" "$dir/packets" 2>"$dir/log" &
            captured=$!
            capturing() { [ -s "$dir/packets" ]; }
            await capturing || fail 'no capture of packets'
        fi
        redis-cli -p "$port" monitor >"$dir/monitor" 2>&1 &
        monitor=$!
        listening() { grep -q '^OK' "$dir/monitor"; }
        await listening || fail 'MONITOR: it does not answer'
        sed 's/, script: 1, transaction: 1/, transaction: 1/' "$dir/redis.yaml" >"$dir/monitored.yaml"
        load --workload "$dir/monitored.yaml" --protocol redis
        count
        for command in get set incr lpush lpop lrange hset hget zadd zrange xadd xrange mget multi exec; do
            before="$before $(calls $command)"
        done
        scheduled=$(value scheduled)
        # A transaction is one request, of which a GET, a SET and their EXEC are printed.
        printed() {
            commands=$(grep -cE '"(GET|SET|INCR|LPUSH|LPOP|LRANGE|HSET|HGET|ZADD|ZRANGE|XADD|XRANGE|MGET)"' "$dir/monitor")
            transactions=$(grep -c '"EXEC"' "$dir/monitor")
            [ $((commands - transactions)) = "$scheduled" ]
        }
        await printed || fail 'MONITOR: not every request was printed'
        [ "$transactions" -gt 0 ] || fail 'MONITOR: there was no transaction'
        kill "$monitor" $captured
        wait "$monitor" $captured 2>/dev/null
        redis-cli -p "$port" config resetstat >"$dir/log"
        timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --protocol redis --duration 20s --timeout 20s \
            --connections 4 --arrivals "replay:$dir/monitor" >"$dir/out" 2>"$dir/err"
        case $? in 0 | 4) ;; *) fail 'MONITOR: it is not sent again' ;; esac
        [ "$(value scheduled)" = "$scheduled" ] && [ "$(value answered)" = "$scheduled" ] || fail 'MONITOR: not all is sent again'
        grep -q 'left out: protocol redis has no PING' "$dir/out" || fail 'MONITOR: what is left out is not said'
        count
        for command in get set incr lpush lpop lrange hset hget zadd zrange xadd xrange mget multi exec; do
            after="$after $(calls $command)"
        done
        [ "$before" = "$after" ] || fail "MONITOR:$after calls instead of$before"
        # So are its packets.
        if [ "$captured" ]; then
            redis-cli -p "$port" config resetstat >"$dir/log"
            timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --protocol redis --duration 20s --timeout 20s \
                --connections 4 --arrivals "replay:$dir/packets" >"$dir/out" 2>"$dir/err"
            case $? in 0 | 4) ;; *) fail 'packets: they are not sent again' ;; esac
            [ "$(value scheduled)" = "$scheduled" ] && [ "$(value answered)" = "$scheduled" ] || fail 'packets: not all is sent again'
            grep -q 'are missing' "$dir/out" && fail 'packets: some are missing'
            after=''
            count
            for command in get set incr lpush lpop lrange hset hget zadd zrange xadd xrange mget multi exec; do
                after="$after $(calls $command)"
            done
            [ "$before" = "$after" ] || fail "packets:$after calls instead of$before"
        fi
        stop
    }
    is_long && replays
    # A server without room refuses the dataset in words.
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" --maxmemory 1mb
    timeout 30 "$taillight" load --server "127.0.0.1:$port" --quiet --prepare --workload etc --protocol redis \
        >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] && grep -q 'OOM' "$dir/err" || fail 'a full Redis: no clear error'
    # Nor does it take what a transaction would set, and aborts each of them.
    printf 'protocol: redis\nmix: {transaction: 1}\n' >"$dir/aborted.yaml"
    timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --rate 500 --duration 200ms --depth 8 --connections 2 \
        --workload "$dir/aborted.yaml" --timeout 20s >"$dir/out" 2>"$dir/err"
    [ $? -eq 4 ] && [ "$(value answered)" = "$(value scheduled)" ] && grep -q "\"server_error\": $(value answered)" "$dir/out" &&
        grep -q -e '-OOM' "$dir/out" || fail 'aborted transactions are not errors, or not quoted'
    [ "$(redis-cli -p "$port" info errorstats | sed -n 's/^errorstat_EXECABORT:count=\([0-9]*\).*/\1/p')" = "$(value answered)" ] ||
        fail 'the server aborted others'
    stop
fi

# --- HTTP ----------------------------------------------------------------------------------------
PATH=$PATH:/usr/sbin
if have nginx; then
    mkdir "$dir/html"
    for key in 0 1 2 3; do printf 'page %s\n' $key >"$dir/html/$key"; done
    cat >"$dir/nginx.in" <<'END'
daemon off; pid DIR/nginx.pid; error_log DIR/error.log; worker_processes 1;
events { worker_connections 64; }
http { log_format words '$request_method $request_uri $host $http_x_who $content_length';
  access_log DIR/access.log; access_log DIR/words.log words; keepalive_requests 1000000; default_type text/plain; SSI
  client_body_temp_path DIR; proxy_temp_path DIR; fastcgi_temp_path DIR; uwsgi_temp_path DIR; scgi_temp_path DIR;
  server { listen 127.0.0.1:PORT; root DIR/html; location /take/ { return 204; } } }
END
    printf 'protocol: http\nkeys: {count: 4, size: {fixed: 1}}\n' >"$dir/http.yaml"
    cat >"$dir/words.yaml" <<'END'
protocol: http
keys: {count: 4, size: {fixed: 1}}
values: {size: {fixed: 300}}
mix: {put: 1, post: 1, delete: 1}
http: {path: "/take/{key}?full", host: shop.example, headers: ["X-Who: me"]}
END
    printf 'protocol: http\nmix: {get: 1, head: 1}\nkeys: {count: 4, size: {fixed: 1}}\n' >"$dir/heads.yaml"
    # SSI makes nginx forget the length: the replies come in chunks.
    lengths=('ssi on; ssi_types *;')
    is_long && lengths+=('ssi off;')
    for ssi in "${lengths[@]}"; do
        claim_port
        sed "s|DIR|$dir|g; s|PORT|$port|g; s|SSI|$ssi|" "$dir/nginx.in" >"$dir/nginx.conf"
        rm -f "$dir/access.log" "$dir/words.log"
        start nginx -p "$dir" -c "$dir/nginx.conf"
        prepare --workload "$dir/http.yaml"
        load --workload "$dir/http.yaml" --depth 8
        [ "$(value misses)" = 0 ] || fail 'http: misses'
        answered=$(value answered)
        # Half of these are not there.
        printf 'protocol: http\nkeys: {count: 8, size: {fixed: 1}}\n' >"$dir/half.yaml"
        load --workload "$dir/half.yaml"
        [ "$(value misses)" -gt 500 ] && [ "$(value misses)" -lt "$(value answered)" ] || fail 'http: 404 is no miss'
        misses=$(value misses)
        answered=$((answered + $(value answered)))
        # A path, a host, headers and bodies of one's own; then what a URL asks for.
        load --workload "$dir/words.yaml"
        answered=$((answered + $(value answered)))
        words=$(value answered)
        # Replies without the body that they speak of.
        load --workload "$dir/heads.yaml" --depth 8
        answered=$((answered + $(value answered)))
        [ "$(value misses)" = 0 ] && [ "$(value connections_ended)" = 0 ] || fail 'http: HEAD'
        load --server "http://127.0.0.1:$port/2?a=b"
        [ "$(value misses)" = 0 ] || fail 'http: the path of a URL'
        answered=$((answered + $(value answered)))
        by_url=$(value answered)
        kill "$server" && wait "$server" 2>/dev/null # writes its log
        server=0
        logged=$(grep -vc '"OPTIONS [*/] ' "$dir/access.log") # which ask what it speaks
        [ "$logged" -eq "$answered" ] || fail "http: the server's log has $logged of $answered"
        [ "$(grep -c '" 404 ' "$dir/access.log")" -eq "$misses" ] || fail 'http: 404s in the log'
        [ "$(grep -cxE '(PUT|POST|DELETE) /take/[0-9]\?full shop\.example me (300|-)' "$dir/words.log")" -eq "$words" ] ||
            fail "http: not $words with words of their own: $(grep take "$dir/words.log" | head -n 3)"
        [ "$(grep -cF 'GET /2?a=b 127.0.0.1 - -' "$dir/words.log")" -eq "$by_url" ] ||
            fail "http: not $by_url by URL: $(grep 'a=b' "$dir/words.log" | head -n 3)"
    done
fi

# --- the laboratory ------------------------------------------------------------------------------
start "${BUILD:-build}/labserver" --port PORT --protocol lab --service fixed:20us
printf 'protocol: lab\nvalues: {size: {uniform: [0, 20000]}}\n' >"$dir/lab.yaml"
prepare --workload "$dir/lab.yaml"
grep -q '"stored": 0' "$dir/out" || fail 'lab: a dataset'
printf 'pattern: ramp:0.5,1.5\n' >>"$dir/lab.yaml"
load --workload "$dir/lab.yaml" --depth 16
[ "$(value pattern)" = 'ramp:0.5' ] || fail 'lab: the pattern is not kept' # cut at the comma
# The request states its own service time: no reply can be quicker.
printf 'protocol: lab\nservice: fixed:10ms\n' >"$dir/slow.yaml"
timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --rate 40 --duration 500ms \
    --workload "$dir/slow.yaml" --timeout 20s >"$dir/out" 2>"$dir/err"
p50=$(sed -n '/"uncorrected_latency_us"/,/}/s/.*"p50": \([0-9]*\).*/\1/p' "$dir/out")
[ "${p50:-0}" -ge 10000 ] || fail "lab: p50 is ${p50:-none} us with a service time of 10000 us"
# Another protocol: malformed, and the end of the connection; the run ends by itself.
timeout 60 "$taillight" load --sleep --server "127.0.0.1:$port" --quiet --json --rate 500 --duration 500ms \
    --protocol redis --reconnect 200ms >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || fail 'lab: another protocol'
grep -q '"connections_broken"' "$dir/out" || fail 'lab: another protocol breaks no connection'
stop

[ -z "$missing" ] || { echo "not installed:$missing" && exit 77; }
exit 0
