#!/usr/bin/env bash
# Servers of HTTP/2 that misbehave: whatever they do, each request is counted once, those answered
# are those that had a whole reply, and what was wrong is said.
# Time limit: 900 s
set -u
. "$(dirname "$0")/secured_lib.sh" hostile-http2
have jq || { echo 'not installed: jq' && exit 77; }
printf 'protocol: http2\nmix: {post: 1}\nvalues: {size: {fixed: 100}}\n' >"$dir/bodies.yaml"
# HOW, then jq's conditions. $words: options of the load.
words=()
protocol=http2
meets() {
    start python3 "$here/servers/http2_server.py" PORT "$1"
    local begun=$SECONDS
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol $protocol --quiet --json --rate 4k --duration 500ms --depth 16 \
        --timeout 2s --seed 5 --connections 2 --reconnect 5s "${words[@]}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 1 | 4) ;; *) fail "$1" ;; esac
    [ $((SECONDS - begun)) -le 10 ] || fail "$1: $((SECONDS - begun)) s, and it had 2.5" # on a busy machine
    kill "${servers[-1]}" && wait "${servers[-1]}" 2>/dev/null
    unset 'servers[-1]'
    read -r seen answered <"$dir/log"
    for condition in '.scheduled > 1500' '.scheduled == .answered + .lost + .unsent + .timed_out' "${@:2}"; do
        jq -e --argjson seen "$seen" --argjson replies "$answered" "$condition" "$dir/out" >"$dir/said" ||
            fail "$1: not $condition (it saw $seen, and answered $answered)"
    done
}
all='.answered == .scheduled and .answered == $replies and $seen == $replies and .errors == {}'
meets backwards "$all" '.connections_ended == 0'
meets narrow "$all" '.in_flight_max <= 4'
meets reset '.answered == .scheduled' '.answered == $seen' '.errors.server_error == $seen - $replies' \
    '(.reasons | join(" ") | contains("RST_STREAM REFUSED_STREAM"))'
for code in 0:NO_ERROR 8:CANCEL 11:ENHANCE_YOUR_CALM 77:77; do
    meets reset-code-${code%:*} '.answered == .scheduled' '.errors.server_error == $seen - $replies' \
        "(.reasons | join(\" \") | contains(\"\\\"RST_STREAM ${code#*:}\\\"\"))"
done
# What is allowed changes all the time.
for how in one-stream small-window small-table small-frames; do meets $how "$all"; done
meets no-stream '.answered == $seen' '.unsent == .scheduled - $seen and .unsent > 0' \
    '(.reasons | join(" ") | contains("2 of 2 connections the server allowed no further stream"))'
# Frames that may not be, or not so: this side says it, not the server.
for how in wrong-ping wrong-settings wrong-reset wrong-window wrong-goaway huge-frame window-0 stream-window-0 push headers-of-0 \
    settings-of-1 lone-continuation cut-headers large-window; do
    meets $how '.answered <= $replies' '.lost_by.malformed == .lost' '.lost > 0' '.connections_ended > 5' \
        '(.reasons | join(" ") | test("does not allow \\((FRAME_SIZE_ERROR|PROTOCOL_ERROR|nghttp2: .* error)\\)"))'
done
meets goaway-in-body '.answered == $replies and .timed_out == 2 and .unsent > 1000' \
    '(.reasons | join(" ") | contains("2 of 2 connections the server had said that it closes, and left a reply unfinished"))'
meets malformed '.answered == $replies' '.lost_by.malformed == $seen - $replies' '.connections_ended == 0'
# A server that closes while requests are there resets, and takes away replies that were not read yet.
meets closes '.answered <= $replies' '.lost >= $seen - $replies' '.lost == (.lost_by.closed // 0) + (.lost_by.reset // 0)' \
    '.connections_ended > 5'
meets garbage '.answered == $replies' '.lost_by.malformed >= .connections_ended' '.connections_ended > 5'
meets unasked '.answered == $replies' '.lost_by.malformed >= .connections_ended' '.connections_ended > 5'
# Of a connection's last five it says nothing until the fifth, which may never come.
meets goaway '.answered + .timed_out == .scheduled' '.timed_out <= 8' '.answered == $replies' '.repeated >= 3 * .connections_ended - 6' '.errors | del(.timed_out) == {}' \
    '.connections_ended > 5'
meets angry '.answered == $replies' '(.reasons | join(" ") | contains("GOAWAY ENHANCE_YOUR_CALM"))' '.lost + .repeated > 0'
# Floods in front of each reply; headers and settings without an end break the connection.
meets early "$all"
meets goaways '.answered == .scheduled' '.answered == $replies' '.errors == {}'
for how in settings pings endless; do
    meets $how '.lost_by.malformed > 0' '.connections_ended > 5' '.answered <= $replies'
done
for how in headers continuations early settings acks pings pongs windows data priorities unknown resets goaways body; do
    meets endless-$how '.lost_by.malformed > 0' '.answered == (.errors.server_error // 0)'
done
meets resets '.answered == .scheduled' '.errors.server_error == $seen and $replies == 0'
meets half '.answered == 0 and .timed_out == $seen'
meets size '.answered == 0' '.lost_by.malformed == $seen' '.connections_ended == 0'
for how in twice more; do
    meets $how '.answered == .scheduled' '.errors.unexpected == $replies' '(.errors | length) == 1'
done
meets reset-behind "$all"
# Nothing may be said, ever; or more than there can be; or bodies may not, and have their replies or have none.
meets streamless '.unsent == .scheduled' '$seen == 0'
meets windows '.lost_by.malformed > 0' '.connections_ended > 5' '.answered <= $replies'
words=(--workload "$dir/bodies.yaml")
meets windowless '.answered == 0 and .unsent + .timed_out == .scheduled' '$seen > 0' \
    '(.reasons | join(" ") | contains("2 of 2 connections the server\u0027s HTTP/2 window had no room"))'
meets unread '.answered <= $replies'
words=()
# All replies are read that came before the end; requests that met it are lost.
meets fin '.answered == $replies' '.lost + .answered == .scheduled' '.connections_ended > 5'

# gRPC: the same, and what only it has.
protocol=grpc
for how in call call-bytewise call-and-reset; do meets $how "$all"; done
meets call-reset '.answered == .scheduled' '.errors.server_error == $seen' '(.reasons | join(" ") | contains("RST_STREAM INTERNAL"))'
meets call-refused '.answered == .scheduled' '.errors.server_error == $seen' '(.reasons | join(" ") | contains("grpc-status 8: no room: 100%"))'
meets call-unknown '.answered == .scheduled' '.errors.server_error == $seen' '(.reasons | join(" ") | contains("grpc-status 77"))'
none() { # HOW, words
    meets "$1" '.answered == 0' '.lost_by.malformed == $seen' '.connections_ended == 0' "(.reasons | join(\" \") | contains(\"$2\"))"
}
for how in compressed flagged; do none call-$how 'a compressed message, and none was asked for'; done
none call-two '2 messages, and a unary call has one'
for how in short long; do none call-$how 'a message of another length than it says'; done
for how in garbled beyond untold; do none call-$how 'a grpc-status that is no number'; done
none call-empty 'no message'
none call-untrailed 'no grpc-status'
for how in html html-trailed; do none call-$how "a content-type that is not gRPC's"; done
meets goaway '.repeated >= 3 * .connections_ended - 6' '.connections_ended > 5'
exit 0
