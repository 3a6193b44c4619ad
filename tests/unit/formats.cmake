# The readers, the builder and the binary form.
foreach(name formats formats_compression formats_matrix_market formats_builder formats_binary formats_foreign formats_data)
  dmg_unit_test(${name} LINK dmg-formats)
  target_sources(unit-${name} PRIVATE unit/formats_support.c)
endforeach()
