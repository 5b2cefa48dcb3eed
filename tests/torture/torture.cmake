# SPDX-License-Identifier: Apache-2.0
# The library that lets calls of hvdrun fail: see README.md. It stands beside the workers, where
# flow.torture and flow.nightly_torture find it, and is built without sanitizers.
add_library(torture MODULE ${CMAKE_CURRENT_LIST_DIR}/fault.c ${CMAKE_CURRENT_LIST_DIR}/memory.c
                           ${CMAKE_CURRENT_LIST_DIR}/process.c ${CMAKE_CURRENT_LIST_DIR}/calls.c)
set_target_properties(torture PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${HVDRUN_WORKERS})
# -fno-builtin: a malloc() that is written here must not be taken for the compiler's own
target_compile_options(torture PRIVATE -O1 -fno-sanitize=all -fno-builtin -fvisibility=default -Wno-missing-prototypes)
target_link_options(torture PRIVATE -fno-sanitize=all)
