# One static library a layer, so that a test links just the layers below it, and one library of all layers for users.
# The objects are compiled once and shared.

# dmg_layer(NAME FOLDER [FLAT] [PROGRAM] LINK libraries...): the folder and, unless it is FLAT, all that is in it. With PROGRAM it
# is not in the library that is installed.
function(dmg_layer name folder)
  cmake_parse_arguments(LAYER "FLAT;PROGRAM" "" "LINK" ${ARGN})
  if(LAYER_FLAT)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  endif()
  add_library(dmg-${name}-objects OBJECT ${sources})
  add_library(dmg-${name} STATIC $<TARGET_OBJECTS:dmg-${name}-objects>)
  foreach(target dmg-${name}-objects dmg-${name})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} PUBLIC ${LAYER_LINK})
  endforeach()
  if(NOT LAYER_PROGRAM)
    set_property(GLOBAL APPEND PROPERTY DMG_OBJECTS $<TARGET_OBJECTS:dmg-${name}-objects>)
  endif()
endfunction()

# dmg_room(NAME LINK libraries...): a folder of the program, so that tests link what they test.
function(dmg_room name)
  cmake_parse_arguments(ROOM "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.c)
  add_library(dmg-cli-${name} STATIC ${sources})
  target_link_libraries(dmg-cli-${name} PUBLIC ${ROOM_LINK} m)
endfunction()

# The libraries that are installed: all layers in one, static and shared.
function(dmg_library)
  get_property(objects GLOBAL PROPERTY DMG_OBJECTS)
  add_library(dmgraph-static STATIC ${objects})
  add_library(dmgraph-shared SHARED ${objects})
  foreach(library dmgraph-static dmgraph-shared)
    set_target_properties(${library} PROPERTIES OUTPUT_NAME dmgraph VERSION ${PROJECT_VERSION} SOVERSION 0
                                                LINKER_LANGUAGE C)
    target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:include>)
    target_link_libraries(${library} PRIVATE Threads::Threads m PkgConfig::sodium ${CMAKE_DL_LIBS}
                                             PkgConfig::numa PkgConfig::zstd PkgConfig::lzma ZLIB::ZLIB)
  endforeach()
endfunction()
