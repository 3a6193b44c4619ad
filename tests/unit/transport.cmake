dmg_unit_test(transport LINK dmg-transport)
target_sources(unit-transport PRIVATE unit/transport_processes.c unit/transport_faults.c)
set_tests_properties(unit.transport PROPERTIES TIMEOUT 1800 COST 80)

dmg_unit_test(coherence LINK dmg-transport)
set_tests_properties(unit.coherence PROPERTIES TIMEOUT 1800)

dmg_unit_test(transport_stream LINK dmg-transport)
target_sources(unit-transport_stream PRIVATE unit/transport_stream_support.c unit/transport_stream_records.c)
set_tests_properties(unit.transport_stream PROPERTIES TIMEOUT 600)

dmg_unit_test(transport_stream_listener LINK dmg-transport)
target_sources(unit-transport_stream_listener PRIVATE unit/transport_stream_support.c)
set_tests_properties(unit.transport_stream_listener PROPERTIES TIMEOUT 600)
