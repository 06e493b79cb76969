# How the compiler is called: warnings for our own targets, a compiler cache where there is one.

# An interface of its own, so that it reaches our targets and no one who links the library.
# Whether a warning is an error is the preset's choice (CMAKE_COMPILE_WARNING_AS_ERROR): a newer compiler's
# new warnings must not keep a user from building.
add_library(headroom_warnings INTERFACE)
target_compile_options(headroom_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align -Wcast-qual -Wformat=2 -Wextra-semi -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wuseless-cast>
  # Records are built with designated initializers, which leave the other fields to their defaults.
  -Wno-missing-field-initializers
  # GCC 12 sees an overlap in "literal" + std::string() that is not there (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)

find_program(HEADROOM_CCACHE ccache)
mark_as_advanced(HEADROOM_CCACHE)
if(HEADROOM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HEADROOM_CCACHE})
endif()

# Binaries in one place: build/<preset>/bin/headroom.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
