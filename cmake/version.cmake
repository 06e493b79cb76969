# What `headroom --version` says. In a file of its own, so that a commit compiles nothing else again.

set(commit_header ${PROJECT_BINARY_DIR}/version/commit.hpp)
add_custom_target(headroom_commit
  COMMAND ${CMAKE_COMMAND} -D "ROOT=${PROJECT_SOURCE_DIR}" -D "OUTPUT=${commit_header}"
    -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${commit_header}
  COMMENT "Looking up the commit"
  VERBATIM)
add_dependencies(headroom_commands headroom_commit)
target_include_directories(headroom_commands PRIVATE ${PROJECT_BINARY_DIR}/version)
set_source_files_properties(src/cli/version.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_DEFINITIONS
    "HEADROOM_VERSION=\"${PROJECT_VERSION}\";HEADROOM_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"")
