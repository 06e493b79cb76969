// One JSON file on its way to becoming a value: its contents, the flags laid over them, and all that is
// wrong with either.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strict_json.hpp"

namespace headroom {

struct Document {
  std::string file;  // as the user named it, or its name inside the binary
  Json root;
  std::map<std::string, std::string> overridden;  // JSON pointer -> "set hidden", which wrote that field
  std::vector<std::string> overrides;             // "set hidden=8192"
  // Of a file that was translated: the end of a JSON pointer -> the pointer in the file as it was.
  std::map<std::string, std::string> origins;
  std::vector<Problem> problems;

  // Notes a mistake at a field, naming the flag when that is where its value came from, and where the file itself has it.
  void report(const JsonPointer& field, std::string rule);
  // Throws InputError if anything was noted.
  void finish() const;
};

// Throws InputError when the text is not JSON or has a list of more than `longest` entries.
Document read_document(std::string_view text, std::string file, std::size_t longest = longest_list);

// Lays "kernels.attention=flash", a value of `flag`, over the document, before it is checked. A value that reads as a
// JSON number or boolean is one, any other is a string. Notes what is not KEY=VALUE, and what is set twice.
void apply_overrides(Document& document, const std::vector<std::string>& overrides, std::string_view flag);

// Puts the members of the embedded file that "base" names, if the document has one, where the document has none. Notes
// a base that is not known, and a document that gives no source of its own.
void lay_over_base(Document& document, std::string_view kind);

// "; set hidden=8192" for each override, so that a changed model does not pass for the published one.
std::string described_overrides(const Document& document);

// The dotted names of a file's values that describe no other value: all but format, origins and sources, and lists.
std::vector<std::string> value_names(const nlohmann::ordered_json& file);

// The name of what a file describes: "gpt3-175b" of "models/gpt3-175b.json".
std::string stem_of(const std::string& file);

// The rule that a name breaks which means neither a file nor one embedded file, with the nearest; else empty.
std::string names_nothing(const std::string& source, std::string_view kind);

// The document that a user means by a file or by a name that meaning_of() knows; a file wins. `kind` is "model", "system" or
// "software". Throws InputError when there is neither, naming the nearest.
Document open_document(const std::string& source, std::string_view kind);

// Whether open_document() reads it from a file.
bool is_file(const std::string& source, std::string_view kind);

// "h100 is read as dgx-h100-80g" where open_document() reads a name as another; else empty.
std::string how_read(const std::string& source, std::string_view kind);

}  // namespace headroom
