dmg_unit_test(engine SOURCES core/engine/engine.c LINK dmg-test-devices dmg-test-pool dmg-algorithms)
dmg_unit_test(engine_damage SOURCES core/engine/damage.c LINK dmg-test-pool dmg-algorithms)
dmg_unit_test(engine_groups SOURCES core/engine/groups.c LINK dmg-test-pool dmg-algorithms)
dmg_unit_test(retrieval SOURCES core/engine/retrieval/retrieval.c LINK dmg-test-pool dmg-engine)
dmg_unit_test(mailbox SOURCES core/engine/exchange/mailbox.c core/engine/exchange/mailbox_fixture.c
              LINK dmg-test-pool dmg-exchange)
dmg_unit_test(mailbox_interleavings LINK dmg-test-pool dmg-exchange
              SOURCES core/engine/exchange/mailbox_interleavings.c core/engine/exchange/mailbox_fixture.c)
# Among the longest: started early, so that none is left running alone at the end.
set_tests_properties(unit.engine unit.engine_damage unit.engine_groups PROPERTIES TIMEOUT 1800 COST 100)
