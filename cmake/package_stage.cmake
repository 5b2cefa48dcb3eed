# SPDX-License-Identifier: Apache-2.0
# cpack runs this after it has installed everything into a folder, and before it makes the archive. It
# gives the files the form that Debian's policy requires, and finds the dependencies. Equal sources give
# equal bytes, whatever the clock, the umask and the build folder are. rpmbuild does without it.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(usr ${root}/usr)
set(doc ${usr}/share/doc/hvdrun)
set(modules ${usr}/${CPACK_HVDRUN_LIBDIR})
file(GLOB libhvd ${usr}/${CPACK_HVDRUN_LIBHVD}/libhvd.so.*.*.*) # none: the build does not have it yet
file(GLOB engines ${usr}/${CPACK_HVDRUN_LIBHVD}/hvd/*.so)

function(stage_run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status ERROR_VARIABLE problem OUTPUT_QUIET)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "package: ${ARGN}: ${problem}")
  endif()
endfunction()

# The date of the sources: from the environment, else of the last commit, else of CHANGELOG.md.
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

# Removes symbol names and line numbers, which only debuggers need. The build folder keeps them.
function(stage_strip)
  if(CPACK_HVDRUN_STRIP AND NOT CPACK_HVDRUN_SANITIZE)
    file(GLOB programs LIST_DIRECTORIES false ${usr}/bin/* ${modules}/*)
    stage_run(${CPACK_HVDRUN_STRIP} --strip-unneeded --remove-section=.comment --remove-section=.note
      ${programs} ${libhvd} ${engines})
    if(libhvd)
      stage_run(${CPACK_HVDRUN_STRIP} --strip-debug --enable-deterministic-archives
        ${usr}/${CPACK_HVDRUN_LIBHVD}/libhvd.a)
    endif()
  endif()
  file(GLOB shared ${modules}/*.so)
  file(CHMOD ${shared} ${libhvd} ${engines} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

# The packages that programs and modules link with. PMIx, libdw and the ssh program are only recommended: apt
# installs them by default, but you can leave them out. PMIx brings graphics libraries that a node
# without MPI does not need. The ssh program reads ~/.ssh/config. The libraries of libhvd's engines are
# suggested: a job needs at most one of them, and a host that only launches jobs needs none.
function(stage_dependencies depends recommends suggests)
  set(scratch ${CPACK_TEMPORARY_DIRECTORY}/shlibdeps)
  file(MAKE_DIRECTORY ${scratch}/debian)
  file(WRITE ${scratch}/debian/control "Source: hvdrun\n\nPackage: hvdrun\nArchitecture: any\n")
  file(GLOB programs LIST_DIRECTORIES false ${usr}/bin/* ${modules}/*)
  list(FILTER programs EXCLUDE REGEX "/hvdrun-(pmix|unwind)\\.so$")
  execute_process(
    COMMAND ${CPACK_HVDRUN_SHLIBDEPS} -O -dDepends ${programs} ${libhvd} -dRecommends ${modules}/hvdrun-pmix.so ${modules}/hvdrun-unwind.so
      -dSuggests ${engines}
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
  if(found MATCHES "shlibs:Suggests=([^\n]+)")
    set(${suggests} "${CMAKE_MATCH_1}, ${${suggests}}" PARENT_SCOPE)
  endif()
endfunction()

# An override tells lintian why libraries are linked statically.
function(stage_copyright)
  file(REMOVE ${doc}/LICENSE) # Debian has that text already
  file(COPY_FILE ${CPACK_HVDRUN_SOURCE}/cmake/package_copyright ${doc}/copyright)
  file(MAKE_DIRECTORY ${usr}/share/lintian/overrides)
  file(COPY_FILE ${CPACK_HVDRUN_SOURCE}/cmake/package_overrides ${usr}/share/lintian/overrides/hvdrun)
endfunction()

function(stage_documents date)
  string(TIMESTAMP when "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH
  file(WRITE ${doc}/changelog "hvdrun (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: see CHANGELOG.md in this folder.

 -- ${CPACK_PACKAGE_CONTACT}  ${when}
")
  file(GLOB manual ${usr}/share/man/man*/*)
  stage_run(gzip -9n ${doc}/changelog ${manual})
  # Debian's zsh looks here for the completions of packages.
  file(MAKE_DIRECTORY ${usr}/share/zsh/vendor-completions)
  file(RENAME ${usr}/share/zsh/site-functions/_hvdrun ${usr}/share/zsh/vendor-completions/_hvdrun)
  file(REMOVE_RECURSE ${usr}/share/zsh/site-functions)
endfunction()

# Of the permissions in the source folder, only the execute bit matters.
function(stage_permissions date)
  stage_run(find ${root} -type d -exec chmod 755 {} +)
  stage_run(find ${root} -type f -perm -u+x -exec chmod 755 {} +)
  stage_run(find ${root} -type f ! -perm -u+x -exec chmod 644 {} +)
  stage_run(find ${root} -depth -exec touch -h -d @${date} {} +)
endfunction()

stage_date(date)
set(ENV{SOURCE_DATE_EPOCH} ${date}) # for cpack's archives, too
stage_strip()
stage_dependencies(CPACK_DEBIAN_PACKAGE_DEPENDS CPACK_DEBIAN_PACKAGE_RECOMMENDS CPACK_DEBIAN_PACKAGE_SUGGESTS)
stage_copyright()
stage_documents(${date})
stage_permissions(${date})
