# A pool of memory nodes in threads, and random graphs: for the tests of all layers above the pool.
add_library(dmg-test-pool STATIC unit/pool_fixture.c unit/random_graph.c)
target_include_directories(dmg-test-pool PUBLIC ${PROJECT_SOURCE_DIR}/tests/unit)
target_link_libraries(dmg-test-pool PUBLIC dmg-test-main dmg-pool dmg-formats)

dmg_unit_test(store_layout LINK dmg-test-pool dmg-store)
dmg_unit_test(store LINK dmg-test-pool dmg-store)
target_sources(unit-store PRIVATE unit/store_check.c)
dmg_unit_test(store_descriptor LINK dmg-test-pool dmg-store)
dmg_unit_test(graph_catalog LINK dmg-test-pool dmg-store)
target_sources(unit-graph_catalog PRIVATE unit/store_check.c)
