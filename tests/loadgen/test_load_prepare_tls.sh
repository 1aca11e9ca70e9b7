#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A dataset is stored over TLS many keys at once, in records that memcached reads to their end; and who gets no answer
# meanwhile is told so.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" prepare-tls
have python3 && have openssl || { echo "not installed:$missing" && exit 77; }
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
    -subj /CN=test -days 2 2>>"$dir/log" || fail 'no certificate'
prepare() { # KEYS VALUE-BYTES [SILENT [LOGIN [OPTION ...]]]
    printf 'keys: {count: %s}\nmix: {get: 1}\nvalues: {size: %s}\n' "$1" "$2" >"$dir/workload.yaml"
    start python3 "$here/records_server.py" PORT "$dir/cert.pem" "$dir/key.pem" "$dir/records" "${@:3:2}"
    timeout 60 "$taillight" load --server "memcached://127.0.0.1:$port" --tls-insecure --workload "$dir/workload.yaml" \
        --prepare "${@:5}" >"$dir/out" 2>"$dir/err"
}
records() { # PATTERN of "RECORDS SETS"
    await grep -qxE "$1" "$dir/records" || fail "not $1 records and sets, but $(cat "$dir/records")"
}
prepare 3000 '{uniform: [1, 300]}' || fail 'many keys'
grep -q '3,000 keys stored and verified' "$dir/out" || fail 'many keys: not stored'
records '[0-9]{1,3} 3000'
# Not those of which one may be longer than what is sent at once.
prepare 30 '{uniform: [1, 30000]}' || fail 'large values'
grep -q '30 keys stored and verified' "$dir/out" || fail 'large values: not stored'
records '[0-9]+ 30'
# Nor is a login in the way, which memcached's own way (-Y) wants of each connection.
TAILLIGHT_PASSWORD=word prepare 3000 '{uniform: [1, 300]}' 0 'someone word' --user someone || fail 'logged in'
grep -q '3,000 keys stored and verified' "$dir/out" || fail 'logged in: not stored'
records '[0-9]{1,3} 3003' # the login is one, on each of three connections
TAILLIGHT_PASSWORD=other prepare 30 '{uniform: [1, 300]}' 0 'someone word' --user someone && fail 'stored without the password'
grep -q 'refuses the login: .*authentication failure' "$dir/err" || fail 'a wrong password is not told'
prepare 300 '{fixed: 10}' 100 && fail 'nothing is answered: stored all the same'
grep -q "cannot store the dataset at 127.0.0.1:$port: it has not answered for 5 s" "$dir/err" || fail 'nothing is answered: not told'
echo 'stored at once over TLS'
