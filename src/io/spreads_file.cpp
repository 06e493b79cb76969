#include "headroom/io/spreads_file.hpp"

#include <utility>

#include "file_formats.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/catalog.hpp"
#include "object_reader.hpp"
#include "schema_writer.hpp"

namespace headroom {
namespace {

constexpr auto spread_fields = [](auto& fields, auto& spread) {
  fields.optional("centre", spread.centre);
  fields.required("logarithm", spread.logarithm);
  fields.optional("slower", spread.slower);
  fields.required("source", spread.source);
};

constexpr auto iteration_spread_fields = [](auto& fields, auto& spreads) {
  fields.required_object("fitted", spreads.fitted, spread_fields);
  fields.required_object("kernels", spreads.kernels, spread_fields);
  fields.required_object("experts", spreads.experts, spread_fields);
  fields.required_object("scaled", spreads.scaled, spread_fields);
};

constexpr auto shared_errors_fields = [](auto& fields, auto& errors) {
  for (const StrategyTrait& trait : strategy_traits) fields.optional(trait.name, errors.*trait.deviation);
  fields.required("own", errors.own);
  fields.required("source", errors.source);
};

constexpr auto spreads_fields = [](auto& fields, auto& spreads) {
  fields.format(1);
  fields.required_object("iteration", spreads, iteration_spread_fields);
  fields.required_object("allocated", spreads.allocated, spread_fields);
  fields.required_object("saved", spreads.saved, spread_fields);
  fields.required_object("shared", spreads.shared, shared_errors_fields);
};

}  // namespace

Spreads spreads_of(Document document) {
  Spreads spreads;
  ObjectReader::read(document, JsonPointer(), spreads, spreads_fields);
  document.finish();
  return spreads;
}

nlohmann::ordered_json spreads_schema() { return SchemaWriter::write(Spreads{}, spreads_fields); }

Spreads parse_spreads(std::string_view text, const std::string& file) {
  return spreads_of(read_document(text, file));
}

const Spreads& embedded_spreads() {
  static const Spreads spreads = [] {  // constant data, parsed once
    const EmbeddedFile* file = find_embedded("spread", "development");
    EXPECTS(file != nullptr);
    return parse_spreads(file->text, std::string(file->path));
  }();
  return spreads;
}

}  // namespace headroom
