# What tests/guest needs compiled; the guests themselves are `./test --guest`.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_executable(guest-segment-nodes guest/segment_nodes.c)
  target_link_libraries(guest-segment-nodes PRIVATE numa)
  add_executable(guest-tsc-frequency guest/tsc_frequency.c)
  add_executable(guest-rank guest/rank.c)
  target_link_libraries(guest-rank PRIVATE dmg-test-main dmg-api m)
endif()
