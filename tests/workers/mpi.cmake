# SPDX-License-Identifier: Apache-2.0
# The MPI workers, each built twice: NAME.openmpi and NAME.mpich, in WORKERS_DIR (default: workers/
# in the build folder of the tests). They are built by the MPI's own compiler wrappers, without the
# project's warnings and sanitizers: they stand for programs that know nothing of hvdrun.
find_program(MPICC_OPENMPI NAMES mpicc.openmpi REQUIRED)
find_program(MPICC_MPICH NAMES mpicc.mpich REQUIRED)
if(NOT WORKERS_DIR)
  set(WORKERS_DIR ${CMAKE_CURRENT_BINARY_DIR}/workers)
endif()
file(MAKE_DIRECTORY ${WORKERS_DIR})
set(mpi_workers)
foreach(worker mpi_hello mpi_abort mpi_exec mpi_direct mpi_publish mpi_die mpi_left mpi_long mpi_ring mpi_nodes mpi_speed mpi_stray mpi_worlds)
  set(source ${CMAKE_CURRENT_LIST_DIR}/${worker}.c)
  foreach(flavour OPENMPI MPICH)
    string(TOLOWER ${flavour} suffix)
    set(program ${WORKERS_DIR}/${worker}.${suffix})
    add_custom_command(
      OUTPUT ${program}
      COMMAND ${MPICC_${flavour}} -std=gnu11 -D_GNU_SOURCE -O1 -Wall -pthread -o ${program} ${source} -ldl
      DEPENDS ${source}
      VERBATIM)
    list(APPEND mpi_workers ${program})
  endforeach()
endforeach()

# A library whose name and functions look like those of MPI.
foreach(flavour OPENMPI MPICH)
  string(TOLOWER ${flavour} suffix)
  set(library ${WORKERS_DIR}/libmpi_solver.${suffix}.so)
  set(source ${CMAKE_CURRENT_LIST_DIR}/mpi_solver.c)
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${MPICC_${flavour}} -std=gnu11 -D_GNU_SOURCE -O1 -Wall -shared -fPIC -o ${library} ${source}
    DEPENDS ${source}
    VERBATIM)
  list(APPEND mpi_workers ${library})
endforeach()

# A module of Python that uses MPI: mpi_python.KIND.
foreach(flavour OPENMPI MPICH)
  string(TOLOWER ${flavour} suffix)
  set(module ${WORKERS_DIR}/mpi_python.${suffix})
  set(source ${CMAKE_CURRENT_LIST_DIR}/mpi_python.c)
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${MPICC_${flavour}} -std=gnu11 -D_GNU_SOURCE -O1 -Wall -shared -fPIC -o ${module} ${source}
    DEPENDS ${source}
    VERBATIM)
  list(APPEND mpi_workers ${module})
endforeach()

# PMIx clients without MPI.
foreach(worker mpi_pmix mpi_epochs mpi_fence mpi_order mpi_group mpi_tool)
  set(program ${WORKERS_DIR}/${worker})
  set(source ${CMAKE_CURRENT_LIST_DIR}/${worker}.c)
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${CMAKE_C_COMPILER} -std=gnu11 -D_GNU_SOURCE -O1 -Wall ${dep_pmix_CFLAGS} -o ${program} ${source} ${dep_pmix_LDFLAGS}
    DEPENDS ${source}
    VERBATIM)
  list(APPEND mpi_workers ${program})
endforeach()
add_custom_target(mpi_workers ALL DEPENDS ${mpi_workers})
