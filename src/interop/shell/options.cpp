// Options of a script's own arguments: bash's getopts, and getopt of util-linux.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/shell/interpreter.hpp"

namespace headroom::shell {
namespace {

// A word that a shell reads back as one.
std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// What getopt is told: "o:v" of -o, "nodes:,verbose" of -l.
struct OptionNames {
  std::string letters;
  std::vector<std::string> words;  // with their colons

  void add_words(std::string_view list) {
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(','), list.size());
      words.emplace_back(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }
  // The word that a name is or alone starts like; empty: none.
  [[nodiscard]] std::string word_of(std::string_view name) const {
    std::string found;
    for (const std::string& word : words) {
      const std::string_view plain = std::string_view(word).substr(0, word.find(':'));
      if (plain == name) return word;
      if (!plain.starts_with(name)) continue;
      if (!found.empty()) return {};
      found = word;
    }
    return found;
  }
};

}  // namespace

// Takes the next option of the arguments as bash's getopts does. Returns false if there are no more. An option
// without its argument is '?', or ':' where the letters start with one; OPTARG then has the letter.
bool Interpreter::next_option(const std::vector<Value>& words) {
  if (words.size() < 3) return false;
  const std::vector<Value> own(words.begin() + 3, words.end());
  const std::vector<Value>& all = words.size() > 3 ? own : state_.arguments;
  const std::string& letters = words[1].text();
  const std::string& name = words[2].text();
  std::size_t next = 0;
  if (const Variable* const at = find("OPTIND"); at != nullptr && at->items.contains(0)) {
    const std::string& text = at->items.at(0).text();
    std::from_chars(text.data(), text.data() + text.size(), next);
  }
  next = std::max<std::size_t>(next, 1);
  const auto end_at = [&](bool more) {
    set("OPTIND", Value(std::to_string(next), here()));
    return more;
  };
  const std::string word = next <= all.size() ? all[next - 1].text() : std::string();
  if (word == "--") ++next;
  if (word.size() < 2 || word.front() != '-' || word == "--" || !is_known(word)) {
    letter_ = 1;
    set(name, Value("?", here()));
    return end_at(false);
  }
  letter_ = std::min(letter_, word.size() - 1);
  const char letter = word[letter_++];
  const std::size_t at = letters.find(letter);
  bool is_option = letter != ':' && at != std::string::npos;
  const bool takes = is_option && letters.substr(at + 1).starts_with(':');
  const bool ends = takes || letter_ == word.size();
  const bool is_silent = letters.starts_with(':');
  const bool lacks_argument = takes && letter_ == word.size() && next >= all.size();
  if (lacks_argument) {
    is_option = false;
  } else if (takes && letter_ < word.size()) {
    set("OPTARG", Value(word.substr(letter_), here()));
  } else if (takes) {
    set("OPTARG", all[next++]);
  }
  if (!is_option) set("OPTARG", Value(is_silent ? std::string(1, letter) : "", here()));
  if (ends) {
    ++next;
    letter_ = 1;
  }
  const char found = is_option ? letter : lacks_argument && is_silent ? ':' : '?';
  set(name, Value(std::string(1, found), here()));
  return end_at(true);
}

// The options of getopt's words as it prints them, each with its argument behind it, and then what is no option. An
// option that is not known is left out, as getopt does after it complains.
std::string sorted_options(const std::vector<Value>& words) {
  // `getopt LETTERS WORDS`, its first form, prints no quotes.
  const bool plain = words.size() > 1 && !words[1].text().starts_with('-');
  const auto as_printed = [&](const std::string& word) { return plain ? word : quoted(word); };
  OptionNames names;
  std::size_t at = 1;
  for (; at < words.size() && words[at].text() != "--"; ++at) {
    const std::string& word = words[at].text();
    const auto value = [&](std::string_view letter, std::string_view name) -> std::optional<std::string> {
      if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=')
        return word.substr(name.size() + 1);
      const bool next = (word == letter || word == name) && at + 1 < words.size();
      if (next) return words[++at].text();
      const bool joined = word.starts_with(letter) && word.size() > 2 && word[1] != '-';
      return joined ? std::optional(word.substr(2)) : std::nullopt;
    };
    if (const auto letters = value("-o", "--options")) {
      names.letters = *letters;
    } else if (const auto list = value("-l", word.starts_with("--longo") ? "--longoptions" : "--long")) {
      names.add_words(*list);
    } else if (!value("-n", "--name") && !word.starts_with('-')) {  // `getopt ab:c "$@"`
      names.letters = word;
      break;
    }
  }
  std::string options;
  std::string rest;
  for (++at; at < words.size(); ++at) {
    const std::string& word = words[at].text();
    if (word == "--") {
      while (++at < words.size()) rest += " " + as_printed(words[at].text());
    } else if (word.starts_with("--")) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string known = names.word_of(std::string_view(word).substr(2, equals - 2));
      if (known.empty()) continue;
      const std::size_t colon = known.find(':');
      options += " --" + known.substr(0, colon);
      if (colon == std::string::npos) continue;
      const bool may_lack = known.find("::") != std::string::npos;
      if (equals < word.size())
        options += " " + as_printed(word.substr(equals + 1));
      else
        options += " " + as_printed(may_lack || at + 1 >= words.size() ? std::string() : words[++at].text());
    } else if (word.starts_with('-') && word.size() > 1) {
      for (std::size_t i = 1; i < word.size(); ++i) {
        const std::size_t letter = names.letters.find(word[i]);
        if (letter == std::string::npos || word[i] == ':') continue;
        options += std::string(" -") + word[i];
        const std::string_view behind = std::string_view(names.letters).substr(letter + 1);
        if (!behind.starts_with(':')) continue;
        if (i + 1 < word.size())
          options += " " + as_printed(word.substr(i + 1));
        else
          options +=
              " " + as_printed(behind.starts_with("::") || at + 1 >= words.size() ? std::string()
                                                                                  : words[++at].text());
        break;
      }
    } else {
      rest += " " + as_printed(word);
    }
  }
  return options + " --" + rest;
}

}  // namespace headroom::shell
