# SPDX-License-Identifier: MIT
#
# A Redis Cluster made of processes. Sourced behind secured_lib.sh, whose servers end with the script.
#
# start_node: a node of none yet; its port, its bus' and its process are added to these.
nodes=()
buses=()
pids=()
start_node() {
    claim_port
    local bus=$port
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" --cluster-enabled yes --cluster-port "$bus" \
        --cluster-node-timeout 2000 --cluster-config-file "nodes-$bus.conf" --cluster-require-full-coverage no
    nodes+=("$port")
    pids+=("${servers[-1]}")
    buses+=("$bus")
}
# Says what redis-cli would, which hundreds of times takes longer to start than the test its time.
at_node() { # number, command ...
    local LC_ALL=C link word request="*$(($# - 1))"$'\r\n'
    for word in "${@:2}"; do request+='$'${#word}$'\r\n'$word$'\r\n'; done
    exec {link}<>"/dev/tcp/127.0.0.1/${nodes[$1]}" || return 1
    printf '%s' "$request" >&"$link"
    node_reply "$link"
    exec {link}>&-
}
node_reply() { # descriptor
    local line text
    IFS= read -r line <&"$1"
    line=${line%$'\r'}
    case $line in
        '$'[0-9]*) IFS= read -r -N $((${line:1} + 2)) text <&"$1" && printf '%s\n' "${text%$'\r\n'}" ;;
        '*'*) for ((text = ${line:1}; text > 0; text--)); do node_reply "$1"; done ;;
        '$-1') echo ;;
        [+:]*) echo "${line:1}" ;;
        *) echo "${line#-}" ;;
    esac
}
join_node() { # number: becomes one of the first one's cluster
    at_node 0 cluster meet 127.0.0.1 "${nodes[$1]}" "${buses[$1]}" >"$dir/said"
}
# start_cluster N: N masters, each with its part of the slots; all of them know it.
start_cluster() {
    local i
    for i in $(seq 0 $(($1 - 1))); do
        start_node
        at_node "$i" cluster set-config-epoch $((i + 1)) >"$dir/said"
        at_node "$i" cluster addslotsrange $((i * 16384 / $1)) $(((i + 1) * 16384 / $1 - 1)) >"$dir/said"
        [ "$i" -eq 0 ] || join_node "$i"
    done
    await all_know "$1" || fail 'the cluster does not come together'
}
all_know() { # masters: every node knows so many, and all slots
    local i
    for i in $(seq 0 $(($1 - 1))); do
        at_node "$i" cluster info | tr -d '\r' | grep -qx cluster_slots_assigned:16384 || return 1
        [ "$(at_node "$i" cluster nodes | grep -c -v -e fail -e handshake -e noaddr)" -ge "$1" ] || return 1
        at_node "$i" cluster info | grep -q cluster_state:ok || return 1
    done
}
id_of() { at_node "$1" cluster myid | tr -d '\r'; }
# begin_move SLOT FROM TO: its keys are with the new owner, and who asks the old one is sent on behind ASKING;
# end_move: the slot is the new owner's, and who asks the old one is told so. As redis-cli --cluster reshard does it.
begin_move() {
    local keys
    at_node "$3" cluster setslot "$1" importing "$(id_of "$2")"
    at_node "$2" cluster setslot "$1" migrating "$(id_of "$3")"
    mapfile -t keys < <(at_node "$2" cluster getkeysinslot "$1" 1000 | grep .)
    [ ${#keys[@]} -eq 0 ] || at_node "$2" migrate 127.0.0.1 "${nodes[$3]}" '' 0 5000 replace keys "${keys[@]}"
} >>"$dir/said"
end_move() {
    at_node "$3" cluster setslot "$1" node "$(id_of "$3")"
    at_node "$2" cluster setslot "$1" node "$(id_of "$3")"
} >>"$dir/said"
