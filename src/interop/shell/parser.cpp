#include "interop/shell/parser.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "io/text.hpp"

namespace headroom::shell {
namespace {

constexpr std::size_t most_nodes = 1'000'000;  // 10 MB of commands have fewer

}  // namespace

Script Parser::run() {
  script_.root = list({}, 0);
  skip_blank();
  if (at_ < text_.size())
    fail(fmt::format("'{}' is not expected here", printable(text_.substr(at_, at_end_of_token() - at_))));
  return std::move(script_);
}

void Parser::fail(const std::string& rule, std::int64_t line) const {
  throw InputError(fmt::format("{}:{}", file_, line > 0 ? line : line_), rule);
}

std::size_t Parser::at_end_of_token() const {
  std::size_t end = at_;
  while (end < text_.size() && !is_meta(text_[end])) ++end;
  return std::max(end, at_ + 1);
}

std::size_t Parser::add(Kind kind) {
  if (script_.nodes.size() >= most_nodes) fail(fmt::format("has more than {} commands", most_nodes));
  script_.nodes.emplace_back();
  script_.nodes.back().kind = kind;
  script_.nodes.back().line = line_;
  return script_.nodes.size() - 1;
}

void Parser::advance(std::size_t to) {
  line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                      text_.begin() + static_cast<std::ptrdiff_t>(to), '\n');
  at_ = to;
}

void Parser::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t') {
      ++at_;
    } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      advance(at_ + 2);
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      break;
    }
  }
}

void Parser::newline() {
  advance(at_ + 1);
  for (const auto& [index, place, delimiter, tabs] : std::exchange(heredocs_, {}))
    read_heredoc(index, place, delimiter, tabs);
}

void Parser::skip_newlines() {
  for (skip_blank(); at_ < text_.size() && text_[at_] == '\n'; skip_blank()) newline();
}

void Parser::skip_ends() {
  for (skip_newlines();
       at_ < text_.size() && (text_[at_] == ';' || text_[at_] == '&') && !starts(";;") && !starts(";&");
       skip_newlines())
    ++at_;
}

bool Parser::at_word(std::string_view word) const {
  if (!starts(word)) return false;
  const std::size_t end = at_ + word.size();
  return end >= text_.size() || is_meta(text_[end]);
}

bool Parser::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  at_ += word.size();
  return true;
}

void Parser::expect_word(std::string_view word, std::string_view opened, std::int64_t line) {
  skip_ends();
  if (!take_word(word)) fail(fmt::format("'{}' needs its '{}'", opened, word), line);
}

std::size_t Parser::list(const std::vector<std::string_view>& ends, int depth) {
  if (depth > deepest_syntax) fail("is nested too deeply");
  const std::size_t result = add(Kind::sequence);
  for (skip_ends(); at_ < text_.size(); skip_ends()) {
    const bool ended = std::any_of(ends.begin(), ends.end(), [&](std::string_view end) {
      return end == ")" || end == ";;" ? starts(end) : at_word(end);
    });
    if (ended || starts(")") || starts(";;") || starts(";&")) break;
    const std::size_t child = and_or(depth);
    node(result).children.push_back(child);
    skip_blank();
    if (at_ >= text_.size()) break;
    const char c = text_[at_];
    if (c == '\n' || c == ';' || c == '&' || c == ')') continue;
    if (ended_compound_) continue;
    fail(fmt::format("'{}' is not expected here", printable(text_.substr(at_, at_end_of_token() - at_))));
  }
  return result;
}

std::size_t Parser::and_or(int depth) {
  std::size_t left = pipeline(depth);
  for (;;) {
    skip_blank();
    const bool both = starts("&&");
    if (!both && !starts("||")) return left;
    at_ += 2;
    skip_newlines();
    const std::size_t result = add(both ? Kind::and_then : Kind::or_else);
    const std::size_t right = pipeline(depth);
    node(result).children = {left, right};
    left = result;
  }
}

