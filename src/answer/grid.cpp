#include "headroom/answer/grid.hpp"

#include <algorithm>

#include "headroom/answer/values.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

struct VariedField {
  std::string name;
  std::vector<std::string> values;
  bool taken = false;  // by an axis
};

VariedField* find(std::vector<VariedField>& fields, const std::string& name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const VariedField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<VariedField> read_fields(const std::vector<std::string>& varied, std::vector<Problem>& problems) {
  std::vector<VariedField> fields;
  for (const std::string& text : varied) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || name.empty()) {
      problems.push_back(
          {"vary", "must be FIELD=VALUES, such as sequence=1024:65536:x2, not '" + text.substr(0, 60) + "'"});
    } else if (find(fields, name) != nullptr) {
      problems.push_back({"vary " + name, "is given twice"});
    } else {
      fields.push_back({.name = name, .values = {}});
      try {
        // Which may be of tokens: what reads the field counts them.
        const StrategyField* const field = find_field(name);
        const bool batch = field != nullptr && field->name == "global_batch";
        fields.back().values =
            values_of("vary " + name, text.substr(equals + 1), batch ? Suffixes::kept : Suffixes::counted);
      } catch (const InputError& error) {
        problems.insert(problems.end(), error.problems().begin(), error.problems().end());
      }
    }
  }
  return fields;
}

// The fields that one --zip names; none where it breaks a rule.
std::vector<VariedField*> read_zip(const std::string& text, std::vector<VariedField>& fields,
                                   std::vector<Problem>& problems) {
  const std::string where = "zip " + text;
  std::vector<std::string_view> known;
  known.reserve(fields.size());
  for (const VariedField& field : fields) known.push_back(field.name);
  std::vector<VariedField*> zip;
  for (const std::string& name : split(text, ',')) {
    VariedField* const field = find(fields, name);
    if (field == nullptr) {
      problems.push_back(
          {where, "must name fields that are varied, not '" + name + "'" + did_you_mean(name, known)});
      return {};
    }
    if (field->taken) {
      problems.push_back({where, "names " + name + " again"});
      return {};
    }
    field->taken = true;
    zip.push_back(field);
    if (field->values.size() != zip.front()->values.size() && problems.empty()) {
      problems.push_back({where, "must name fields with as many values as each other: " + zip.front()->name +
                                     " has " + std::to_string(zip.front()->values.size()) + ", " + name +
                                     " has " + std::to_string(field->values.size())});
      return {};
    }
  }
  return zip;
}

Axis axis_of(const std::vector<VariedField*>& together) {
  Axis axis;
  axis.steps.resize(together.front()->values.size());
  for (VariedField* const field : together) {
    axis.fields.push_back(field->name);
    for (std::size_t i = 0; i < axis.steps.size(); ++i) axis.steps[i].push_back(std::move(field->values[i]));
  }
  return axis;
}

}  // namespace

Grid read_grid(const std::vector<std::string>& varied, const std::vector<std::string>& zipped) {
  std::vector<Problem> problems;
  std::vector<VariedField> fields = read_fields(varied, problems);
  std::vector<std::vector<VariedField*>> zips;
  zips.reserve(zipped.size());
  for (const std::string& text : zipped) zips.push_back(read_zip(text, fields, problems));
  if (!problems.empty()) throw InputError(std::move(problems));

  Grid grid;
  for (VariedField& field : fields) {
    if (!field.taken) {
      grid.axes.push_back(axis_of({&field}));
      continue;
    }
    for (const std::vector<VariedField*>& zip : zips) {
      const bool first = std::all_of(zip.begin(), zip.end(), [&](auto* other) { return other >= &field; });
      const bool here = std::find(zip.begin(), zip.end(), &field) != zip.end();
      if (first && here) grid.axes.push_back(axis_of(zip));
    }
  }
  std::int64_t points = 1;
  for (const Axis& axis : grid.axes) {
    const auto steps = static_cast<std::int64_t>(axis.steps.size());
    if (points > most_points / steps) {
      throw InputError("vary", "must make at most " + std::to_string(most_points) + " points");
    }
    points *= steps;
  }
  return grid;
}

std::vector<std::string> fields_of(const Grid& grid) {
  std::vector<std::string> fields;
  for (const Axis& axis : grid.axes) fields.insert(fields.end(), axis.fields.begin(), axis.fields.end());
  return fields;
}

std::int64_t point_count(const Grid& grid) {
  std::int64_t points = 1;
  for (const Axis& axis : grid.axes) points *= static_cast<std::int64_t>(axis.steps.size());
  return points;
}

std::vector<std::string> point_of(const Grid& grid, std::int64_t index) {
  EXPECTS(0 <= index && index < point_count(grid));
  std::vector<const std::vector<std::string>*> steps;
  for (auto axis = grid.axes.rbegin(); axis != grid.axes.rend(); ++axis) {
    const auto count = static_cast<std::int64_t>(axis->steps.size());
    steps.push_back(&axis->steps[static_cast<std::size_t>(index % count)]);
    index /= count;
  }
  std::vector<std::string> values;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    values.insert(values.end(), (*step)->begin(), (*step)->end());
  }
  return values;
}

}  // namespace headroom
