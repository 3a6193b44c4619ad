dmg_unit_test(work SOURCES core/work/work.c LINK dmg-work)
