# shellcheck shell=bash disable=SC2154
# The guests' machines: what QEMU is told, a function a boot. Every guest is bounded in time.

machine_soft_roce() { # [RESULTS], when there is another payload
    local results=${1:-$work/results/soft_roce}
    [ -n "${1:-}" ] || make_results "$results" soft_roce.sh
    qemu "$results" 720 -machine q35 -m 2G
}

# Node 0 has the processors. Node 1 has memory only, farther away, as its HMAT says. An NVDIMM, which is real memory, stands in for a DAX
# device of some speed; it belongs to node 2, which has little memory else, for the kernel leaves out the HMAT of empty nodes.
machine_memory() { # [RESULTS], when there is another payload
    local results=${1:-$work/results/memory}
    [ -n "${1:-}" ] || make_results "$results" memory.sh
    rm -f "$work/nvdimm"
    truncate -s 258M "$work/nvdimm"
    qemu "$results" 300 -machine q35,hmat=on,nvdimm=on -m 2G,slots=4,maxmem=8G \
        -object memory-backend-ram,id=near,size=1472M -object memory-backend-ram,id=far,size=512M \
        -object memory-backend-ram,id=little,size=64M \
        -numa node,nodeid=0,memdev=near,cpus=0-1 -numa node,nodeid=1,memdev=far,initiator=0 \
        -numa node,nodeid=2,memdev=little,initiator=0 \
        -numa dist,src=0,dst=1,val=17 -numa dist,src=0,dst=2,val=28 -numa dist,src=1,dst=2,val=28 \
        -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=80 \
        -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=250 \
        -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=600 \
        -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=100G \
        -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=25G \
        -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=10G \
        -object memory-backend-file,id=nvdimm,share=on,mem-path="$work/nvdimm",size=258M \
        -device nvdimm,id=nvdimm0,memdev=nvdimm,node=2,label-size=2M
    rm -f "$work/nvdimm"
}

# A CXL Type-3 device, emulated access by access. It has two root ports above it, since QEMU 7.2 drops every access to memory behind
# a single one. Not in the machine above: together their ACPI tables are more than the firmware takes.
machine_cxl() { # [RESULTS], when there is another payload
    local results=${1:-$work/results/cxl}
    [ -n "${1:-}" ] || make_results "$results" cxl.sh
    rm -f "$work/cxl" "$work/cxl-label"
    truncate -s 256M "$work/cxl"
    truncate -s 1M "$work/cxl-label"
    qemu "$results" 180 -machine q35,cxl=on -m 1G,slots=4,maxmem=8G \
        -object memory-backend-file,id=cxl,share=on,mem-path="$work/cxl",size=256M \
        -object memory-backend-file,id=label,share=on,mem-path="$work/cxl-label",size=1M \
        -device pxb-cxl,bus_nr=12,bus=pcie.0,id=bridge -device cxl-rp,port=0,bus=bridge,id=port0,chassis=0,slot=2 \
        -device cxl-rp,port=1,bus=bridge,id=port1,chassis=0,slot=3 -device cxl-type3,bus=port0,memdev=cxl,lsa=label,id=type3 \
        -machine cxl-fmw.0.targets.0=bridge,cxl-fmw.0.size=4G
    rm -f "$work/cxl" "$work/cxl-label"
}

# hand_on FROM TO NAME...: files that one guest leaves for the other, until both have ended; $guests are their processes
hand_on() {
    local from=$1 to=$2 name
    shift 2
    for name in "$@"; do
        if [ -e "$from/$name" ] && [ ! -e "$to/$name" ]; then
            cp "$from/$name" "$to/$name.new" && mv "$to/$name.new" "$to/$name"
        fi
    done
}
any_runs() { # PROCESS...
    local process
    for process in "$@"; do
        kill -0 "$process" 2>/dev/null && return 0
    done
    return 1
}

# Two guests with one memory, which either finds behind a PCI device, and a wire between them that is a socket.
machine_two_hosts() {
    local role guests=() end=("server=on" "server=off") results=$work/results/two_hosts
    local wire
    wire=$(mktemp -u /tmp/dmgraph-wire.XXXXXX)
    rm -f "$work/shared"
    truncate -s 64M "$work/shared"
    for role in 0 1; do
        make_results "$results.$role" two_hosts.sh "$role"
        qemu "$results.$role" 360 -machine q35 -m 1G \
            -object memory-backend-file,id=shared,share=on,mem-path="$work/shared",size=64M -device ivshmem-plain,memdev=shared \
            -netdev "stream,id=wire,${end[role]},addr.type=unix,addr.path=$wire" \
            -device "virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0$role" &
        guests+=($!)
        local _
        for _ in {1..100}; do
            [ ! -S "$wire" ] || break
            sleep 0.1
        done
    done
    while any_runs "${guests[@]}"; do
        hand_on "$results.0" "$results.1" pool.coherent pool.none
        hand_on "$results.1" "$results.0" done.coherent done.none
        sleep 0.1
    done
    wait "${guests[@]}"
    rm -f "$work/shared" "$wire"
}

machine_command() { # MACHINE TEXT: a command in the machine of a boot
    local results=$work/results/command
    make_results "$results" command.sh
    printf '%s\n' "$2" >"$results/command"
    "machine_$1" "$results"
}
