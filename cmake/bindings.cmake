include(GNUInstallDirs)

# The HTTP server of `headroom serve`, if the library for it is there. It is loaded when it is asked for.
find_path(HEADROOM_HTTPLIB_INCLUDE httplib.h)
find_library(HEADROOM_HTTPLIB cpp-httplib)
mark_as_advanced(HEADROOM_HTTPLIB_INCLUDE HEADROOM_HTTPLIB)
if(HEADROOM_HTTPLIB_INCLUDE AND HEADROOM_HTTPLIB AND NOT HEADROOM_SELF_CONTAINED)
  add_library(headroom_http MODULE src/cli/http_module.cpp)
  target_include_directories(headroom_http PRIVATE src)
  target_include_directories(headroom_http SYSTEM PRIVATE ${HEADROOM_HTTPLIB_INCLUDE})
  # As the distribution builds the library: its classes are laid out by these.
  target_compile_definitions(headroom_http PRIVATE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT
    CPPHTTPLIB_BROTLI_SUPPORT)
  target_link_libraries(headroom_http PRIVATE ${HEADROOM_HTTPLIB} Threads::Threads headroom_warnings)
  set_target_properties(headroom_http PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  file(RELATIVE_PATH module_from_program "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}/headroom")
  set_source_files_properties(src/cli/serve.cpp PROPERTIES COMPILE_DEFINITIONS
    "HEADROOM_HTTP_MODULES=\"../lib/libheadroom_http.so:${module_from_program}/libheadroom_http.so\"")
  target_link_libraries(headroom_commands PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(headroom_cli headroom_http)
endif()

# The C library (bindings/c/headroom.h), which Python's package carries too.

add_library(headroom_c SHARED bindings/c/headroom.cpp)
target_include_directories(headroom_c PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/bindings/c>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(headroom_c PRIVATE headroom_commands headroom_warnings)
# The archives' own symbols stay inside: a process may have other versions of fmt or SQLite.
target_link_options(headroom_c PRIVATE -Wl,--exclude-libs,ALL)
if(HEADROOM_SELF_CONTAINED)  # the C library alone is the system's, as Python's wheels want it
  target_link_options(headroom_c PRIVATE -static-libstdc++ -static-libgcc)
endif()
set_target_properties(headroom_c PROPERTIES
  CXX_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  VERSION ${PROJECT_VERSION}
  SOVERSION 1)  # HEADROOM_API
