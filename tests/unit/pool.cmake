dmg_unit_test(pool_modules LINK dmg-pool)
dmg_unit_test(pool LINK dmg-test-pool)
dmg_unit_test(pool_jobs LINK dmg-test-pool)
