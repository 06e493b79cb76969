# How the compiler is called: warnings for our own targets, a compiler cache where there is one.

# An interface of its own, so that it reaches our targets and no one who links the library.
# Whether a warning is an error is the preset's choice (CMAKE_COMPILE_WARNING_AS_ERROR): a newer compiler's
# new warnings must not keep a user from building.
add_library(headroom_warnings INTERFACE)
target_compile_options(headroom_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align -Wcast-qual -Wformat=2 -Wextra-semi -Wimplicit-fallthrough
  # Local: a unity build shares the constants of all files of a folder, and a local name may be that of one of them.
  $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wuseless-cast>
  # Clang counts EXPECTS(!"text") as a mistaken conversion.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-string-conversion>
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

# Where CMAKE_UNITY_BUILD is on, the sources of a folder are compiled as one: a layer's headers are read once, which
# takes a quarter of the time. Names without linkage are then shared by a folder.
function(headroom_unity_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# Adds compiler flags to the layers that read files and write text. They are most of the code and take little of
# the run time. The preset asan does not optimize them: report then takes Clang 37 s of a core in place of 110.
# The preset web optimizes them for size, so that the page stays below what assemble.mjs allows.
set(HEADROOM_TEXT_FLAGS "" CACHE STRING "Compiler flags, separated by semicolons, of the layers that read and write text")
mark_as_advanced(HEADROOM_TEXT_FLAGS)
function(headroom_text_layers target)
  if(NOT HEADROOM_TEXT_FLAGS)
    return()
  endif()
  set(layers "^src/(answer|calibrate|interop|io|report)/")
  get_target_property(sources ${target} SOURCES)
  set(texts ${sources})
  list(FILTER texts INCLUDE REGEX "${layers}")
  list(FILTER sources EXCLUDE REGEX "${layers}")
  add_library(${target}_texts OBJECT ${texts})
  headroom_unity_by_folder(${target}_texts)
  headroom_for_shared_libraries(${target}_texts)
  target_compile_features(${target}_texts PRIVATE cxx_std_20)
  target_compile_options(${target}_texts PRIVATE ${HEADROOM_TEXT_FLAGS})
  target_include_directories(${target}_texts PRIVATE include src)
  target_link_libraries(${target}_texts PRIVATE ${headroom_libraries} headroom_warnings)
  set_property(TARGET ${target} PROPERTY SOURCES ${sources} $<TARGET_OBJECTS:${target}_texts>)
endfunction()

# An archive that a shared library takes, too. Its functions are inlined all the same: nobody puts others in their place.
function(headroom_for_shared_libraries target)
  if(EMSCRIPTEN)
    return()
  endif()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
endfunction()
