# Installs the library with its headers and package file, and the data files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)

install(TARGETS headroom EXPORT headroom-targets FILE_SET HEADERS)
install(EXPORT headroom-targets NAMESPACE headroom:: DESTINATION ${package_folder})

configure_package_config_file(cmake/headroom-config.cmake.in headroom-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(headroom-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headroom-config.cmake ${PROJECT_BINARY_DIR}/headroom-config-version.cmake
  DESTINATION ${package_folder})

install(DIRECTORY models presets DESTINATION ${CMAKE_INSTALL_DATADIR}/headroom)
