#include "cli/sweep_check.hpp"

#include <algorithm>
#include <optional>

#include "headroom/search/given_values.hpp"

namespace headroom::cli {
namespace {

using Arguments = std::vector<std::string>;

bool is_positional(const std::string& argument) { return !argument.starts_with("--"); }

bool gives(const Arguments& arguments, const Field& field) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return field.prefix.empty() ? is_positional(argument) : argument.starts_with(field.prefix);
  });
}

class SweepCheck {
 public:
  explicit SweepCheck(const Sweep& sweep)
      : sweep_(sweep), names_(fields_of(sweep.head.grid)), reader_(sweep.head.kind) {}

  void run() {
    check_presence();
    throw_problems();
    check_values();
    throw_problems();
    check_what_all_share();
    throw_problems();
  }

 private:
  void throw_problems() const {
    if (!problems_.empty()) throw InputError(problems_);
  }

  void add(const Problem& problem) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end())
      problems_.push_back(problem);
  }

  void check_presence() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Field& field = sweep_.fields[i];
      for (std::size_t j = 0; j < i; ++j) {
        if (field == sweep_.fields[j]) add({"--vary " + names_[i], "is the same as " + names_[j]});
      }
      if (!gives(sweep_.head.arguments, field)) continue;
      const std::string given =
          field.prefix.empty() ? "a model" : field.prefix.substr(0, field.prefix.rfind('='));
      add({"--vary " + names_[i], given + " is also given: leave out one of the two"});
    }
    PointFlags flags;
    ArgumentReader reader;
    add_point_flags(reader.command(), sweep_.head.kind, flags);
    for (const Option& option : reader.command().options()) {
      const std::string flag = option.flag();
      const Field needed{.prefix = flag.empty() ? "" : flag + "="};
      const bool varied = std::any_of(sweep_.fields.begin(), sweep_.fields.end(),
                                      [&](const Field& field) { return field.prefix == needed.prefix; });
      if (option.is_required() && !varied && !gives(sweep_.head.arguments, needed)) {
        add({option.name(), "is required: give it or vary it"});
      }
    }
  }

  // What keeps these arguments from being a request; and whether it is legal, where that is asked.
  std::vector<Problem> mistakes(const Arguments& arguments, bool of_legality) {
    try {
      const PointQuestion point = reader_.read(arguments);
      if (!of_legality) return {};
      return point.space ? value_illegalities(point.request, *point.space)
                         : illegalities(point.request, point.request.strategy);
    } catch (const InputError& error) {
      return error.problems();
    }
  }

  // Arguments with the first values of fields that name a model, a system or a stack, which no request can do without,
  // and of a training run, whose flags need each other.
  [[nodiscard]] Arguments with_names(Arguments arguments, std::size_t but) const {
    const std::vector<std::string> first = point_of(sweep_.head.grid, 0);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const FieldKind kind = sweep_.fields[i].kind;
      const bool names = kind == FieldKind::model_name || kind == FieldKind::system_name ||
                         kind == FieldKind::software_name || kind == FieldKind::training;
      if (names && i != but) arguments.push_back(sweep_.fields[i].prefix + first[i]);
    }
    return arguments;
  }

  // Of the mistakes of a value beside what all points have, those that it makes alone too, in the words of this stack and system.
  static std::vector<Problem> told_beside(std::vector<Problem> beside, const std::vector<Problem>& alone) {
    if (beside.empty()) return {};
    std::erase_if(beside, [&](const Problem& problem) {
      return std::none_of(alone.begin(), alone.end(),
                          [&](const Problem& other) { return other.where == problem.where; });
    });
    return beside.empty() ? alone : beside;
  }

  // A value that can be read neither alone nor beside what all points have. The fields of files are left to the rows:
  // which values they may have depends on other fields.
  void check_values() {
    Arguments model;
    std::copy_if(sweep_.head.arguments.begin(), sweep_.head.arguments.end(), std::back_inserter(model),
                 is_positional);
    std::size_t i = 0;
    for (const Axis& axis : sweep_.head.grid.axes) {
      for (std::size_t j = 0; j < axis.fields.size(); ++j, ++i) {
        const std::string& prefix = sweep_.fields[i].prefix;
        if (prefix.starts_with("--set")) continue;
        constexpr std::size_t most_checked = 1000;  // of what comes behind, the rows tell
        for (std::size_t step = 0; step < std::min(most_checked, axis.steps.size()); ++step) {
          const auto mistakes_beside = [&](const Arguments& others) {
            Arguments arguments = with_names(others, i);
            arguments.push_back(prefix + axis.steps[step][j]);
            return mistakes(arguments, false);
          };
          const std::vector<Problem> alone = mistakes_beside(model);
          if (alone.empty()) continue;
          for (const Problem& problem : told_beside(mistakes_beside(sweep_.head.arguments), alone))
            add(problem);
        }
      }
    }
  }

  // Mistakes that do not go away with the first nor with the last value of every field.
  void check_what_all_share() {
    const Grid& grid = sweep_.head.grid;
    std::vector<Problem> shared = mistakes(with_names(sweep_.head.arguments, names_.size()), true);
    for (const std::int64_t point : {std::int64_t{0}, point_count(grid) - 1}) {
      if (shared.empty()) return;
      const std::vector<Problem> here = mistakes(arguments_at(sweep_, point_of(grid, point)), true);
      std::erase_if(shared, [&](const Problem& problem) {
        return std::find(here.begin(), here.end(), problem) == here.end();
      });
    }
    for (const Problem& problem : shared) add(problem);
  }

  const Sweep& sweep_;
  std::vector<std::string> names_;
  PointReader reader_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<std::string> arguments_at(const Sweep& sweep, const std::vector<std::string>& values) {
  Arguments arguments = sweep.head.arguments;
  for (std::size_t i = 0; i < values.size(); ++i) arguments.push_back(sweep.fields[i].prefix + values[i]);
  return arguments;
}

void check_sweep(const Sweep& sweep) { SweepCheck(sweep).run(); }

}  // namespace headroom::cli
