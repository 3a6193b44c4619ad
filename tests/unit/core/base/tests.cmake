dmg_unit_test(base SOURCES core/base/base.c LINK dmg-base)
dmg_unit_test(watch SOURCES core/base/watch.c LINK dmg-base)
dmg_unit_test(base_memory SOURCES core/base/memory.c LINK dmg-base)
