dmg_unit_test(transport SOURCES transport/transport.c transport/processes.c transport/faults.c LINK dmg-test-devices dmg-transport)
set_tests_properties(unit.transport PROPERTIES TIMEOUT 1800 COST 80)

dmg_unit_test(coherence SOURCES transport/cxl_shm/coherence.c LINK dmg-test-devices dmg-transport)
set_tests_properties(unit.coherence PROPERTIES TIMEOUT 1800)

dmg_unit_test(transport_stream LINK dmg-transport
              SOURCES transport/stream/stream.c transport/stream/support.c transport/stream/records.c)
dmg_unit_test(transport_stream_listener LINK dmg-transport
              SOURCES transport/stream/listener.c transport/stream/support.c)
set_tests_properties(unit.transport_stream unit.transport_stream_listener PROPERTIES TIMEOUT 600)

dmg_unit_test(transport_ucx LINK dmg-transport
              SOURCES transport/ucx/ucx.c transport/ucx/liar.c transport/ucx/protocol.c transport/ucx/limits.c
                      transport/ucx/lanes.c transport/ucx/ports.c transport/processes.c)
set_tests_properties(unit.transport_ucx PROPERTIES TIMEOUT 1800)

# The link model: its arithmetic, its profiles, its verdicts, and channels over it.
dmg_unit_test(link SOURCES transport/link/link.c LINK dmg-transport)
dmg_unit_test(link_profiles SOURCES transport/link/profiles.c LINK dmg-transport)
dmg_unit_test(link_channel SOURCES transport/link/channel.c LINK dmg-transport)
target_compile_definitions(unit-link_profiles PRIVATE LINK_FOLDER="${PROJECT_SOURCE_DIR}/share/links")
set_tests_properties(unit.link_channel PROPERTIES TIMEOUT 1800)

# The backend of docs/adding-a-backend.md: compiled, so that the page stays true.
add_library(dmg-example-backend OBJECT ${PROJECT_SOURCE_DIR}/docs/examples/heap_backend.c)
target_link_libraries(dmg-example-backend PRIVATE dmg-transport)
