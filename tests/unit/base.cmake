dmg_unit_test(base LINK dmg-base)
dmg_unit_test(watch LINK dmg-base)
dmg_unit_test(base_memory LINK dmg-base)
