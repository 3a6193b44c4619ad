dmg_unit_test(serial SOURCES algorithms/serial.c LINK dmg-algorithms)
