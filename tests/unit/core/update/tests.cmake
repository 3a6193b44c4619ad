dmg_unit_test(update SOURCES core/update/update.c LINK dmg-test-pool dmg-exchange)
dmg_unit_test(update_methods LINK dmg-test-pool dmg-program
              SOURCES core/update/methods.c core/update/methods_min_uint32.c core/update/methods_min_uint64.c
                      core/update/methods_add_double.c)
