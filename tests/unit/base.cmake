dmg_unit_test(base LINK dmg-base)
