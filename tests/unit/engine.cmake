dmg_unit_test(engine LINK dmg-test-pool dmg-algorithms)
dmg_unit_test(work LINK dmg-work)
dmg_unit_test(update LINK dmg-test-pool dmg-update)
set_tests_properties(unit.engine PROPERTIES TIMEOUT 900)
