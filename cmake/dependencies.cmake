# The libraries Headroom stands on, from the distribution's packages.

# headroom_require(PACKAGE DEBIAN_PACKAGE [VERSION]): finds PACKAGE, or says what to install.
# A macro, because find_package() sets variables that belong to the caller.
macro(headroom_require package debian_package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR
      "${package} ${ARGN} not found: apt-get install ${debian_package}, or run scripts/setup")
  endif()
endmacro()

find_package(Threads REQUIRED)
headroom_require(fmt libfmt-dev 9.1)
# The distribution has no archive of it to link in.
set(headroom_fmt $<IF:$<BOOL:${HEADROOM_SELF_CONTAINED}>,fmt::fmt-header-only,fmt::fmt>)
headroom_require(nlohmann_json nlohmann-json3-dev 3.11)
set(ZLIB_USE_STATIC_LIBS ${HEADROOM_SELF_CONTAINED})
headroom_require(ZLIB zlib1g-dev 1.2)
# Its module has no switch for the archive.
if(HEADROOM_SELF_CONTAINED)
  find_library(SQLite3_LIBRARY libsqlite3.a)
endif()
headroom_require(SQLite3 libsqlite3-dev 3.36)
headroom_require(yaml-cpp libyaml-cpp-dev 0.7)
# Its configuration names the shared library alone.
set(headroom_yaml yaml-cpp)
if(HEADROOM_SELF_CONTAINED)
  find_library(headroom_yaml_archive libyaml-cpp.a REQUIRED)
  set(headroom_yaml ${headroom_yaml_archive})
endif()
headroom_require(tomlplusplus libtomlplusplus-dev 3.3)
headroom_require(Eigen3 libeigen3-dev 3.4)
set(headroom_libraries ${headroom_fmt} Threads::Threads ZLIB::ZLIB SQLite::SQLite3 ${headroom_yaml}
  $<BUILD_INTERFACE:Eigen3::Eigen> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
if(HEADROOM_BUILD_PROGRAM)
  headroom_require(CLI11 libcli11-dev 2.1)
  set(headroom_cli_libraries CLI11::CLI11 ${headroom_fmt})
endif()
if(BUILD_TESTING)
  headroom_require(doctest doctest-dev 2.4)
  headroom_require(rapidcheck librapidcheck-dev)
  # The distribution's own where there is one: it is that one that python3-jsonschema is installed for.
  if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python3_EXECUTABLE /usr/bin/python3)
  endif()
  headroom_require(Python3 python3 3.9 COMPONENTS Interpreter)
endif()
if(HEADROOM_BUILD_BENCHMARKS)
  headroom_require(benchmark libbenchmark-dev 1.7)
endif()
