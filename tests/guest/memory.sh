#!/bin/bash
# cxl_shm on the memory that stands for CXL: a NUMA node without processors, DAX devices, hugepages. The kernel is asked where the
# pages of a memory node's segment lie. Only in a guest: it takes the machine's devices as it likes.
# shellcheck source=tests/guest/cases.sh
. "$CHECKOUT/tests/guest/cases.sh"
# shellcheck source=tests/guest/pools.sh
. "$CHECKOUT/tests/guest/pools.sh"

file_says() { # FILE TEXT
    [ "$(cat "$1")" = "$2" ]
}

nodes=/sys/devices/system/node
"$dmgraph" generate kron --scale 9 "$graph" --quiet

holds "node 1 has memory and no processor" file_says $nodes/node1/cpulist ""
holds "node 1 is 250 ns away, by its HMAT" file_says $nodes/node1/access0/initiators/read_latency 250
holds "a pool starts on node 1" start_pool cxl_shm --numa-node 1 --prefault
holds "its segment lies on node 1 as a whole" lies_on 1 dmgraph-segment
works_in "on node 1"
holds "the segment is still on node 1 after the runs" lies_on 1 dmgraph-segment
stop_pool
holds "a pool on a node that is not there is refused" refuses_pool 'NUMA node 3' cxl_shm --numa-node 3
holds "a pool on a node that is too small is refused" refuses_pool 'NUMA node 2' cxl_shm --memory 256M --numa-node 2 --prefault
holds "a pool on a device that is not there is refused" refuses_pool '/dev/dax7.7' cxl_shm:path=/dev/dax7.7
holds "no file was made in its place" test ! -e /dev/dax7.7
holds "a pool starts on node 0" start_pool cxl_shm --numa-node 0 --prefault
holds "its segment lies on node 0 as a whole" lies_on 0 dmgraph-segment
stop_pool
holds "a pool over ucx starts on node 1" start_pool ucx --numa-node 1 --prefault
holds "its pages lie there, it says" grep -q 'on NUMA node 1, all touched' "$scratch/pool"
works_in "over ucx on node 1"
stop_pool

echo 40 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
free_hugepages() {
    cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages
}
before=$(free_hugepages)
holds "more hugepages than there are are refused, with the number that all nodes want" \
    refuses_pool '60 huge pages' cxl_shm --memory 40M --mns 3 --page-size 2M
holds "a pool starts on hugepages" start_pool cxl_shm --page-size 2M --prefault
holds "it says what pages it has" grep -q 'pages of 2.0 MiB' "$scratch/pool"
holds "its segment has 16 hugepages of 2 MiB" test $((before - $(free_hugepages))) = 16
works_in "on hugepages"
stop_pool
holds "the hugepages come back" test "$(free_hugepages)" = "$before"
mkdir "$scratch/huge"
mount -t hugetlbfs -o pagesize=2M huge "$scratch/huge"
holds "a pool starts in a hugetlbfs file" start_pool "cxl_shm:path=$scratch/huge/segment" --prefault
works_in "in a hugetlbfs file"
stop_pool
umount "$scratch/huge"
echo 0 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages

modprobe -a nfit nd_pmem dax_pmem device_dax kmem
wait_until test -e /sys/bus/nd/devices/namespace0.0
holds "an NVDIMM becomes a DAX device" dax_device -f -e namespace0.0
on_device "on an NVDIMM's DAX device"
holds "a device's memory on another node is refused" refuses_pool 'lies where the device is' "cxl_shm:path=$device" --numa-node 0
holds "the DAX device becomes a NUMA node" bounded 60 daxctl reconfigure-device --mode system-ram "$(basename "$device")"
segment_pages=32768
holds "a pool starts on node 2, larger than its other memory" start_pool cxl_shm --memory 128M --numa-node 2 --prefault
holds "its segment lies on node 2, in the DAX device's memory" lies_on 2 dmgraph-segment
works_in "on node 2"
stop_pool

[ "$failures" = 0 ]
