# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: see README.md. Built with -fsanitize=fuzzer-no-link (preset fuzz) each target is a
# program with libFuzzer in it, whose tests last HVDRUN_FUZZ_SECONDS each and have the label nightly.
# In every other build all are in one program that replays the corpus and changes of it.
set(fuzz_nouns)
set(fuzz_rooms)

# fuzz_target(NOUN ROOM RUNS): RUNS changes of the corpus are tried in each run of the tests.
function(fuzz_target noun room runs)
  set(fuzz_nouns ${fuzz_nouns} ${noun} PARENT_SCOPE)
  set(fuzz_rooms ${fuzz_rooms} ${room} PARENT_SCOPE)
  set(fuzz_runs_${noun} ${runs} PARENT_SCOPE)
  set(fuzz_room_${noun} ${room} PARENT_SCOPE)
endfunction()

fuzz_target(hosts model 800)
fuzz_target(hostfile model 4000)
fuzz_target(discovered model 3000)
fuzz_target(config_ini cli 4000)
fuzz_target(config_yaml cli 4000)
fuzz_target(env_file model 4000)
fuzz_target(command_line cli 2000)
fuzz_target(settings model 1500)
fuzz_target(label output 4000)
fuzz_target(ranks model 4000)
fuzz_target(mapping model 3000)
fuzz_target(slurm model 4000)
fuzz_target(allocation model 4000)
fuzz_target(cpu_list model 2000)
fuzz_target(network model 4000)
fuzz_target(elf cli 2000)
fuzz_target(words transport 4000)
fuzz_target(known_hosts ssh 3000)
fuzz_target(ssh_key ssh 500)
fuzz_target(ssh_config transport 4000)
fuzz_target(told cli 4000)
fuzz_target(http rendezvous 4000)
fuzz_target(pickle rendezvous 4000)
fuzz_target(pmi1 pmi1 4000)
fuzz_target(frame io 1000)
fuzz_target(message wire 4000)
fuzz_target(control driver 3000)
fuzz_target(driver driver 250)
fuzz_target(agent agent 80)

set(fuzz_folder ${CMAKE_CURRENT_LIST_DIR})
set(fuzz_sources_driver ${fuzz_folder}/frames.c)
set(fuzz_sources_agent ${fuzz_folder}/frames.c)
set(HVDRUN_FUZZ_SECONDS 3600 CACHE STRING "How long a test with libFuzzer lasts")

if(HVDRUN_SANITIZE MATCHES "fuzzer")
  math(EXPR fuzz_limit "${HVDRUN_FUZZ_SECONDS} + 600")
  foreach(noun ${fuzz_nouns})
    add_executable(fuzz_${noun} ${fuzz_folder}/fuzz_${noun}.c)
    target_sources(fuzz_${noun} PRIVATE ${fuzz_sources_${noun}})
    target_compile_definitions(fuzz_${noun} PRIVATE FUZZ_RUN=LLVMFuzzerTestOneInput)
    target_include_directories(fuzz_${noun} PRIVATE ${fuzz_folder})
    target_link_libraries(fuzz_${noun} PRIVATE room_${fuzz_room_${noun}} -fsanitize=fuzzer)
    set(found ${CMAKE_CURRENT_BINARY_DIR}/corpus/${noun})
    file(MAKE_DIRECTORY ${found})
    # New inputs go to the first folder; a finding is written to the working folder.
    add_test(
      NAME fuzz.${noun}
      COMMAND
        fuzz_${noun} -max_total_time=${HVDRUN_FUZZ_SECONDS} -timeout=60 -rss_limit_mb=2048
        -close_fd_mask=3 -print_final_stats=1 -artifact_prefix=fuzz-${noun}-
        -dict=${fuzz_folder}/dict/${noun}.dict ${found} ${fuzz_folder}/corpus/${noun})
    set_tests_properties(fuzz.${noun} PROPERTIES TIMEOUT ${fuzz_limit} LABELS "fuzz;nightly" PROCESSORS 1)
    list(APPEND fuzz_programs fuzz_${noun})
  endforeach()
  add_custom_target(fuzz_targets DEPENDS ${fuzz_programs})
else()
  set(fuzz_sources)
  foreach(noun ${fuzz_nouns})
    list(APPEND fuzz_sources ${fuzz_folder}/fuzz_${noun}.c)
    set_source_files_properties(${fuzz_folder}/fuzz_${noun}.c PROPERTIES COMPILE_DEFINITIONS FUZZ_RUN=fuzz_${noun})
    string(APPEND fuzz_list " X(${noun})")
    add_test(
      NAME fuzz.${noun}
      COMMAND
        fuzz_replay ${noun} --runs ${fuzz_runs_${noun}} --dict ${fuzz_folder}/dict/${noun}.dict
        ${fuzz_folder}/corpus/${noun})
    set_tests_properties(fuzz.${noun} PROPERTIES TIMEOUT 300 LABELS fuzz)
  endforeach()
  list(TRANSFORM fuzz_rooms PREPEND room_)
  list(REMOVE_DUPLICATES fuzz_rooms)
  add_executable(fuzz_replay ${fuzz_folder}/replay.c ${fuzz_folder}/mutate.c ${fuzz_folder}/frames.c ${fuzz_sources})
  set(fuzz_generated ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  file(CONFIGURE OUTPUT ${fuzz_generated}/fuzz_targets.h CONTENT "#define FUZZ_TARGET_LIST(X)${fuzz_list}\n")
  target_include_directories(fuzz_replay PRIVATE ${fuzz_folder} ${fuzz_generated})
  target_link_libraries(fuzz_replay PRIVATE ${fuzz_rooms})
endif()
