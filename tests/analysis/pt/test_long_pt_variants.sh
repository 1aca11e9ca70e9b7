#!/usr/bin/env bash
# The same recordings in other clothes: what was a file comes through a pipe, compressed, as a
# directory, on standard input, through a FIFO, with guests' mappings in it, byte-swapped, cut off, or damaged. The figures stay, or it
# is said in words what is wrong.
set -u
data=${TAILLIGHT_DATA:-../shared/data}/pt
program=$BUILD/taillight
failed=0 checked=0
for tool in python3 jq xz; do
    command -v $tool >/dev/null || { echo "$tool is missing"; exit 77; }
done
[ -e "$data/perf-data-hase.tar.xz" ] && [ -e "$data/perf-data-4.14-system.tar.xz" ] ||
    { echo "the captures are not under $data; set TAILLIGHT_DATA to where they are"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/hase" "$work/system"
tar --no-same-owner -xJf "$data/perf-data-hase.tar.xz" -C "$work/hase"
tar --no-same-owner -xJf "$data/perf-data-4.14-system.tar.xz" -C "$work/system"

cat >"$work/dress.py" <<'PYTHON'
import ctypes, os, random, struct, sys
source, out = sys.argv[1:3]
raw = open(source, "rb").read()
size, attr_bytes, attrs_at, attrs_bytes, at, length = struct.unpack_from("<QQQQQQ", raw, 8)
AUXTRACE, COMPRESSED, HEADER_ATTR, MMAP2 = 71, 81, 64, 10

def records():
    here = at
    while here < at + length:
        kind, misc, bytes_ = struct.unpack_from("<IHH", raw, here)
        more = struct.unpack_from("<Q", raw, here + 8)[0] if kind == AUXTRACE else 0
        yield kind, raw[here:here + bytes_ + more]
        here += bytes_ + more

def attributes():
    for entry in range(attrs_at, attrs_at + attrs_bytes, attr_bytes):
        attr = raw[entry:entry + attr_bytes - 16]
        ids_at, ids_bytes = struct.unpack_from("<QQ", raw, entry + attr_bytes - 16)
        yield attr, raw[ids_at:ids_at + ids_bytes]

def in_file(body):  # the same header over other records; the features behind them move
    header, moved = bytearray(raw[:at]), len(body) - length
    struct.pack_into("<Q", header, 48, len(body))
    tail = bytearray(raw[at + length:])
    bits = sum(bin(b).count("1") for b in raw[72:104])
    for i in range(bits):
        where = struct.unpack_from("<Q", tail, i * 16)[0]
        struct.pack_into("<Q", tail, i * 16, where + moved)
    return bytes(header) + body + bytes(tail)

def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
    count = library.ZSTD_compress(room, len(room), data, len(data), 1)
    return room.raw[:count]

def write(name, data):
    path = os.path.join(out, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(data)

everything = list(records())
pipe = b"PERFILE2" + struct.pack("<Q", 16)
for attr, ids in attributes():
    pipe += struct.pack("<IHH", HEADER_ATTR, 0, 8 + len(attr) + len(ids)) + attr + ids
write("pipe", pipe + b"".join(record for _, record in everything))

squeezed, plain = b"", b""
for kind, record in everything + [(0, b"")]:
    if 0 < kind < 64:  # perf compresses what the kernel wrote
        plain += record
    elif plain:
        packed = zstd(plain)
        for i in range(0, len(packed), 60000):
            squeezed += struct.pack("<IHH", COMPRESSED, 0, 8 + len(packed[i:i + 60000])) + packed[i:i + 60000]
        plain = b""
    if kind >= 64:
        squeezed += record
write("compressed", in_file(squeezed))

# perf record --threads: the tool's records in data, the kernel's in data.N.
kernel = [record for kind, record in everything if kind < 64]
write("folder/data", in_file(b"".join(record for kind, record in everything if kind >= 64)))
for i in range(3):
    write(f"folder/data.{i}", b"".join(kernel[i::3]))

guests = b"".join(record if kind != MMAP2 else
                  struct.pack("<IHH", MMAP2, 5, len(record)) + record[8:] + record
                  for kind, record in everything)
write("guests", in_file(guests))

write("swapped", b"2ELIFREP" + raw[8:])
random.seed(4)
for i in range(12):
    write(f"cut/{i}", raw[:random.randrange(1, len(raw))])
    damaged = bytearray(raw)
    for _ in range(random.randrange(1, 40)):
        damaged[random.randrange(len(raw))] = random.randrange(256)
    write(f"damaged/{i}", bytes(damaged))
PYTHON

figures='[.streams[] | [.cpu, .bytes, .packets, .psbs, .instructions, .calls, .switches, .error_count]]'
same() { # NAME VARIANT OPTIONS...: its figures are the $wanted
    local name=$1 variant=$2 ours
    shift 2
    ours=$("$program" analyze --json -q "$variant" "$@" | jq -c "$figures")
    checked=$((checked + 1))
    [ -n "$wanted" ] && [ "$ours" = "$wanted" ] && return
    failed=$((failed + 1))
    echo "$name: $ours instead of $wanted"
}
survives() { # VARIANT OPTIONS...
    timeout 20 "$program" analyze --json -q "$@" >"$work/json" 2>"$work/err"
    local status=$?
    checked=$((checked + 1))
    case $status in
        0) jq -e '.total.bytes >= 0' "$work/json" >/dev/null && return ;;
        2) grep -q "^taillight: $1" "$work/err" && [ "$(wc -l <"$work/err")" -eq 1 ] && return ;;
    esac
    failed=$((failed + 1))
    echo "$1: exit $status: $(head -c 300 "$work/err")"
}

for original in "$work"/hase/*/perf.data.1 "$work"/system/quipper/perf.data.intel_pt-4.14; do
    folder=$(dirname "$original")
    symfs=()
    [ -d "$folder/binaries" ] && symfs=(--symfs "$folder/binaries")
    python3 "$work/dress.py" "$original" "$work/dressed" || exit 1
    wanted=$("$program" analyze --json -q "$original" "${symfs[@]}" | jq -c "$figures")
    for variant in pipe compressed folder guests; do
        same "$(basename "$folder") as $variant" "$work/dressed/$variant" "${symfs[@]}"
    done
    mkfifo "$work/fifo"
    cat "$work/dressed/pipe" >"$work/fifo" &
    same "$(basename "$folder") through a FIFO" "$work/fifo" "${symfs[@]}"
    rm "$work/fifo"
    same "$(basename "$folder") on standard input" - "${symfs[@]}" <"$work/dressed/pipe"
    "$program" analyze -q "$work/dressed/swapped" >/dev/null 2>"$work/err"
    [ $? -eq 2 ] && grep -q 'big-endian' "$work/err" || { echo "byte-swapped: $(cat "$work/err")"; failed=$((failed + 1)); }
    for variant in "$work"/dressed/cut/* "$work"/dressed/damaged/*; do
        survives "$variant" "${symfs[@]}"
    done
    rm -rf "$work/dressed"
done
echo "$checked variants tried, $failed wrong"
[ $failed -eq 0 ]
