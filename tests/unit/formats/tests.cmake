# The readers, the builder and the binary form.
dmg_unit_test(formats SOURCES formats/formats.c formats/support.c LINK dmg-formats)
foreach(name compression matrix_market builder binary foreign data)
  dmg_unit_test(formats_${name} SOURCES formats/${name}.c formats/support.c LINK dmg-formats)
endforeach()
