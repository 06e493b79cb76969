// Models, systems, software and published sources as JSON values: what the public readers, writers and reports are made of.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "document.hpp"
#include "headroom/calibrate/published_source.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/io/recipes_file.hpp"
#include "headroom/io/releases_file.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/plan/interval.hpp"

namespace headroom {

// The value that a document describes. Throws InputError with all problems of the document.
Transformer model_of(Document document);
// With values of --set, of which one of `layers` may stand for runs of several kinds.
Transformer model_with(Document document, const std::vector<std::string>& overrides);
System system_of(Document document);
Software software_of(Document document);
PublishedSource source_of(Document document);
StackFamily releases_of(Document document);
std::vector<Recipe> recipes_of(Document document);
Spreads spreads_of(Document document);

// The software file of a release: that of its base, with what the releases changed.
Document document_of(const StackFamily& family, std::size_t place);

// The members of a file, in its order.
nlohmann::ordered_json json_of(const Transformer& model);
nlohmann::ordered_json json_of(const System& system);
nlohmann::ordered_json json_of(const Software& software);
nlohmann::ordered_json json_of(const PublishedSource& source);
nlohmann::ordered_json json_of(const StackFamily& family);

// The JSON schemas of files, of the tables that read them.
nlohmann::ordered_json model_schema();
nlohmann::ordered_json system_schema();
nlohmann::ordered_json software_schema();
nlohmann::ordered_json source_schema();
nlohmann::ordered_json releases_schema();
nlohmann::ordered_json recipes_schema();
nlohmann::ordered_json runs_schema();
nlohmann::ordered_json samples_schema();
nlohmann::ordered_json measurements_schema();
nlohmann::ordered_json spreads_schema();
nlohmann::ordered_json trials_schema();

}  // namespace headroom
