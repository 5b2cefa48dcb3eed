# SPDX-License-Identifier: Apache-2.0
# The build makes the man page and the shell completions from the list of options. Include this file
# from the top folder, after add_subdirectory(launcher). The tables of docs/options.md are in the
# repository: after a change of launcher/model/settings/option.def, the target `options_table` writes them
# again. The same holds for launcher/cli/foreign.def, docs/coming-from.md and `coming_from_tables`.

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
foreach(file hvdrun.1 hvdrun.bash _hvdrun hvdrun.fish)
  set(template ${cli_dir}/documents/${file}.in)
  # It writes to another file first, because a half-written file must not look finished.
  add_custom_command(
    OUTPUT ${docgen_dir}/${file}
    COMMAND hvdrun-docgen ${template} > ${docgen_dir}/${file}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${docgen_dir}/${file}.new ${docgen_dir}/${file}
    DEPENDS hvdrun-docgen ${template}
    VERBATIM)
  list(APPEND docgen_files ${docgen_dir}/${file})
endforeach()
add_custom_target(documents ALL DEPENDS ${docgen_files})

# These pages up to the comment that begins with "<!-- Generated" are written by hand.
function(hvdrun_end_of_page target kind page)
  add_custom_target(${target}
    COMMAND sed -i "/^<!-- Generated /,$d" ${PROJECT_SOURCE_DIR}/docs/${page}
    COMMAND hvdrun-docgen ${kind} >> ${PROJECT_SOURCE_DIR}/docs/${page}
    DEPENDS hvdrun-docgen
    VERBATIM)
endfunction()
hvdrun_end_of_page(options_table table options.md)
hvdrun_end_of_page(coming_from_tables coming-from coming-from.md)

install(FILES ${docgen_dir}/hvdrun.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${docgen_dir}/hvdrun.bash RENAME hvdrun
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${docgen_dir}/_hvdrun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${docgen_dir}/hvdrun.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
