# The link model: its arithmetic, its profiles, its verdicts, and channels over it.
dmg_unit_test(link LINK dmg-transport)
dmg_unit_test(link_profiles LINK dmg-transport)
dmg_unit_test(link_channel LINK dmg-transport)
target_compile_definitions(unit-link_profiles PRIVATE LINK_FOLDER="${PROJECT_SOURCE_DIR}/share/links")
set_tests_properties(unit.link_channel PROPERTIES TIMEOUT 1800)
