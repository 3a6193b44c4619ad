dmg_unit_test(transport LINK dmg-transport)
target_sources(unit-transport PRIVATE unit/transport_processes.c unit/transport_faults.c)
set_tests_properties(unit.transport PROPERTIES TIMEOUT 1800 COST 80)

dmg_unit_test(coherence LINK dmg-transport)
set_tests_properties(unit.coherence PROPERTIES TIMEOUT 1800)
