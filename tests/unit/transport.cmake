dmg_unit_test(transport LINK dmg-transport)
target_sources(unit-transport PRIVATE unit/transport_processes.c unit/transport_faults.c)
set_tests_properties(unit.transport PROPERTIES TIMEOUT 900)
if(DMGRAPH_SANITIZE STREQUAL "thread")
  # UCX patches madvise when it is loaded, and its patch takes a lock in threads that ThreadSanitizer has already said good-bye to.
  set_tests_properties(unit.transport PROPERTIES ENVIRONMENT UCX_MEM_MMAP_HOOK_MODE=none)
endif()
