# Compiles data files into the library, so that the program needs no data folder.

# Adds a source whose `function`, declared in `header`, returns the texts of the files: paths below the project, in order.
function(headroom_embed function header)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  set(source ${PROJECT_BINARY_DIR}/${function}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -D "ROOT=${PROJECT_SOURCE_DIR}" -D "FILES=${ARGN}" -D "FUNCTION=${function}"
      -D "HEADER=${header}" -D "OUTPUT=${source}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the texts of ${function}"
    VERBATIM)
  target_sources(headroom PRIVATE ${source})
  # The standard asks compilers for literals of 65,536 characters; GCC and Clang take a file of recipes whole.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
    "$<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-overlength-strings>")
endfunction()

# models/, presets/ (systems, software, releases, recipes, sources, measurements, spreads) and schemas/: any .json file put
# there is embedded by the next build.
file(GLOB embedded_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/models/*.json ${PROJECT_SOURCE_DIR}/presets/systems/*.json
  ${PROJECT_SOURCE_DIR}/presets/software/*.json ${PROJECT_SOURCE_DIR}/presets/sources/*.json
  ${PROJECT_SOURCE_DIR}/presets/releases/*.json ${PROJECT_SOURCE_DIR}/presets/recipes/*.json
  ${PROJECT_SOURCE_DIR}/presets/measurements/*.json ${PROJECT_SOURCE_DIR}/presets/spreads/*.json
  ${PROJECT_SOURCE_DIR}/schemas/*.json)
list(SORT embedded_files COMPARE STRING)  # headroom::embedded_files() promises order
headroom_embed(embedded_files headroom/io/catalog.hpp ${embedded_files})

# The page of a reply, in the order in which its parts stand in the page.
headroom_embed(page_files report/page_files.hpp
  bindings/web/report/page.html bindings/web/vendor/uPlot.min.css bindings/web/report/page.css
  bindings/web/vendor/uPlot.iife.min.js
  bindings/web/report/dom.js bindings/web/report/text.js bindings/web/report/bars.js bindings/web/report/charts.js
  bindings/web/report/schedule.js bindings/web/report/plan.js bindings/web/report/others.js
  bindings/web/report/page.js)

# The documentation, which assistants read (headroom serve).
if(NOT EMSCRIPTEN)
  file(GLOB documentation CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/docs/*.md)
  list(SORT documentation COMPARE STRING)
  headroom_embed(documentation_files headroom/io/documentation.hpp ${documentation})
endif()
