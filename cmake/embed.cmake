# Run by the build: writes OUTPUT, a C++ file whose FUNCTION, of HEADER, returns the text of each of FILES (paths below
# ROOT).

set(delimiter embedded)
list(LENGTH FILES count)
set(entries "")
foreach(path IN LISTS FILES)
  file(READ "${ROOT}/${path}" text)
  string(FIND "${text}" ")${delimiter}\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${path}: holds )${delimiter}\", which ends the C++ literal it is embedded in")
  endif()
  string(APPEND entries "    EmbeddedFile{\"${path}\", R\"${delimiter}(${text})${delimiter}\"sv},\n")
endforeach()

file(WRITE "${OUTPUT}" "// Written by cmake/embed.cmake.
#include <array>
#include <string_view>

#include \"${HEADER}\"

namespace headroom {
namespace {

// With its length in the literal: a compiler gives up on counting half a million characters in a constant expression.
using namespace std::string_view_literals;

constexpr std::array<EmbeddedFile, ${count}> files{{
${entries}}};

}  // namespace

std::span<const EmbeddedFile> ${FUNCTION}() { return files; }

}  // namespace headroom
")
