#!/usr/bin/env bash
# Wrong byte counts in what the shim recorded of real servers: calls that were missed, cut or taken
# from something else, injected one at a time, are found by the kernel's events beside them.
# What is injected is drawn from SEED.
. tests/experiments/run_lib.sh
need_capture
need_program redis-server redis-server
count=${MISMATCHES:-300} seed=${SEED:-1}

# record NAME SERVER WORKLOAD...: a run of a server with shim and events
record() {
    experiment "$work/$1.yaml" netns 4k 4s <<EOF
servers: {store: {host: server, kind: $1, memory: 64MiB, shim: true}}
capture: {backend: events}
EOF
    [ "$1" != redis ] || sed -i 's/^workload:/&\n  protocol: redis/' "$work/$1.yaml"
    "$taillight" run "$work/$1.yaml" --out "$work/$1" >"$work/out" 2>"$work/run.err"
    [ $? -le 4 ] || fail "no run of $1: $(cat "$work/out")"
}

for server in memcached redis; do
    record $server
    "$BUILD/tests/analysis/inject_mismatches" "$work/$server" "$count" "$seed" >"$work/found" 2>"$work/look.err" ||
        fail "$server: cannot be looked at"
    echo "$server: $(cat "$work/found")"
    # Bytes too many among those sent take some calls to be noticed, which at the recording's end do
    # not come any more: the busier the machine, the more of a short recording is its end.
    for kind in missed:95:95 short:95:95 strange:75:85; do
        IFS=: read -r kind least_found least_out <<<"$kind"
        read -r found of out wrong < <(sed "s/.*$kind: \([0-9]*\) of \([0-9]*\) found, \([0-9]*\) of \([0-9]*\).*/\1 \2 \3 \4/" "$work/found")
        [ "$of" -gt 0 ] && [ $((found * 100)) -ge $((of * least_found)) ] && [ $((out * 100)) -ge $((wrong * least_out)) ] ||
            fail "$server: of calls that were $kind only $found of $of are found, and $out of $wrong taken out"
    done
    # Of what nobody touched next to nothing is doubted.
    doubted=$(grep -o '[0-9]* are doubted' "$work/found" | cut -d' ' -f1)
    [ "$doubted" -le 50 ] || fail "$server: $doubted calls are doubted that are right"
done
