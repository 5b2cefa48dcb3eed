# SPDX-License-Identifier: Apache-2.0
# The build makes the man page and the shell completions from the list of options. Include this file
# from the top folder, after add_subdirectory(launcher). docs/options.md is in the repository: after a
# change of launcher/model/settings/option.def, the target `options_table` writes it again. The same holds
# for launcher/cli/foreign.def, the end of docs/coming-from.md, and the target `coming_from_tables`.

# It contains only a few files of the cli room, so that the documents do not wait for every other room.
set(cli_dir ${PROJECT_SOURCE_DIR}/launcher/cli)
add_executable(hvdrun-docgen
  ${cli_dir}/tools/docgen_main.c ${cli_dir}/docgen.c ${cli_dir}/docgen_man.c
  ${cli_dir}/docgen_shell.c ${cli_dir}/docgen_control.c ${cli_dir}/control_words.c
  ${cli_dir}/foreign.c ${cli_dir}/spelling.c)
target_link_libraries(hvdrun-docgen PRIVATE room_model)

set(docgen_dir ${PROJECT_BINARY_DIR}/generated/docs)
file(MAKE_DIRECTORY ${docgen_dir})
set(docgen_files)
function(hvdrun_document kind file)
  # It writes to another file first, because a half-written file must not look finished.
  add_custom_command(
    OUTPUT ${docgen_dir}/${file}
    COMMAND hvdrun-docgen ${kind} > ${docgen_dir}/${file}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${docgen_dir}/${file}.new ${docgen_dir}/${file}
    DEPENDS hvdrun-docgen
    VERBATIM)
  set(docgen_files ${docgen_files} ${docgen_dir}/${file} PARENT_SCOPE)
endfunction()
hvdrun_document(man hvdrun.1)
hvdrun_document(bash hvdrun.bash)
hvdrun_document(zsh _hvdrun)
hvdrun_document(fish hvdrun.fish)
add_custom_target(documents ALL DEPENDS ${docgen_files})

add_custom_target(options_table
  COMMAND hvdrun-docgen table > ${PROJECT_SOURCE_DIR}/docs/options.md
  DEPENDS hvdrun-docgen
  VERBATIM)

# The page up to the comment that begins with "<!-- Generated" is written by hand.
add_custom_target(coming_from_tables
  COMMAND sed -i "/^<!-- Generated /,$d" ${PROJECT_SOURCE_DIR}/docs/coming-from.md
  COMMAND hvdrun-docgen coming-from >> ${PROJECT_SOURCE_DIR}/docs/coming-from.md
  DEPENDS hvdrun-docgen
  VERBATIM)

install(FILES ${docgen_dir}/hvdrun.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${docgen_dir}/hvdrun.bash RENAME hvdrun
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${docgen_dir}/_hvdrun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${docgen_dir}/hvdrun.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
