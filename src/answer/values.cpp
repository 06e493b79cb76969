#include "headroom/answer/values.hpp"

#include <algorithm>
#include <optional>

#include "headroom/core/count_text.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/reading.hpp"

namespace headroom {
namespace {

// digits / 10^scale. Both are exact in a double as long as they have at most 15 digits, so that quotients compare right.
struct Decimal {
  std::int64_t digits = 0;
  int scale = 0;
};

constexpr int most_digits = 15;
constexpr std::int64_t digits_end = 1'000'000'000'000'000;

double value_of(const Decimal& decimal) {
  double power = 1;
  for (int i = 0; i < decimal.scale; ++i) power *= 10;
  return static_cast<double>(decimal.digits) / power;
}

// None where there are too many digits.
std::optional<Decimal> product(const Decimal& x, const Decimal& y) {
  if (y.digits != 0 && x.digits >= digits_end * 1000 / y.digits) return std::nullopt;
  Decimal result{.digits = x.digits * y.digits, .scale = x.scale + y.scale};
  for (; result.scale > 0 && result.digits % 10 == 0; --result.scale) result.digits /= 10;
  return result.digits < digits_end && result.scale <= most_digits ? std::optional(result) : std::nullopt;
}

std::optional<Decimal> rescaled(Decimal decimal, int scale) {
  for (; decimal.scale < scale; ++decimal.scale) {
    decimal.digits *= 10;
    if (decimal.digits >= digits_end) return std::nullopt;
  }
  return decimal;
}

std::string text_of(const Decimal& decimal) {
  std::string text = std::to_string(decimal.digits);
  if (decimal.scale == 0) return text;
  const auto scale = static_cast<std::size_t>(decimal.scale);
  if (text.size() <= scale) text.insert(0, scale + 1 - text.size(), '0');
  text.insert(text.size() - scale, ".");
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// A number and what stands behind it: "40 GiB".
struct Quantity {
  Decimal number;
  std::string unit;  // with the space before it
};

std::optional<Quantity> quantity_of(std::string_view text) {
  Quantity quantity;
  int digits = 0;
  bool point = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
    } else if ('0' <= text[i] && text[i] <= '9') {
      quantity.number.digits = 10 * quantity.number.digits + (text[i] - '0');
      if (quantity.number.digits >= digits_end) return std::nullopt;
      if (point) ++quantity.number.scale;
      if (++digits > most_digits) return std::nullopt;
    } else {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  quantity.unit = text.substr(i);
  return quantity;
}

class ValueRange {
 public:
  ValueRange(std::string where, std::string text) : where_(std::move(where)), text_(std::move(text)) {}

  void append_to(std::vector<std::string>& values) const {
    const std::vector<std::string> parts = split(text_, ':');
    if (parts.size() != 3) refuse("must be FIRST:LAST:STEP or FIRST:LAST:xFACTOR");
    const bool geometric = parts[2].starts_with('x');
    const Quantity first = read(parts[0]);
    const Quantity last = read(parts[1]);
    const Quantity step = read(parts[2].substr(geometric ? 1 : 0));
    if (first.unit != last.unit || (!step.unit.empty() && (geometric || step.unit != first.unit))) {
      refuse(geometric ? "must have the same unit at both ends, and a factor without one"
                       : "must have the same unit in all parts");
    }
    if (value_of(first.number) > value_of(last.number)) refuse("must not end below its start");
    const std::vector<Decimal> numbers = geometric ? geometric_numbers(first.number, last.number, step.number)
                                                   : even_numbers(first.number, last.number, step.number);
    for (const Decimal& number : numbers) values.push_back(text_of(number) + first.unit);
  }

 private:
  [[noreturn]] void refuse(const std::string& rule) const {
    throw InputError(where_, "the range " + rule + ", not '" + text_.substr(0, 60) + "'");
  }

  [[nodiscard]] Quantity read(const std::string& text) const {
    const std::optional<Quantity> quantity = quantity_of(text);
    if (!quantity) refuse("must consist of numbers above zero with up to 15 digits");
    return *quantity;
  }

  [[nodiscard]] std::vector<Decimal> even_numbers(const Decimal& first, const Decimal& last,
                                                  const Decimal& step) const {
    const int scale = std::max({first.scale, last.scale, step.scale});
    const std::optional<Decimal> from = rescaled(first, scale);
    const std::optional<Decimal> to = rescaled(last, scale);
    const std::optional<Decimal> by = rescaled(step, scale);
    if (!from || !to || !by) refuse("must consist of numbers above zero with up to 15 digits");
    if (by->digits == 0) refuse("must have a step above zero");
    const std::int64_t steps = (to->digits - from->digits) / by->digits;
    if (steps >= most_values) refuse("must have at most " + std::to_string(most_values) + " values");
    std::vector<Decimal> numbers;
    for (std::int64_t i = 0; i <= steps; ++i) {
      numbers.push_back({.digits = from->digits + i * by->digits, .scale = scale});
    }
    return numbers;
  }

  [[nodiscard]] std::vector<Decimal> geometric_numbers(const Decimal& first, const Decimal& last,
                                                       const Decimal& factor) const {
    if (first.digits == 0) refuse("must start above zero to grow by a factor");
    if (value_of(factor) <= 1) refuse("must have a factor above one");
    std::vector<Decimal> numbers;
    for (std::optional<Decimal> number = first;; number = product(*number, factor)) {
      if (!number) refuse("must not take more than 15 digits on its way");
      if (value_of(*number) > value_of(last)) return numbers;
      numbers.push_back(*number);
    }
  }

  std::string where_;
  std::string text_;
};

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  const std::vector<std::string_view> parts = parts_of(text, separator);
  return {parts.begin(), parts.end()};
}

std::vector<std::string> values_of(const std::string& where, std::string_view text, Suffixes suffixes) {
  std::vector<std::string> values;
  for (const std::string& part : split(text, text.find(';') == std::string_view::npos ? ',' : ';')) {
    if (part.find_first_not_of(' ') == std::string::npos) throw InputError(where, "has an empty value");
    if (part.find(':') == std::string::npos) {
      values.push_back(part);
    } else {
      ValueRange(where, part).append_to(values);
    }
    if (static_cast<std::int64_t>(values.size()) > most_values) {
      throw InputError(where, "must have at most " + std::to_string(most_values) + " values");
    }
  }
  for (std::string& value : values) {  // "8k" and "1,000,000" are shown as what they are
    if (value.find_first_of("kKM,") == std::string::npos) continue;
    if (suffixes == Suffixes::kept && value.find_first_of("kKM") != std::string::npos) continue;
    if (const std::optional<std::int64_t> count = count_of(value)) value = std::to_string(*count);
  }
  return values;
}

}  // namespace headroom
