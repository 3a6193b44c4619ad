# Tests that run the program, written in Python's standard library alone. One ctest entry each.
find_program(DMGRAPH_PYTHON python3)

# dmg_program_test(NAME SCRIPT arguments...). The longest are started first, so that none is left running alone at the end. The time limits are
# the last resort against what hangs: tests bound themselves by deadlines that follow the machine (harness.py, unit/deadline.h).
function(dmg_program_test name script)
  add_test(NAME ${name} COMMAND ${DMGRAPH_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "DMGRAPH_PROGRAM=$<TARGET_FILE:dmgraph>;PYTHONUNBUFFERED=1;DMGRAPH_TEST_FAULTS=${CMAKE_BINARY_DIR}/tests/faults"
    SKIP_RETURN_CODE 77
    COST 20
    TIMEOUT 1800)
endfunction()

add_test(NAME layers.arrows COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-layers)
add_test(NAME layers.self_test COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-layers --self-test)

if(DMGRAPH_PYTHON AND TARGET dmgraph)
  foreach(algorithm bfs cc pagerank sssp)
    dmg_program_test(system.answers.${algorithm} system/answers.py ${algorithm})
  endforeach()
  foreach(subject options outputs obtained malformed formats pipes links paper compare predict systems connections)
    dmg_program_test(system.${subject} system/${subject}.py)
  endforeach()
  foreach(transport cxl_shm ucx)
    dmg_program_test(system.pools.${transport} system/pools.py ${transport})
    set_tests_properties(system.pools.${transport} PROPERTIES COST 60)
  endforeach()
  foreach(transport cxl_shm ucx)
    dmg_program_test(system.descriptors.${transport} system/descriptors.py ${transport})
  endforeach()
  dmg_program_test(system.descriptors.message system/descriptors.py ucx:data=message)
  # What is given up is kept out in another way by each of these.
  dmg_program_test(system.pools.given_up.none system/pools.py cxl_shm:coherence=none given_up)
  dmg_program_test(system.pools.given_up.message system/pools.py ucx:data=message given_up)
  foreach(kind integers floats)
    dmg_program_test(conformance.expected.${kind} conformance/expected.py ${kind})
    set_tests_properties(conformance.expected.${kind} PROPERTIES COST 200)
  endforeach()
  foreach(subject graphalytics faulty)
    dmg_program_test(conformance.${subject} conformance/${subject}.py)
  endforeach()
  foreach(subject killed_nodes stopped_nodes suspended interrupted)
    dmg_program_test(fault.${subject} fault/faults.py ${subject})
    set_tests_properties(fault.${subject} PROPERTIES COST 60)
  endforeach()
  dmg_program_test(fuzz.ports.cxl_shm fuzz/ports.py cxl_shm)
  dmg_program_test(fuzz.ports.cxl_shm_tcp fuzz/ports.py cxl_shm:path=MEMORY 127.0.0.1)
  foreach(transport cxl_shm ucx)
    dmg_program_test(fault.accidents.${transport} fault/accidents.py ${transport})
  endforeach()
  dmg_program_test(fuzz.ports.ucx fuzz/ports.py ucx)
  dmg_program_test(fuzz.ports.ucx_tcp fuzz/ports.py ucx:data=message 127.0.0.1)
  dmg_program_test(fault.leftovers fault/leftovers.py)
  dmg_program_test(fault.memory fault/memory.py)
  dmg_program_test(fault.causes fault/causes.py)
  # The last: every row of the document is one that these tests have just seen. What times say is not compared.
  add_test(NAME fault.table COMMAND ${PROJECT_SOURCE_DIR}/scripts/fault-table ${CMAKE_BINARY_DIR}/tests/faults --check
    ${PROJECT_SOURCE_DIR}/docs/reliability.md)
  set_tests_properties(fault.table PROPERTIES SKIP_RETURN_CODE 77 DEPENDS
    "fault.killed_nodes;fault.stopped_nodes;fault.suspended;fault.interrupted;fault.memory;system.malformed;system.pools.cxl_shm;system.pools.ucx;system.pools.given_up.none;system.pools.given_up.message")
  # ./test --soak has all faults, for half an hour.
  dmg_program_test(fault.soak fault/soak.py --few --faults 6 --minutes 10 --transport cxl_shm --seed 1)
else()
  message(STATUS "No python3: the tests that run the program are left out")
endif()
