# cmake --install: the program, both libraries, the public headers and the package configuration.
include(GNUInstallDirs)
install(TARGETS dmgraph-static dmgraph-shared
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/dmgraph DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
