# The program's parts that can be tested without running it; the rest is tested by running it (tests/system).
dmg_unit_test(cli_options LINK dmg-base PkgConfig::jansson)
target_sources(unit-cli_options PRIVATE ${PROJECT_SOURCE_DIR}/cli/options.c ${PROJECT_SOURCE_DIR}/cli/text.c)
dmg_unit_test(cli_files LINK dmg-transport PkgConfig::jansson)
target_sources(unit-cli_files PRIVATE ${PROJECT_SOURCE_DIR}/cli/output_file.c ${PROJECT_SOURCE_DIR}/cli/control.c
                                       ${PROJECT_SOURCE_DIR}/cli/input_files.c)
target_link_options(unit-cli_files PRIVATE -Wl,--wrap=fsync)
dmg_unit_test(cli_pool_file LINK dmg-pool PkgConfig::jansson)
target_sources(unit-cli_pool_file PRIVATE ${PROJECT_SOURCE_DIR}/cli/pool_file.c
                                          ${PROJECT_SOURCE_DIR}/cli/private_file.c
                                          ${PROJECT_SOURCE_DIR}/cli/token.c)
dmg_unit_test(cli_pool_record LINK dmg-pool PkgConfig::jansson)
target_sources(unit-cli_pool_record PRIVATE ${PROJECT_SOURCE_DIR}/cli/pool_record.c ${PROJECT_SOURCE_DIR}/cli/pool_file.c
                                            ${PROJECT_SOURCE_DIR}/cli/private_file.c
                                            ${PROJECT_SOURCE_DIR}/cli/token.c ${PROJECT_SOURCE_DIR}/cli/text.c)
dmg_unit_test(cli_node_control LINK dmg-base PkgConfig::jansson)
target_sources(unit-cli_node_control PRIVATE
  ${PROJECT_SOURCE_DIR}/cli/node_control.c ${PROJECT_SOURCE_DIR}/cli/control.c ${PROJECT_SOURCE_DIR}/cli/options.c
  ${PROJECT_SOURCE_DIR}/cli/text.c)
dmg_unit_test(serial LINK dmg-algorithms)
dmg_unit_test(cli_compare LINK dmg-transport PkgConfig::jansson m)
target_sources(unit-cli_compare PRIVATE ${PROJECT_SOURCE_DIR}/cli/compare_statistics.c
                                        ${PROJECT_SOURCE_DIR}/cli/compare_sensitivity.c ${PROJECT_SOURCE_DIR}/cli/chart.c
                                        ${PROJECT_SOURCE_DIR}/cli/chart_axis.c ${PROJECT_SOURCE_DIR}/cli/markup.c
                                        ${PROJECT_SOURCE_DIR}/cli/predict_model.c ${PROJECT_SOURCE_DIR}/cli/text.c)
dmg_unit_test(perf_check LINK dmg-transport m)
target_sources(unit-perf_check PRIVATE ${PROJECT_SOURCE_DIR}/cli/perf_check.c ${PROJECT_SOURCE_DIR}/cli/perf_histogram.c)
dmg_unit_test(cli_verdict LINK dmg-base PkgConfig::jansson m)
target_sources(unit-cli_verdict PRIVATE ${PROJECT_SOURCE_DIR}/cli/compare_verdict.c
                                        ${PROJECT_SOURCE_DIR}/cli/compare_statistics.c ${PROJECT_SOURCE_DIR}/cli/text.c)
dmg_unit_test(predict LINK dmg-transport PkgConfig::jansson m)
target_sources(unit-predict PRIVATE
  ${PROJECT_SOURCE_DIR}/cli/predict_model.c ${PROJECT_SOURCE_DIR}/cli/predict_read.c ${PROJECT_SOURCE_DIR}/cli/link_options.c
  ${PROJECT_SOURCE_DIR}/cli/options.c ${PROJECT_SOURCE_DIR}/cli/text.c)
