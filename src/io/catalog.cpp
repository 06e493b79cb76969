#include "headroom/io/catalog.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <string>

#include "catalog_names.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"

namespace headroom {
namespace {

// "gpt3-175b" of "models/gpt3-175b.json" when the kind is "model", else empty.
std::string_view name_in(std::string_view path, std::string_view kind) {
  const auto drop_suffix = [&path](std::string_view suffix) {
    if (!path.ends_with(suffix)) return false;
    path.remove_suffix(suffix.size());
    return true;
  };
  if (!drop_suffix(".json")) return {};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!drop_suffix(name) || !drop_suffix("/")) return {};
  drop_suffix("s");
  if (!drop_suffix(kind)) return {};
  return path.empty() || path.ends_with('/') ? name : std::string_view();
}

using Words = std::vector<std::string>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(const std::string& word) { return is_digit(word.front()); }

// Runs of letters, in lower case, and numbers: gpt, 3, 175, b of "GPT-3-175B" as of "gpt3-175b".
Words words_in(std::string_view name) {
  Words words;
  char last = ' ';
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool in_number = is_digit(last) || last == '.';
    const bool point = c == '.' && is_digit(last) && i + 1 < name.size() && is_digit(name[i + 1]);
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (letter || is_digit(c) || point) {
      const bool goes_on = letter ? std::isalpha(static_cast<unsigned char>(last)) != 0 : in_number;
      if (!goes_on) words.emplace_back();
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    last = letter || is_digit(c) || point ? c : ' ';
  }
  return words;
}

// Without words that change nothing: makers of GPUs before one, what tells a tuned checkpoint apart behind a model.
Words meaning_words(std::string_view kind, std::string_view name) {
  Words words = words_in(name);
  if (kind == "system") {
    constexpr std::array<std::string_view, 4> makers{"nvidia", "amd", "tesla", "instinct"};
    while (!words.empty() && contains(makers, std::string_view(words.front()))) words.erase(words.begin());
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "gb" && is_number(words[i - 1])) words[i] = "g";
    }
  }
  if (kind == "model") {
    // Dates of later checkpoints of the same layers among them.
    constexpr std::array<std::string_view, 10> checkpoints{"hf",   "it",       "pt",   "base", "instruct",
                                                           "chat", "thinking", "0324", "0528", "0905"};
    const auto is_month = [](const std::string& word) {
      return word.size() == 4 && is_number(word) && word.starts_with('2');
    };
    while (!words.empty() &&
           (contains(checkpoints, std::string_view(words.back())) || is_month(words.back())))
      words.pop_back();
  }
  return words;
}

// "meta-llama" and "Llama-3.1-70B" of "meta-llama/Llama-3.1-70B"; without an owner where there is not one slash.
struct OwnedName {
  std::string_view owner;
  std::string_view name;
};

OwnedName owned(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || text.find('/', slash + 1) != std::string_view::npos)
    return {.owner = {}, .name = text};
  return {.owner = text.substr(0, slash), .name = text.substr(slash + 1)};
}

bool same_owner(std::string_view x, std::string_view y) { return words_in(x) == words_in(y); }

// Whether the hub has the model of ours under the owner.
bool publishes(std::string_view owner, std::string_view ours) {
  return std::any_of(catalog_names.begin(), catalog_names.end(), [&](const CatalogName& row) {
    return row.ours == ours && same_owner(owned(row.theirs).owner, owner);
  });
}

// "torchtitan-2025" of torchtitan.
std::string_view newest_release(std::string_view kind, const Words& words) {
  constexpr std::size_t digits_of_year = 4;
  std::string_view newest;
  std::string year;
  for (const std::string_view name : embedded_names(kind)) {
    Words of_name = words_in(name);
    const std::string last = of_name.back();
    of_name.pop_back();
    const bool dated = last.size() == digits_of_year && last.starts_with("20");
    if (!dated || of_name != words || last <= year) continue;
    newest = name;
    year = last;
  }
  return newest;
}

