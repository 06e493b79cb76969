# Compiles models/, presets/ (systems, software, releases, recipes, sources, measurements, spreads) and schemas/ into the library, so that the program needs no data folder.
# Any .json file put there is embedded by the next build.

file(GLOB embedded_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/models/*.json ${PROJECT_SOURCE_DIR}/presets/systems/*.json
  ${PROJECT_SOURCE_DIR}/presets/software/*.json ${PROJECT_SOURCE_DIR}/presets/sources/*.json
  ${PROJECT_SOURCE_DIR}/presets/releases/*.json ${PROJECT_SOURCE_DIR}/presets/recipes/*.json
  ${PROJECT_SOURCE_DIR}/presets/measurements/*.json ${PROJECT_SOURCE_DIR}/presets/spreads/*.json
  ${PROJECT_SOURCE_DIR}/schemas/*.json)
list(SORT embedded_files COMPARE STRING)  # headroom::embedded_files() promises order
list(TRANSFORM embedded_files PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE embedded_paths)

set(embedded_source ${PROJECT_BINARY_DIR}/embedded.cpp)
add_custom_command(OUTPUT ${embedded_source}
  COMMAND ${CMAKE_COMMAND} -D "ROOT=${PROJECT_SOURCE_DIR}" -D "FILES=${embedded_files}"
    -D "OUTPUT=${embedded_source}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${embedded_paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding models, presets and schemas"
  VERBATIM)
target_sources(headroom PRIVATE ${embedded_source})
# The standard asks compilers for literals of 65,536 characters; GCC and Clang take a file of recipes whole.
set_source_files_properties(${embedded_source} PROPERTIES COMPILE_OPTIONS
  "$<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-overlength-strings>")
