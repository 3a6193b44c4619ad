dmg_unit_test(store_layout SOURCES core/store/layout.c LINK dmg-test-pool dmg-store)
dmg_unit_test(store SOURCES core/store/store.c core/store/check.c LINK dmg-test-pool dmg-store)
dmg_unit_test(store_descriptor SOURCES core/store/descriptor.c LINK dmg-test-pool dmg-store)
dmg_unit_test(graph_catalog SOURCES core/store/graph_catalog.c core/store/check.c LINK dmg-test-pool dmg-store)
