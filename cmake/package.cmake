# What `cpack` makes: a .deb and a tar.gz of the program alone, which holds its models and systems, with manual pages and
# completions. The library is for those who build it.

set(CPACK_PACKAGE_NAME headroom)
set(CPACK_PACKAGE_VENDOR "The Headroom authors")
set(CPACK_PACKAGE_CONTACT "The Headroom authors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_STRIP_FILES ON)

set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
string(TOLOWER "${PROJECT_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" package_name)
set(CPACK_PACKAGE_FILE_NAME ${package_name})
set(CPACK_ARCHIVE_FILE_NAME ${package_name})
# Only of the archive: a .deb begins at the root.
file(WRITE ${PROJECT_BINARY_DIR}/package_folder.cmake
  "if(CPACK_GENERATOR STREQUAL TGZ)\n  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)\nendif()\n")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/package_folder.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Will a model fit, which rank breaks first, how fast will it go, and which
 parallel configuration to launch.")
if(NOT HEADROOM_SELF_CONTAINED)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
