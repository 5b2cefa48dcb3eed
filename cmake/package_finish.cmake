# SPDX-License-Identifier: Apache-2.0
# cpack runs this after it has made the package. The modes of the package's parts still depend on the
# umask, so this sets them and lets dpkg-deb, which ignores the umask, pack them again. SOURCE_DATE_EPOCH
# still gives the date of all parts.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
foreach(package ${CPACK_PACKAGE_FILES})
  set(parts ${CPACK_TEMPORARY_DIRECTORY}/parts)
  file(REMOVE_RECURSE ${parts})
  foreach(command "-R;${package};${parts}" "--root-owner-group;-Zxz;--threads-max=1;-b;${parts};${package}")
    execute_process(COMMAND dpkg-deb ${command} RESULT_VARIABLE status ERROR_VARIABLE problem OUTPUT_QUIET)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "package: dpkg-deb ${command}: ${problem}")
    endif()
    execute_process(COMMAND chmod 755 ${parts} ${parts}/DEBIAN)
    file(GLOB texts ${parts}/DEBIAN/control ${parts}/DEBIAN/md5sums ${parts}/DEBIAN/triggers)
    execute_process(COMMAND chmod 644 ${texts})
  endforeach()
  file(REMOVE_RECURSE ${parts})
endforeach()
