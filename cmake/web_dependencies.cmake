# The libraries of the program in a browser: those of cmake/dependencies.cmake that are headers alone. What the others read
# is refused (src/interop/launch_in/without_libraries.cpp).

# The folders of the distribution's packages, each by itself: beside them lie the headers of this machine's C library.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(entry IN ITEMS
    "fmt libfmt-dev" "nlohmann nlohmann-json3-dev" "toml++ libtomlplusplus-dev" "eigen3/Eigen libeigen3-dev" "CLI libcli11-dev")
  separate_arguments(entry)
  list(GET entry 0 folder)
  list(GET entry 1 package)
  if(NOT EXISTS /usr/include/${folder})
    message(FATAL_ERROR "/usr/include/${folder} not found: apt-get install ${package}, or run scripts/setup")
  endif()
  get_filename_component(name ${folder} NAME)
  file(CREATE_LINK /usr/include/${folder} ${headers}/${name} SYMBOLIC)
endforeach()

add_library(headroom_headers INTERFACE)
target_include_directories(headroom_headers SYSTEM INTERFACE ${headers})
target_compile_definitions(headroom_headers INTERFACE FMT_HEADER_ONLY)
set(headroom_libraries $<BUILD_INTERFACE:headroom_headers>)
set(headroom_cli_libraries headroom_headers)

# Leaves out the sources that read with a library that is not here.
function(headroom_without_libraries)
  get_target_property(sources headroom SOURCES)
  list(REMOVE_ITEM sources src/interop/launch_in/tree_yaml.cpp src/interop/byte_source.cpp src/interop/sqlite_rows.cpp)
  list(APPEND sources src/interop/launch_in/without_libraries.cpp)
  set_target_properties(headroom PROPERTIES SOURCES "${sources}")
endfunction()
