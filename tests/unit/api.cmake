dmg_unit_test(session LINK dmg-api)
set_tests_properties(unit.session PROPERTIES TIMEOUT 600)
