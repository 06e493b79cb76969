# Headroom as a part of another project. Variables set here are those of this folder, not of that project.

# That project's tests are not ours, and its readers of warnings need not read ours.
set(BUILD_TESTING OFF)
set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
# A quarter of the time, as toolchain.cmake says.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
