dmg_unit_test(update SOURCES core/update/update.c LINK dmg-test-pool dmg-update)
dmg_unit_test(update_methods LINK dmg-test-pool dmg-engine
              SOURCES core/update/methods.c core/update/methods_min_uint32.c core/update/methods_min_uint64.c
                      core/update/methods_add_double.c)
dmg_unit_test(mailbox SOURCES core/update/mailbox.c core/update/mailbox_fixture.c LINK dmg-test-pool dmg-update)
dmg_unit_test(mailbox_interleavings SOURCES core/update/mailbox_interleavings.c core/update/mailbox_fixture.c
              LINK dmg-test-pool dmg-update)
