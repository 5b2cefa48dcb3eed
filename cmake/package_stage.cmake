# SPDX-License-Identifier: Apache-2.0
# cpack runs this between the installation into a folder and the archive of it: the form that Debian's
# policy wants, dependencies, and equal bytes for equal sources, whatever the clock, the umask and the
# build folder are.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(usr ${root}/usr)
set(doc ${usr}/share/doc/hvdrun)
set(modules ${usr}/${CPACK_HVDRUN_LIBDIR})

function(stage_run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status ERROR_VARIABLE problem OUTPUT_QUIET)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "package: ${ARGN}: ${problem}")
  endif()
endfunction()

# The date of the sources: of the environment, else of the last commit, else of the changelog's file.
function(stage_date result)
  set(date $ENV{SOURCE_DATE_EPOCH})
  if(NOT date AND EXISTS ${CPACK_HVDRUN_SOURCE}/.git)
    execute_process(COMMAND git -C ${CPACK_HVDRUN_SOURCE} log -1 --format=%ct
      OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT date)
    file(TIMESTAMP ${CPACK_HVDRUN_SOURCE}/CHANGELOG.md date "%s" UTC)
  endif()
  set(${result} ${date} PARENT_SCOPE)
endfunction()

# Names and line numbers are for debuggers: the build folder has them.
function(stage_strip)
  if(CPACK_HVDRUN_STRIP AND NOT CPACK_HVDRUN_SANITIZE)
    file(GLOB programs ${usr}/bin/* ${modules}/*)
    stage_run(${CPACK_HVDRUN_STRIP} --strip-unneeded --remove-section=.comment --remove-section=.note ${programs})
  endif()
  file(GLOB shared ${modules}/*.so)
  file(CHMOD ${shared} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

# What programs and modules are linked with, in the words of dpkg. Two things are recommended, which
# means that apt installs them unless told otherwise: PMIx, since it brings libraries for graphics that
# a node without MPI has no use for, and the ssh program, which knows ~/.ssh/config.
function(stage_dependencies depends recommends)
  set(scratch ${CPACK_TEMPORARY_DIRECTORY}/shlibdeps)
  file(MAKE_DIRECTORY ${scratch}/debian)
  file(WRITE ${scratch}/debian/control "Source: hvdrun\n\nPackage: hvdrun\nArchitecture: any\n")
  file(GLOB programs ${usr}/bin/* ${modules}/*)
  list(FILTER programs EXCLUDE REGEX "/hvdrun-pmix\\.so$")
  execute_process(
    COMMAND ${CPACK_HVDRUN_SHLIBDEPS} -O -dDepends ${programs} -dRecommends ${modules}/hvdrun-pmix.so
    WORKING_DIRECTORY ${scratch} OUTPUT_VARIABLE found ERROR_VARIABLE problem RESULT_VARIABLE status)
  file(REMOVE_RECURSE ${scratch})
  if(NOT status EQUAL 0 OR NOT found MATCHES "shlibs:Depends=([^\n]+)")
    message(FATAL_ERROR "package: dpkg-shlibdeps: ${problem}")
  endif()
  set(${depends} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(also openssh-client)
  if(found MATCHES "shlibs:Recommends=([^\n]+)")
    string(PREPEND also "${CMAKE_MATCH_1}, ")
  endif()
  set(${recommends} "${also}" PARENT_SCOPE)
endfunction()

# Libraries that are inside the programs want to be named wherever these go: their terms lie beside
# ours, as their own packages tell them. lintian is told why they are inside.
function(stage_copyright)
  file(COPY_FILE ${CPACK_HVDRUN_SOURCE}/cmake/package_copyright ${doc}/copyright)
  file(MAKE_DIRECTORY ${usr}/share/lintian/overrides)
  file(COPY_FILE ${CPACK_HVDRUN_SOURCE}/cmake/package_overrides ${usr}/share/lintian/overrides/hvdrun)
  foreach(library libevent-dev libprotobuf-c-dev libjansson-dev libinih-dev libyaml-dev)
    if(EXISTS /usr/share/doc/${library}/copyright)
      file(MAKE_DIRECTORY ${doc}/contains)
      file(READ /usr/share/doc/${library}/copyright text)
      file(WRITE ${doc}/contains/${library} "${text}")
    endif()
  endforeach()
endfunction()

function(stage_documents date)
  string(TIMESTAMP when "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH
  file(WRITE ${doc}/changelog "hvdrun (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: CHANGELOG.md beside this file tells what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${when}
")
  stage_run(gzip -9n ${doc}/changelog ${usr}/share/man/man1/hvdrun.1)
  # Debian's zsh looks here for the completions of packages.
  file(MAKE_DIRECTORY ${usr}/share/zsh/vendor-completions)
  file(RENAME ${usr}/share/zsh/site-functions/_hvdrun ${usr}/share/zsh/vendor-completions/_hvdrun)
  file(REMOVE_RECURSE ${usr}/share/zsh/site-functions)
endfunction()

# The bits of the sources' folder can be anything but for who may execute.
function(stage_permissions date)
  stage_run(find ${root} -type d -exec chmod 755 {} +)
  stage_run(find ${root} -type f -perm -u+x -exec chmod 755 {} +)
  stage_run(find ${root} -type f ! -perm -u+x -exec chmod 644 {} +)
  stage_run(find ${root} -depth -exec touch -h -d @${date} {} +)
endfunction()

stage_date(date)
set(ENV{SOURCE_DATE_EPOCH} ${date}) # for cpack's archives, too
stage_strip()
stage_dependencies(CPACK_DEBIAN_PACKAGE_DEPENDS CPACK_DEBIAN_PACKAGE_RECOMMENDS)
stage_copyright()
stage_documents(${date})
stage_permissions(${date})
