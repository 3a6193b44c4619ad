# The program's parts that can be tested without running it; the rest is tested by running it (tests/system).
dmg_unit_test(cli_options LINK dmg-base PkgConfig::jansson)
target_sources(unit-cli_options PRIVATE ${PROJECT_SOURCE_DIR}/cli/options.c ${PROJECT_SOURCE_DIR}/cli/text.c)
dmg_unit_test(cli_files LINK dmg-base PkgConfig::jansson)
target_sources(unit-cli_files PRIVATE ${PROJECT_SOURCE_DIR}/cli/output_file.c ${PROJECT_SOURCE_DIR}/cli/control.c)
dmg_unit_test(cli_pool_file LINK dmg-pool PkgConfig::jansson)
target_sources(unit-cli_pool_file PRIVATE ${PROJECT_SOURCE_DIR}/cli/pool_file.c ${PROJECT_SOURCE_DIR}/cli/process.c
                                          ${PROJECT_SOURCE_DIR}/cli/token.c)
dmg_unit_test(serial LINK dmg-algorithms)