std::size_t Parser::pipeline(int depth) {
  skip_blank();
  if (at_word("!")) {
    ++at_;
    if (depth > deepest_syntax) fail("is nested too deeply");
    const std::size_t result = add(Kind::negation);
    const std::size_t child = pipeline(depth + 1);
    node(result).children = {child};
    return result;
  }
  if (take_word("time")) skip_blank();
  const std::size_t first = command(depth);
  skip_blank();
  if (!starts("|") || starts("||")) return first;
  const std::size_t result = add(Kind::pipeline);
  node(result).children = {first};
  while (starts("|") && !starts("||")) {
    at_ += starts("|&") ? std::size_t{2} : std::size_t{1};
    skip_newlines();
    const std::size_t next = command(depth);
    node(result).children.push_back(next);
    skip_blank();
  }
  return result;
}

std::size_t Parser::command(int depth) {
  skip_blank();
  ended_compound_ = true;
  const std::size_t result = compound(depth + 1);
  if (result != npos) {
    redirections(result);
    ended_compound_ = true;
    return result;
  }
  ended_compound_ = false;
  return simple(depth + 1);
}

std::size_t Parser::compound(int depth) {
  if (depth > deepest_syntax) fail("is nested too deeply");
  const std::int64_t line = line_;
  if (starts("((")) {
    const std::size_t end = behind_bracket(text_, at_ + 2, '(', ')', 1);
    if (end != npos && end < text_.size() && text_[end] == ')') {
      const std::size_t result = add(Kind::arithmetic);
      node(result).words.push_back({std::string(text_.substr(at_ + 2, end - at_ - 3)), line_, at_});
      advance(end + 1);
      return result;
    }
  }
  if (starts("(")) {
    ++at_;
    const std::size_t result = add(Kind::subshell);
    const std::size_t body = list({")"}, depth);
    node(result).children = {body};
    if (!starts(")")) fail("'(' needs its ')'", line);
    ++at_;
    return result;
  }
  if (take_word("{")) return block(Kind::group, {"}"}, depth, "{", line);
  if (take_word("if")) return if_else(depth, line);
  if (take_word("while")) return loop(Kind::loop_while, depth, line);
  if (take_word("until")) return loop(Kind::loop_until, depth, line);
  if (take_word("for") || take_word("select")) return loop_for(depth, line);
  if (take_word("case")) return choice(depth, line);
  if (take_word("[[")) return condition(line);
  if (take_word("function")) {
    skip_blank();
    const Word name = word();
    skip_blank();
    if (starts("(")) take_brackets(line);
    return function(name.raw, depth, line);
  }
  return named_function(depth, line);
}

void Parser::take_brackets(std::int64_t line) {
  ++at_;
  skip_blank();
  if (!starts(")")) fail("'(' needs its ')'", line);
  ++at_;
}

std::size_t Parser::named_function(int depth, std::int64_t line) {
  std::size_t end = at_;
  while (end < text_.size() &&
         (is_name(text_[end]) || text_[end] == '-' || text_[end] == '.' || text_[end] == ':'))
    ++end;
  if (end == at_) return npos;
  std::size_t bracket = end;
  while (bracket < text_.size() && (text_[bracket] == ' ' || text_[bracket] == '\t')) ++bracket;
  if (bracket >= text_.size() || text_[bracket] != '(') return npos;
  std::size_t closed = bracket + 1;
  while (closed < text_.size() && (text_[closed] == ' ' || text_[closed] == '\t')) ++closed;
  if (closed >= text_.size() || text_[closed] != ')') return npos;
  std::string name(text_.substr(at_, end - at_));
  at_ = closed + 1;
  return function(std::move(name), depth, line);
}

std::size_t Parser::function(std::string name, int depth, std::int64_t line) {
  skip_newlines();
  const std::size_t result = add(Kind::function);
  node(result).name = std::move(name);
  const std::size_t body = compound(depth);
  if (body == npos) fail("a function needs its body", line);
  node(result).children = {body};
  return result;
}

std::size_t Parser::block(Kind kind, const std::vector<std::string_view>& ends, int depth,
                          std::string_view opened, std::int64_t line) {
  const std::size_t result = add(kind);
  const std::size_t body = list(ends, depth);
  node(result).children = {body};
  expect_word(ends.front(), opened, line);
  return result;
}