// Whether a name has the words, in their order, maybe with others between them.
bool has_words(const Words& name, const Words& words) {
  auto next = words.begin();
  for (const std::string& word : name) {
    if (next != words.end() && *next == word) ++next;
  }
  return next == words.end();
}

Words numbers_in(const Words& words) {
  Words numbers;
  std::copy_if(words.begin(), words.end(), std::back_inserter(numbers), is_number);
  return numbers;
}

Words without_numbers(Words words) {
  std::erase_if(words, is_number);
  return words;
}

// "llama", "3" of llama-3-70b.
Words family_of(const Words& words) {
  const auto number = std::find_if(words.begin(), words.end(), is_number);
  return {words.begin(), number == words.end() ? number : number + 1};
}

}  // namespace

std::vector<std::string_view> embedded_names(std::string_view kind) {
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (const std::string_view name = name_in(file.path, kind); !name.empty()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

const EmbeddedFile* find_embedded(std::string_view kind, std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!name.empty() && name_in(file.path, kind) == name) return &file;
  }
  return nullptr;
}

NameMeaning meaning_of(std::string_view kind, std::string_view name) {
  if (const EmbeddedFile* const file = find_embedded(kind, name))
    return {.names = {name_in(file->path, kind)}, .because = {}};
  const OwnedName given = owned(name);
  const Words words = meaning_words(kind, given.name);
  NameMeaning meaning;
  const bool path = name.find('/') != std::string_view::npos && words_in(given.owner).empty();
  if (words.empty() || path) return meaning;
  const auto is_meant = [&](std::string_view theirs, std::string_view ours) {
    const OwnedName known = owned(theirs);
    if (meaning_words(kind, known.name) != words) return false;
    return given.owner.empty() || same_owner(given.owner, known.owner) || publishes(given.owner, ours);
  };
  for (const std::string_view ours : embedded_names(kind)) {
    if (is_meant(ours, ours)) return {.names = {ours}, .because = {}};
  }
  for (const CatalogName& row : catalog_names) {
    if (row.kind != kind || contains(meaning.names, row.ours) || !is_meant(row.theirs, row.ours)) continue;
    meaning.names.push_back(row.ours);
    meaning.because = row.because;
  }
  if (!meaning.names.empty()) return meaning;
  if (const std::string_view newest = newest_release(kind, words); !newest.empty() && given.owner.empty())
    return {.names = {newest}, .because = "the newest of its releases"};
  return meaning;
}

std::vector<std::string_view> names_near(std::string_view kind, std::string_view name) {
  constexpr std::size_t least_part = 3;   // letters: shorter ones are parts of too much
  constexpr std::size_t long_enough = 8;  // letters: of which two may be wrong, numbers among them
  std::string word(owned(name).name);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const Words words = meaning_words(kind, word);
  const std::vector<std::string_view> names = embedded_names(kind);
  const auto those = [&](const auto& near) {
    std::vector<std::string_view> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found), near);
    return found;
  };
  if (words.empty()) return {};
  std::vector<std::string_view> found = those([&](std::string_view other) {
    return word.size() >= least_part && (other.starts_with(word) || has_words(words_in(other), words));
  });
  if (!found.empty()) return found;
  const std::vector<std::string_view> same_numbers =
      those([&](std::string_view other) { return numbers_in(words_in(other)) == numbers_in(words); });
  if (const std::string_view alike = nearest(word, same_numbers); !alike.empty()) return {alike};
  const Words family = family_of(words);
  found = those([&](std::string_view other) {
    return is_number(family.back()) && family_of(words_in(other)) == family;
  });
  if (!found.empty()) return found;
  found = those(
      [&](std::string_view other) { return without_numbers(words_in(other)) == without_numbers(words); });
  if (!found.empty() || word.size() < long_enough) return found;
  const std::string_view alike = nearest(word, names);
  return alike.empty() ? found : std::vector<std::string_view>{alike};
}

}  // namespace headroom
