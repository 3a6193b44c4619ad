foreach(name session session_ranks)
  dmg_unit_test(${name} SOURCES api/${name}.c api/session_support.c LINK dmg-api)
  set_tests_properties(unit.${name} PROPERTIES TIMEOUT 1800 LABELS concurrent)
endforeach()

# The library as users see it. A sanitized one would need sanitized users.
if(NOT DMGRAPH_SANITIZE)
  add_test(NAME api.symbols COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-symbols $<TARGET_FILE:dmgraph-shared>)
  # A host program, which is not linked with it.
  add_executable(api-host unit/api/host.c)
  target_include_directories(api-host PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(api-host PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME api.host COMMAND api-host $<TARGET_FILE:dmgraph-shared>)
  add_test(NAME api.python COMMAND python3 -c "import ctypes, sys; ctypes.CDLL(sys.argv[1]).dmg_session_open" $<TARGET_FILE:dmgraph-shared>)
  add_test(NAME api.install COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-install --build ${PROJECT_BINARY_DIR})
  set_tests_properties(api.install PROPERTIES ENVIRONMENT CC=${CMAKE_C_COMPILER} TIMEOUT 1800)
endif()