std::size_t Parser::if_else(int depth, std::int64_t line) {
  const std::size_t result = add(Kind::if_else);
  for (;;) {
    const std::size_t test = list({"then"}, depth);
    expect_word("then", "if", line);
    const std::size_t branch = list({"elif", "else", "fi"}, depth);
    node(result).children.push_back(test);
    node(result).children.push_back(branch);
    skip_ends();
    if (!take_word("elif")) break;
  }
  if (take_word("else")) {
    const std::size_t branch = list({"fi"}, depth);
    node(result).children.push_back(branch);
  }
  expect_word("fi", "if", line);
  return result;
}

std::size_t Parser::loop(Kind kind, int depth, std::int64_t line) {
  const std::size_t result = add(kind);
  const std::size_t test = list({"do"}, depth);
  expect_word("do", "while", line);
  const std::size_t body = list({"done"}, depth);
  expect_word("done", "do", line);
  node(result).children = {test, body};
  return result;
}

std::size_t Parser::loop_for(int depth, std::int64_t line) {
  skip_blank();
  const std::size_t result = add(Kind::loop_for);
  if (starts("((")) {
    const std::size_t end = behind_bracket(text_, at_ + 2, '(', ')', 1);
    if (end == npos || end >= text_.size() || text_[end] != ')') fail("'((' needs its '))'", line);
    node(result).kind = Kind::loop_count;
    std::string_view inside = text_.substr(at_ + 2, end - at_ - 3);
    for (int i = 0; i < 3; ++i) {
      const std::size_t semicolon = std::min(inside.find(';'), inside.size());
      node(result).words.push_back({std::string(inside.substr(0, semicolon)), line_, at_});
      inside.remove_prefix(std::min(semicolon + 1, inside.size()));
    }
    advance(end + 1);
  } else {
    node(result).name = word().raw;
    skip_newlines();
    if (take_word("in")) {
      node(result).lists_words = true;
      for (skip_blank(); at_ < text_.size() && !is_meta(text_[at_]); skip_blank()) {
        Word next = word();
        node(result).words.push_back(std::move(next));
      }
    }
  }
  skip_ends();
  const bool braces = take_word("{");
  if (!braces) expect_word("do", "for", line);
  const std::string_view end = braces ? "}" : "done";
  const std::size_t body = list({end}, depth);
  expect_word(end, "for", line);
  node(result).children = {body};
  return result;
}

std::size_t Parser::choice(int depth, std::int64_t line) {
  skip_blank();
  const std::size_t result = add(Kind::choice);
  Word subject = word();
  node(result).words.push_back(std::move(subject));
  skip_newlines();
  if (!take_word("in")) fail("'case' needs its 'in'", line);
  for (skip_newlines(); !at_word("esac"); skip_newlines()) {
    if (at_ >= text_.size()) fail("'case' needs its 'esac'", line);
    if (starts("(")) ++at_;
    std::vector<Word> patterns;
    for (skip_blank(); at_ < text_.size() && text_[at_] != ')'; skip_blank()) {
      if (starts("|")) ++at_;
      skip_blank();
      const std::size_t before = at_;
      patterns.push_back(word());
      if (at_ == before) fail("a pattern of 'case' is expected", 0);
    }
    if (at_ >= text_.size()) fail("'case' needs its 'esac'", line);
    ++at_;
    const std::size_t branch = list({";;", "esac"}, depth);
    node(result).children.push_back(branch);
    node(result).patterns.push_back(std::move(patterns));
    skip_ends();
    constexpr std::array<std::pair<std::string_view, BranchEnd>, 3> ends{
        {{";;&", BranchEnd::matches_on}, {";;", BranchEnd::stops}, {";&", BranchEnd::falls}}};
    const auto* const end =
        std::find_if(ends.begin(), ends.end(), [&](const auto& each) { return starts(each.first); });
    node(result).ends.push_back(end == ends.end() ? BranchEnd::stops : end->second);
    if (end != ends.end()) at_ += end->first.size();
  }
  at_ += std::string_view("esac").size();
  return result;
}

bool Parser::is_declaration(std::string_view word) {
  constexpr std::array<std::string_view, 5> words{"export", "local", "declare", "readonly", "typeset"};
  return contains(words, word);
}

Script parse(std::string_view text, const std::string& file, std::int64_t first_line) {
  return Parser(text, file, first_line).run();
}

}  // namespace headroom::shell
