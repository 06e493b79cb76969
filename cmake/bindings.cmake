# The C library (bindings/c/headroom.h), which Python's package carries too.

add_library(headroom_c SHARED bindings/c/headroom.cpp)
target_include_directories(headroom_c PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/bindings/c>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(headroom_c PRIVATE headroom_commands headroom_warnings)
# The archives' own symbols stay inside: a process may have other versions of fmt or SQLite.
target_link_options(headroom_c PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(headroom_c PROPERTIES
  CXX_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  VERSION ${PROJECT_VERSION}
  SOVERSION 1)  # HEADROOM_API
