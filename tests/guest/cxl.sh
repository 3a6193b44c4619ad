#!/bin/bash
# cxl_shm on a CXL Type-3 device with persistent memory, as far as Debian's QEMU and kernel make one usable. Only in a guest.
# shellcheck source=tests/guest/cases.sh
. "$CHECKOUT/tests/guest/cases.sh"
# shellcheck source=tests/guest/pools.sh
. "$CHECKOUT/tests/guest/pools.sh"

"$dmgraph" generate kron --scale 9 "$graph" --quiet
modprobe -a cxl_acpi cxl_pci cxl_mem cxl_pmem nd_pmem dax_pmem device_dax
wait_until test -e /sys/bus/cxl/devices/mem0
wait_until test -e /sys/bus/cxl/devices/endpoint2
holds "a CXL Type-3 device becomes a region" bounded 60 cxl create-region --decoder decoder0.0 --type pmem --memdevs --ways 1 mem0
wait_until test -e /sys/bus/nd/devices/region0
holds "the region becomes a DAX device" dax_device --region region0
# Small: emulation takes an access for each byte that is zeroed.
on_device "on a CXL Type-3 device" --memory 8M
[ "$failures" = 0 ]
