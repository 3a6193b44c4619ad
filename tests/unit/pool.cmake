dmg_unit_test(pool_modules LINK dmg-pool)
dmg_unit_test(pool_job_table LINK dmg-pool)
dmg_unit_test(pool LINK dmg-test-pool)
dmg_unit_test(pool_jobs LINK dmg-test-pool)
set_tests_properties(unit.pool_modules unit.pool_job_table unit.pool unit.pool_jobs PROPERTIES TIMEOUT 600)
if(DMGRAPH_SANITIZE STREQUAL "thread")
  # UCX's memory hooks call the sanitizer on threads that it has already forgotten.
  set_tests_properties(unit.pool unit.pool_jobs PROPERTIES ENVIRONMENT UCX_MEM_EVENTS=n)
endif()
