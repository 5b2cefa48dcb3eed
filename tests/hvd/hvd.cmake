# SPDX-License-Identifier: Apache-2.0
# Programs that test libhvd through hvd.h. tests/flow/test_hvd.py runs them under hvdrun.
set(hvd_engine_tests ${CMAKE_CURRENT_SOURCE_DIR}/engine)
set(hvd_tests adasum collectives places rules faults killed memory misuse gpu steps)
if(dep_ompi_FOUND)
  list(APPEND hvd_tests mpi_sets)
endif()
foreach(program ${hvd_tests})
  add_executable(hvd_test_${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.c ${CMAKE_CURRENT_LIST_DIR}/job.c
    ${CMAKE_CURRENT_LIST_DIR}/place.c
    ${hvd_engine_tests}/values.c ${hvd_engine_tests}/worker.c)
  set_target_properties(hvd_test_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/hvd)
  target_include_directories(hvd_test_${program} PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${hvd_engine_tests})
  target_link_libraries(hvd_test_${program} PRIVATE hvd room_engine room_base Threads::Threads ${CMAKE_DL_LIBS} m)
endforeach()
if(dep_ompi_FOUND)
  target_link_libraries(hvd_test_mpi_sets PRIVATE PkgConfig::dep_ompi)
endif()
