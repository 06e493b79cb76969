# headroom-measure, which times kernels and collectives on NVIDIA GPUs. Nothing of Headroom needs a GPU or CUDA to be
# built or run: where nvcc, cuBLASLt and NCCL are found, AUTO defines the target for whoever asks for it,
#   cmake --build --preset release --target headroom_measure
# since it takes minutes to compile; ON makes it part of every build, and an error where they are missing.

# What needs no CUDA: the design of what is measured, the file, the command line and how ranks find each other. The
# tests link it everywhere.
add_library(headroom_harness STATIC EXCLUDE_FROM_ALL
  src/harness/designed.cpp
  src/harness/device_state.cpp
  src/harness/interrupt.cpp
  src/harness/options.cpp
  src/harness/rendezvous.cpp
  src/harness/report.cpp
)
headroom_unity_by_folder(headroom_harness)
find_package(Threads REQUIRED)
target_link_libraries(headroom_harness
  PUBLIC headroom::headroom Threads::Threads ${CMAKE_DL_LIBS}
  PRIVATE CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json headroom_warnings)

set(HEADROOM_HARNESS AUTO CACHE STRING "Build headroom-measure (CUDA, NCCL): ON, OFF, or AUTO where they are found")
set_property(CACHE HEADROOM_HARNESS PROPERTY STRINGS AUTO ON OFF)
if(HEADROOM_HARNESS STREQUAL OFF)
  return()
endif()

find_program(HEADROOM_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME PATHS /usr/local/cuda/bin PATH_SUFFIXES bin)
find_path(HEADROOM_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda/include)
find_library(HEADROOM_NCCL nccl PATHS /usr/local/cuda/lib64 /usr/local/cuda/lib)
find_library(HEADROOM_CUBLASLT cublasLt PATHS /usr/local/cuda/lib64 /usr/local/cuda/lib)
mark_as_advanced(HEADROOM_NVCC HEADROOM_NCCL_INCLUDE HEADROOM_NCCL HEADROOM_CUBLASLT)
if(NOT (HEADROOM_NVCC AND HEADROOM_NCCL_INCLUDE AND HEADROOM_NCCL AND HEADROOM_CUBLASLT))
  if(HEADROOM_HARNESS STREQUAL ON)
    message(FATAL_ERROR "HEADROOM_HARNESS=ON needs nvcc (${HEADROOM_NVCC}), nccl.h (${HEADROOM_NCCL_INCLUDE}), "
      "NCCL (${HEADROOM_NCCL}) and cuBLASLt (${HEADROOM_CUBLASLT})")
  endif()
  message(STATUS "headroom-measure: not built, no CUDA toolkit with NCCL")
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} ${HEADROOM_NVCC})
endif()
# Ampere, Hopper and Blackwell (which nvcc knows from CUDA 12.8 on); later devices compile the PTX of the last when it is
# first run. Before enable_language(), which has a default of its own.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
  execute_process(COMMAND ${HEADROOM_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  if(known MATCHES "compute_100\n")
    list(APPEND CMAKE_CUDA_ARCHITECTURES 100)
  endif()
endif()
if(HEADROOM_HARNESS STREQUAL AUTO)
  include(CheckLanguage)
  check_language(CUDA)  # a toolkit that does not work here must not keep anyone from building the rest
  if(NOT CMAKE_CUDA_COMPILER)
    return()
  endif()
endif()
enable_language(CUDA)
# nvcc speaks C++20 since CUDA 12; CMake 3.25 does not know it of all compilers that it runs on.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()

add_executable(headroom_measure
  src/harness/collectives.cu
  src/harness/device.cu
  src/harness/elementwise_kernels.cu
  src/harness/filling.cu
  src/harness/kernels.cu
  src/harness/main.cu
  src/harness/matmul.cu
  src/harness/products.cu
  src/harness/row_kernels.cu
  src/harness/timing.cu
  src/harness/world.cu
)
if(NOT HEADROOM_HARNESS STREQUAL ON)
  set_target_properties(headroom_measure PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
# clang-tidy 14, which reads the compile commands, does not know CUDA 13.
set_target_properties(headroom_measure PROPERTIES OUTPUT_NAME headroom-measure CUDA_STANDARD 20 EXPORT_COMPILE_COMMANDS OFF)
target_include_directories(headroom_measure PRIVATE ${HEADROOM_NCCL_INCLUDE})
# nvcc hands pointers to members on in parentheses that -Wparentheses finds unnecessary.
target_compile_options(headroom_measure PRIVATE
  -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Wno-parentheses $<$<BOOL:${CMAKE_COMPILE_WARNING_AS_ERROR}>:-Werror=all-warnings>)
target_link_libraries(headroom_measure PRIVATE headroom_harness ${HEADROOM_CUBLASLT} ${HEADROOM_NCCL})
