# SPDX-License-Identifier: Apache-2.0
# The programs of engines.py. The default build does not contain them.
add_custom_target(bench_engines)
get_property(engines GLOBAL PROPERTY HVD_ENGINES)
foreach(engine ${engines})
  file(GLOB source ${CMAKE_CURRENT_SOURCE_DIR}/bench/engine_${engine}.c*)
  add_executable(bench_engine_${engine} EXCLUDE_FROM_ALL ${source}
    ${CMAKE_CURRENT_SOURCE_DIR}/bench/engine_rounds.c ${CMAKE_CURRENT_SOURCE_DIR}/engine/worker.c)
  set_target_properties(bench_engine_${engine} PROPERTIES
    OUTPUT_NAME engine_${engine} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bench)
  target_include_directories(bench_engine_${engine} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/bench ${CMAKE_CURRENT_SOURCE_DIR}/engine)
  target_link_libraries(bench_engine_${engine} PRIVATE room_engine room_base Threads::Threads m)
  add_dependencies(bench_engines bench_engine_${engine} hvd_${engine})
endforeach()
if(TARGET bench_engine_mpi)
  target_link_libraries(bench_engine_mpi PRIVATE PkgConfig::dep_ompi)
endif()
if(TARGET bench_engine_gloo)
  target_include_directories(bench_engine_gloo SYSTEM PRIVATE ${GLOO_INCLUDE_DIR})
  target_link_libraries(bench_engine_gloo PRIVATE ${GLOO_LIBRARY})
endif()
