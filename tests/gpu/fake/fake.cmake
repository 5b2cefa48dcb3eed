# SPDX-License-Identifier: Apache-2.0
# A libcuda.so.1 and a libnccl.so.2 for machines without a GPU: see fake.h. They are in a folder of their
# own, for LD_LIBRARY_PATH.
set(fake_gpu_folder ${PROJECT_BINARY_DIR}/tests/gpu/fake)
function(fake_gpu_library name file)
  add_library(fake_${name} SHARED ${ARGN})
  set_target_properties(fake_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${fake_gpu_folder}
    OUTPUT_NAME ${name}
    SUFFIX ${file}
    NO_SONAME OFF
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "")
  target_include_directories(fake_${name} PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/tests/gpu/fake)
  # TSan takes glibc's own memory for the variables of threads in dlopened files for a race
  target_compile_options(fake_${name} PRIVATE -ftls-model=initial-exec)
  target_link_libraries(fake_${name} PRIVATE room_engine room_base Threads::Threads)
  target_link_options(fake_${name} PRIVATE -Wl,--exclude-libs,ALL)
endfunction()
foreach(file fault memory streams cuda)
  list(APPEND fake_cuda_sources ${CMAKE_CURRENT_LIST_DIR}/${file}.c)
endforeach()
foreach(file kernels mesh nccl)
  list(APPEND fake_nccl_sources ${CMAKE_CURRENT_LIST_DIR}/${file}.c)
endforeach()
fake_gpu_library(cuda .so.1 ${fake_cuda_sources})
fake_gpu_library(nccl .so.2 ${fake_nccl_sources})
target_link_libraries(fake_nccl PRIVATE fake_cuda)

# A libnvidia-ml.so.1, and one as an older driver has it in a folder of its own: see nvml.c.
foreach(age now old)
  add_library(fake_nvml_${age} SHARED ${CMAKE_CURRENT_LIST_DIR}/nvml.c)
  set_target_properties(fake_nvml_${age} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${fake_gpu_folder}_nvml_${age}
    OUTPUT_NAME nvidia-ml
    SUFFIX .so.1)
endforeach()
target_compile_definitions(fake_nvml_old PRIVATE FAKE_NVML_OLD)
