# cmake --install: the program, both libraries, the public headers, and what pkg-config and find_package need to find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/dmgraph)

set_target_properties(dmgraph-shared PROPERTIES EXPORT_NAME dmgraph)
set_target_properties(dmgraph-static PROPERTIES EXPORT_NAME static)
install(TARGETS dmgraph-shared EXPORT dmgraph-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS dmgraph-static EXPORT dmgraph-static-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/dmgraph DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

foreach(set dmgraph-targets dmgraph-static-targets)
  install(EXPORT ${set} NAMESPACE dmgraph:: DESTINATION ${package_folder})
endforeach()
configure_package_config_file(cmake/dmgraph-config.cmake.in ${CMAKE_BINARY_DIR}/dmgraph-config.cmake
                              INSTALL_DESTINATION ${package_folder})
# While the first number is 0, a new second number may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dmgraph-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dmgraph-config.cmake ${CMAKE_BINARY_DIR}/dmgraph-config-version.cmake
        DESTINATION ${package_folder})

file(RELATIVE_PATH DMGRAPH_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/dmgraph.pc.in ${CMAKE_BINARY_DIR}/dmgraph.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/dmgraph.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# Link profiles. The program finds them beside itself, in the build tree too.
file(GLOB link_profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/share/links/*.link)
foreach(profile ${link_profiles})
  get_filename_component(name ${profile} NAME)
  configure_file(${profile} ${PROJECT_BINARY_DIR}/share/dmgraph/links/${name} COPYONLY)
endforeach()
install(FILES ${link_profiles} DESTINATION ${CMAKE_INSTALL_DATADIR}/dmgraph/links)
