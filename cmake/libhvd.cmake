# SPDX-License-Identifier: Apache-2.0
# libhvd, shared and static, with its engines, a file for pkg-config and a package for CMake. hvdrun does not
# use it. These rooms have the functions of hvd.h.
set(libhvd_api_rooms room_core room_loop room_api)
set(libhvd_rooms room_elastic room_timeline room_line room_engine room_base)
set(libhvd_soversion 0)

# Only the functions of hvd.h are visible. The other rooms come from archives, of which the linker takes what is used.
list(TRANSFORM libhvd_api_rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE libhvd_api_objects)
add_library(hvd SHARED ${libhvd_api_objects})
target_link_libraries(hvd PRIVATE ${libhvd_rooms} Threads::Threads m ${CMAKE_DL_LIBS})
target_link_options(hvd PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(hvd PROPERTIES
  LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION}
  SOVERSION ${libhvd_soversion}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_include_directories(hvd INTERFACE ${PROJECT_SOURCE_DIR}/runtime/include)

# One object, in which all names but those of hvd.h are local. So libhvd.a brings none into a program.
set(libhvd_archive ${PROJECT_BINARY_DIR}/lib/libhvd.a)
set(libhvd_object ${CMAKE_CURRENT_BINARY_DIR}/libhvd.o)
list(TRANSFORM libhvd_api_rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE libhvd_api_archives)
list(TRANSFORM libhvd_rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE libhvd_archives)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
add_custom_command(
  OUTPUT ${libhvd_archive}
  COMMAND ${CMAKE_LINKER} -r -o ${libhvd_object} --whole-archive ${libhvd_api_archives} --no-whole-archive ${libhvd_archives}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${libhvd_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${libhvd_archive}
  COMMAND ${CMAKE_AR} rcsD ${libhvd_archive} ${libhvd_object}
  DEPENDS ${libhvd_api_rooms} ${libhvd_rooms}
  VERBATIM)
add_custom_target(hvd_archive ALL DEPENDS ${libhvd_archive})

# A man page for each block of hvd.h. The folder is made anew, so that it has no page of a function that is gone.
find_program(AWK NAMES awk REQUIRED)
mark_as_advanced(AWK)
set(libhvd_man ${PROJECT_BINARY_DIR}/generated/man3)
add_custom_command(
  OUTPUT ${libhvd_man}/hvd.3
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${libhvd_man}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${libhvd_man}
  COMMAND ${AWK} -v folder=${libhvd_man} -v version=${PROJECT_VERSION} -f ${PROJECT_SOURCE_DIR}/cmake/hvd_man.awk
          ${PROJECT_SOURCE_DIR}/runtime/include/hvd.h
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/hvd_man.awk ${PROJECT_SOURCE_DIR}/runtime/include/hvd.h
  VERBATIM)
add_custom_target(hvd_man ALL DEPENDS ${libhvd_man}/hvd.3)

# Both find the library from their own place, so an installation may move.
file(RELATIVE_PATH libhvd_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" libhvd_up "${libhvd_up}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/hvd.pc.in ${PROJECT_BINARY_DIR}/generated/hvd.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hvd-config.cmake.in ${PROJECT_BINARY_DIR}/generated/hvd-config.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/hvd-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS hvd LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${libhvd_archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/hvd.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${libhvd_man} DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${PROJECT_BINARY_DIR}/generated/hvd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/generated/hvd-config.cmake ${PROJECT_BINARY_DIR}/generated/hvd-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hvd)
get_property(engines GLOBAL PROPERTY HVD_ENGINES)
foreach(engine ${engines})
  install(TARGETS hvd_${engine} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvd)
  add_dependencies(hvd hvd_${engine}) # a program that links with libhvd needs one of them when it runs
endforeach()
