# shellcheck shell=bash disable=SC2154
# Pools on memory of some kind. Sourced after cases.sh by payloads.

graph=$scratch/graph
segment_pages=8192

# start_pool TRANSPORT OPTION...: one memory node with a segment of 32 MiB, or --memory; $node is its process
start_pool() {
    local transport=$1
    shift
    local size=(--memory 32M)
    [ "${1:-}" != --memory ] || size=()
    bounded 60 "$dmgraph" pool start --name guest --transport "$transport" --peer-timeout "$(patience 30)s" "${size[@]}" "$@" >"$scratch/pool" 2>&1
    local status=$?
    node=$(sed -n 's/.*pid \([0-9]*\),.*/\1/p' "$scratch/pool")
    cat "$scratch/pool"
    return "$status"
}
# refuses_pool TEXT TRANSPORT OPTION...: a pool does not start, and what it says has the text
refuses_pool() {
    local text=$1
    shift
    if start_pool "$@"; then
        stop_pool
        return 1
    fi
    grep -q "$text" "$scratch/pool"
}
stop_pool() {
    bounded 60 "$dmgraph" pool stop guest >/dev/null 2>&1
}
# lies_on NODE MAPPING: all of the segment's pages, and no other node's
lies_on() {
    bounded 30 "$BUILD/tests/guest-segment-nodes" "$node" "$2" >"$scratch/pages" 2>&1
    grep -v 'not there' "$scratch/pages"
    [ "$(grep -v 'not there' "$scratch/pages")" = "$1 $segment_pages" ]
}
# works_in NAME: load the graph into the pool and run on it
works_in() {
    bounded 60 "$dmgraph" load "$graph" --pool guest --as graph --threads 1 >"$scratch/load" 2>&1
    verdict "$1: a graph is loaded" $? "$scratch/load"
    answers "$1: bfs" 60 bfs graph --pool guest --cns 2 --threads 1
    answers "$1: pagerank" 60 pagerank graph --pool guest --cns 2 --threads 1 --iterations 5
}
# dax_device OPTION...: ndctl makes one; $device is its path
dax_device() {
    device=/dev/$(bounded 60 ndctl create-namespace --mode devdax --map mem "$@" |
        sed -n 's/.*"chardev":"\(dax[0-9.]*\)".*/\1/p' | head -n 1)
    [ -c "$device" ]
}
maps_device() {
    grep -q "$device" "/proc/$node/maps"
}
on_device() { # NAME OPTION...
    local name=$1
    shift
    holds "$name: a pool starts" start_pool "cxl_shm:path=$device" "$@"
    holds "$name: the memory node maps it" maps_device
    works_in "$name"
    stop_pool
}
