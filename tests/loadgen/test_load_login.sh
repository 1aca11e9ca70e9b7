#!/usr/bin/env bash
# Logins: at Redis and memcached, right, wrong and missing, again on each reconnect; and servers that
# answer them as no server should. The password is in no file that the load leaves.
# Runs beside others: it asserts counts and words, no times. What takes longer is left to check-long.
set -u
. "$(dirname "$0")/secured_lib.sh" login
load() { # server, options ...: everything is answered, whatever the machine's load makes of the verdict
    timeout 60 "$taillight" load --server "$1" --quiet --json --rate 4k --duration 100ms --timeout 20s --seed 5 \
        --connections 4 --workload "$dir/workload.yaml" "${@:2}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    grep -q '"errors": {}' "$dir/out" || fail "load $*: errors"
}
# As in test_load_tls.sh: a server that has no core for half a second is asked another time.
refused() { # text, server, options ...
    refuses() {
        timeout 20 "$taillight" load --server "$2" --rate 1k --duration 100ms --quiet "${@:3}" >"$dir/out" 2>"$dir/err"
        [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err"
    }
    await refuses "$@" || fail "load ${*:2}: does not say $1"
    ! grep -q sesame "$dir/err" || fail "load ${*:2}: says the password"
}
broken() { # text, server, options ...
    timeout 20 "$taillight" load --server "$2" --rate 1k --duration 100ms --quiet "${@:3}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "load ${*:2}: not failed"
    grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: does not say $1"
}
prepare() { # server, options ...
    timeout 60 "$taillight" load --server "$1" --quiet --prepare --workload "$dir/workload.yaml" "${@:2}" \
        >"$dir/out" 2>"$dir/err" || fail "prepare $*"
    grep -q '^200 keys stored and verified' "$dir/out" || fail "prepare $*"
}
unset TAILLIGHT_PASSWORD
echo 'open sesame' >"$dir/right"
echo 'shut sesame' >"$dir/wrong"
printf 'sesame' >"$dir/word"
printf 'keys: {count: 200}\nmix: {get: 1, set: 1}\n' >"$dir/workload.yaml"

# --- what is wrong before anybody is asked -------------------------------------------------------
refused '--password-file: cannot read' 127.0.0.1:1 --protocol redis --password-file "$dir/none"
refused 'protocol http knows no login' 127.0.0.1:1 --protocol http --user me
refused 'both a user and a password' 127.0.0.1:1 --user me
refused 'over UDP nobody can log in' udp:127.0.0.1:1 --user me --password-file "$dir/word"
refused 'can be read by everyone' redis://me:sesam@127.0.0.1:1
refused '--server says you@' redis://you@127.0.0.1:1 --user me

cat >"$dir/run.yaml" <<END
name: login
hosts: {here: {kind: local}}
servers: {cache: {host: here, kind: redis}}
workload: {protocol: redis}
load: {from: here, rate: 1k, user: me, password_file: $dir/right}
END
timeout 20 "$taillight" run "$dir/run.yaml" --dry-run >"$dir/out" 2>"$dir/err" || fail 'an experiment with a login'
[ "$(grep -c -e "--user me --password-file $dir/right" "$dir/out")" -eq 2 ] || fail 'an experiment logs in to store and to load'
sed -i "s|$dir/right|right|" "$dir/run.yaml"
timeout 20 "$taillight" run "$dir/run.yaml" --dry-run >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'run.yaml:5:.* write the whole path' "$dir/err" || fail 'a path that depends on where one is'

# --- Redis ---------------------------------------------------------------------------------------
if have redis-server; then
    printf 'user me on #%s ~* +@all\nuser open on nopass ~* +get +set\nuser default on >word ~* +@all\n' \
        "$(printf 'open sesame' | sha256sum | cut -d' ' -f1)" >"$dir/acl"
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" --aclfile "$dir/acl"
    ask() { REDISCLI_AUTH=word redis-cli -p "$port" "$@"; }
    calls() {
        ask info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
    }
    at=127.0.0.1:$port
    refused "$at wants a login (\"-NOAUTH" "$at" --protocol redis-resp3
    refused 'refuses the login: "-WRONGPASS' "redis://me@$at" --password-file "$dir/wrong"
    refused 'refuses the login: "WRONGPASS' "redis://me@$at" --password-file "$dir/wrong" --prepare
    refused 'refuses the login: "-ERR DB index is out of range"' "redis://me@$at/77" --password-file "$dir/right"
    prepare "redis-resp3://me@$at/3" --password-file "$dir/right"
    [ "$(ask -n 3 dbsize)" = 200 ] || fail 'the dataset is not in that database'
    for protocol in redis redis-resp3; do
        ask config resetstat >"$dir/log"
        load "$protocol://me@$at/3" --password-file "$dir/right" --samples "$dir/samples" --out "$dir/samples"
        [ "$(value misses)" = 0 ] || fail "$protocol: misses: another database"
        [ $(($(calls get) + $(calls set))) -eq "$(value answered)" ] || fail "$protocol: the server counts other requests"
        [ "$(calls select)" -eq 4 ] || fail "$protocol: not one SELECT a connection"
    done
    TAILLIGHT_PASSWORD=word load "redis://$at" # the user's name is "default"
    # Agents are told on their standard input.
    load "redis://me@$at/3" --password-file "$dir/right" --agent symmetric,name=a --agent symmetric,name=b --samples "$dir/samples"
    [ "$(value misses)" = 0 ] || fail 'agents: not in that database'
    ! grep -rlE 'open sesame|word' "$dir/samples" || fail 'the password is in a file'
    # Connections that are killed log in again, and every request is counted once. On a busy machine
    # the killer may come too late.
    for _ in 1 2 3; do
        timeout 60 "$taillight" load --server "redis://me@$at" --password-file "$dir/right" --quiet --json --rate 2k --sleep \
            --duration 600ms --timeout 20s --connections 4 --workload "$dir/workload.yaml" >"$dir/out" 2>"$dir/err" &
        loading=$!
        all_came() { [ "$(ask client list | grep -c user=me)" -ge 4 ]; }
        await all_came
        ask client kill type normal skipme yes >"$dir/log" 2>&1
        wait $loading
        [ "$(value reconnects)" = 0 ] || break
    done
    [ "$(value reconnects)" -ge 1 ] || fail 'nobody was killed'
    [ $(($(value answered) + $(value lost))) -eq "$(value scheduled)" ] || fail 'reconnects: a request is not accounted for'
    grep -q NOAUTH "$dir/out" && fail 'reconnects: a request went out before its login'
fi

# --- memcached -----------------------------------------------------------------------------------
memcached_as() { # options ...
    local user=()
    [ "$(id -u)" -eq 0 ] && user=(-u root)
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -m 64 "$@"
    at=127.0.0.1:$port
}
if have memcached && memcached -h | grep -q -e --auth-file; then
    printf 'you:other\nme:sesame\n' >"$dir/users"
    memcached_as -Y "$dir/users"
    refused "$at wants a login (\"CLIENT_ERROR unauthenticated" "$at"
    refused 'refuses the login: "CLIENT_ERROR authentication failure"' "memcached://you@$at" --password-file "$dir/word"
    prepare "memcached://me@$at" --password-file "$dir/word"
    is_long && load "memcached-meta://me@$at" --password-file "$dir/word"
    load "memcached://me@$at" --password-file "$dir/word"
    [ "$(value misses)" = 0 ] || fail 'memcached: misses'
    refused 'refuses the login' "memcached://you@$at" --password-file "$dir/word" --prepare
fi
if have memcached && memcached -h | grep -q -e --enable-sasl && have saslpasswd2; then
    printf 'mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: %s\n' "$dir/sasldb" >"$dir/memcached.conf"
    printf 'open sesame' | saslpasswd2 -p -c -f "$dir/sasldb" -u "$(hostname)" me
    SASL_CONF_PATH=$dir memcached_as -S
    refused "$at wants a login (\"Auth failure.\")" "$at" --protocol memcached-binary
    refused 'refuses the login: "Auth failure."' "memcached-binary://me@$at" --password-file "$dir/wrong"
    prepare "memcached-binary://me@$at" --password-file "$dir/right"
    load "memcached-binary://me@$at" --password-file "$dir/right"
    [ "$(value misses)" = 0 ] || fail "SASL: misses"
fi

# --- servers that answer as none should ----------------------------------------------------------
if have python3; then
    start python3 "$here/servers/login_server.py" PORT
    at=127.0.0.1:$port
    broken 'it closed it' "redis://closes@$at"
    broken 'says more than the login asks for' "redis://talks@$at"
    refused 'redis has no such answer to a login: "OK"' "redis://stutters@$at"
    refused 'redis has no such answer to a login' "redis://endless@$at"
    is_long && load "redis://dribbles@$at" --rate 500
    # Its password is changed while connections are open: no request gets lost unseen.
    turned() { # words, server
        timeout 20 "$taillight" load --server "$2" --quiet --json --rate 1k --duration 300ms --reconnect 200ms --timeout 1s \
            --connections 2 --workload "$dir/workload.yaml" --password-file "$dir/word" >"$dir/out" 2>"$dir/err"
        case $? in 1 | 4) ;; *) fail "$2: not seen" ;; esac
        grep -qF -- "$1" "$dir/out" || fail "$2: does not quote $1"
        grep -q '"wrong_value\|client_error"' "$dir/out" && fail "$2: the refusal answered a request"
        [ "$(value answered)" -ge 20 ] || fail "$2: was not let in before"
        [ $(($(value answered) + $(value lost) + $(value unsent) + $(value timed_out))) -eq "$(value scheduled)" ] ||
            fail "$2: requests are not accounted for"
    }
    turned 'WRONGPASS it was changed' "redis://turns@$at"

    start python3 "$here/servers/sasl_server.py" PORT
    at=127.0.0.1:$port
    meets() { # words, user
        refused "$1" "memcached-binary://$2@$at" --password-file "$dir/word"
        turned "$1" "memcached-binary://$2-later@$at"
    }
    for user in garbage request other; do meets 'memcached-binary has no such answer to a login' $user; done
    meets 'a challenge' further
    for user in half headless closes; do
        broken 'it closed it' "memcached-binary://$user@$at" --password-file "$dir/word"
        is_long && turned 'it closed it' "memcached-binary://$user-later@$at"
    done
    broken 'says more than the login asks for' "memcached-binary://twice@$at" --password-file "$dir/word"
fi

[ -z "$missing" ] || { echo "not installed:$missing" && exit 77; }
exit 0
