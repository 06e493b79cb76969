# Installs the program, with what it writes of itself.

include(GNUInstallDirs)
install(TARGETS headroom_cli COMPONENT program)
if(TARGET headroom_http)
  install(TARGETS headroom_http LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/headroom COMPONENT program)
endif()
install(TARGETS headroom_c EXPORT headroom-targets)
install(FILES bindings/c/headroom.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/headroom.pc.in headroom.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/headroom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Manual pages, completions and schemas, which the program itself writes from its flags and tables.
if(NOT CMAKE_CROSSCOMPILING)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${manual}/written
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/man1 ${manual}/completions ${manual}/schemas
    COMMAND headroom_cli man --all ${manual}/man1
    COMMAND headroom_cli completions bash -o ${manual}/completions/headroom
    COMMAND headroom_cli completions zsh -o ${manual}/completions/_headroom
    COMMAND headroom_cli completions fish -o ${manual}/completions/headroom.fish
    COMMAND headroom_cli schema --all ${manual}/schemas
    COMMAND ${CMAKE_COMMAND} -E touch ${manual}/written
    DEPENDS headroom_cli
    COMMENT "Writing manual pages, completions and schemas"
    VERBATIM)
  add_custom_target(headroom_manual ALL DEPENDS ${manual}/written)
  install(DIRECTORY ${manual}/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/headroom)
  install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  install(FILES ${manual}/completions/headroom
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
  install(FILES ${manual}/completions/_headroom
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
  install(FILES ${manual}/completions/headroom.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
