dmg_unit_test(pool_modules LINK dmg-pool)
