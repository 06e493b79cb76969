#include "headroom/core/reading.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "headroom/core/count_text.hpp"
#include "headroom/core/decimal.hpp"

namespace headroom {

std::vector<std::string_view> parts_of(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t end = std::min(list.find(separator, from), list.size());
    parts.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

std::string not_this(std::string_view text) {
  constexpr std::size_t shown = 40;
  return ", not '" + std::string(text.substr(0, shown)) + "'";
}

std::string read_count(std::string_view text, std::int64_t& value, std::int64_t least) {
  const std::optional<std::int64_t> number = count_of(text);
  if (!number) return "must be a whole number" + not_this(text);
  if (*number < least || *number > most_count) {
    return "must be between " + std::to_string(least) + " and " + std::to_string(most_count) + not_this(text);
  }
  value = *number;
  return {};
}

namespace {

constexpr double most_amount = 1e18;

// A number that may end in k, K or M, and whether it does.
struct Suffixed {
  double number = 0;
  bool suffix = false;
};

std::optional<Suffixed> suffixed_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Suffixed result{.number = 0, .suffix = text.back() == 'k' || text.back() == 'K' || text.back() == 'M'};
  const double unit = !result.suffix ? 1 : text.back() == 'M' ? 1024.0 * 1024 : 1024;
  if (result.suffix) text.remove_suffix(1);
  const std::string digits = without_commas(text);
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = decimal_from_chars(digits.data(), last, result.number);
  if (error != std::errc() || end != last || !(result.number > 0)) return std::nullopt;
  result.number *= unit;
  return result;
}

// Returns "4M" of "4M tokens"; nothing if the text does not end in tokens.
std::optional<std::string_view> amount_of_tokens(std::string_view text) {
  for (const std::string_view word : {"tokens", "token", "toks", "tok"}) {
    if (!text.ends_with(word)) continue;
    text.remove_suffix(word.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }
  return std::nullopt;
}

// Returns a whole number as such, any other with two decimals.
std::string plain_text(double number) {
  if (number == std::round(number)) return std::to_string(static_cast<std::int64_t>(number));
  return fmt::format("{:.2f}", number);
}

std::string sequences_text(std::int64_t sequences) {
  return std::to_string(sequences) + (sequences == 1 ? " sequence" : " sequences");
}

std::int64_t nearest_sequences(double tokens, std::int64_t sequence) {
  return std::max<std::int64_t>(1, std::llround(tokens / static_cast<double>(sequence)));
}

}  // namespace

bool is_of_tokens(std::string_view global_batch) { return amount_of_tokens(global_batch).has_value(); }

std::string read_global_batch(std::string_view text, std::int64_t sequence, std::int64_t& value) {
  constexpr double most_tokens = 1e15;  // exact in a double, more than most_count sequences
  const std::optional<std::string_view> of_tokens = amount_of_tokens(text);
  const std::optional<Suffixed> amount = suffixed_of(of_tokens.value_or(text));
  if (!of_tokens && !(amount && amount->suffix)) return read_count(text, value);
  if (!amount || amount->number > most_tokens)
    return "must be a whole number of sequences, or of tokens such as '4M tokens'" + not_this(text);
  if (sequence < 1) return read_count("1", value);  // the model could not be read; its error is reported
  const double tokens = amount->number;
  const std::int64_t sequences = nearest_sequences(tokens, sequence);
  const std::string per_sequence = std::to_string(sequence);
  const bool divides = static_cast<double>(sequences) * static_cast<double>(sequence) == tokens;
  if (!of_tokens) {
    const std::string both = (divides ? "" : "about ") + sequences_text(sequences) + " of " + per_sequence;
    return "may be " + plain_text(tokens) + " sequences or as many tokens (" + both + "): write " +
           (tokens == std::round(tokens) ? plain_text(tokens) + " or " : "") +
           (divides ? "'" + std::string(text) + " tokens'" : std::to_string(sequences)) + not_this(text);
  }
  if (!divides) {
    return "must be a multiple of the sequence of " + per_sequence + " tokens (" + plain_text(tokens) +
           " / " + per_sequence + " = " + plain_text(tokens / static_cast<double>(sequence)) +
           "): the nearest is " + sequences_text(sequences) + ", " + std::to_string(sequences * sequence) +
           " tokens";
  }
  return read_count(std::to_string(sequences), value);
}

std::string read_amount(std::string_view text, double& value) {
  constexpr std::string_view suffixes = "KMBT";
  const std::size_t figures = std::min(text.find_first_not_of("0123456789,"), text.size());
  const std::string plain = without_commas(text.substr(0, figures)) + std::string(text.substr(figures));
  double number = 0;
  const char* const last = plain.data() + plain.size();
  const auto [end, error] = decimal_from_chars(plain.data(), last, number);
  const std::size_t suffix = end + 1 == last ? suffixes.find(*end) : std::string_view::npos;
  const bool read = error == std::errc() && (end == last || suffix != std::string_view::npos);
  if (read && suffix != std::string_view::npos) number *= std::pow(1000.0, static_cast<double>(suffix) + 1);
  if (!read || !(number >= 1 && number <= most_amount))
    return "must be a number from 1 to 1e18, such as 300B or 1.4T" + not_this(text);
  value = number;
  return {};
}

std::string read_number(std::string_view text, double& value, double least) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = decimal_from_chars(text.data(), last, number);
  if (error != std::errc() || end != last || !(number >= least && number <= most_amount))
    return fmt::format("must be a number of at least {}{}", least, not_this(text));
  value = number;
  return {};
}

std::string read_with_unit(std::string_view text, std::span<const Unit> units, std::string_view example,
                           double& value) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = decimal_from_chars(text.data(), last, number);
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (error == std::errc() && unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.text == unit; });
  const double product = error == std::errc() && found != units.end() ? number * found->base_units : 0;
  if (!(product > 0 && product <= most_amount))
    return "must be a positive number such as " + std::string(example) + not_this(text);
  value = product;
  return {};
}

}  // namespace headroom
