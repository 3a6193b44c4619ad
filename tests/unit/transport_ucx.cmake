dmg_unit_test(transport_ucx LINK dmg-transport)
target_sources(unit-transport_ucx PRIVATE unit/transport_processes.c unit/transport_ucx_liar.c
               unit/transport_ucx_protocol.c unit/transport_ucx_limits.c unit/transport_ucx_lanes.c
               unit/transport_ucx_ports.c)
set_tests_properties(unit.transport_ucx PROPERTIES TIMEOUT 1800)
