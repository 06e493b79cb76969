#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "interop/shell/parser.hpp"
#include "io/text.hpp"

namespace headroom::shell {

Word Parser::word() {
  Word result{"", line_, at_};
  const std::size_t start = at_;
  std::size_t end = at_;
  while (end < text_.size()) {
    const char c = text_[end];
    const bool process =
        (c == '<' || c == '>') && end + 1 < text_.size() && text_[end + 1] == '(' && end == start;
    if (is_meta(c) && !process) {
      // name=( ... ) and patterns such as @( ... ) hold brackets.
      const bool extended = c == '(' && end > start && std::string_view("@?*+!").find(text_[end - 1]) != npos;
      if (!extended) break;
      end = behind_bracket(text_, end + 1, '(', ')', 1);
    } else {
      end = process ? behind_bracket(text_, end + 2, '(', ')', 1) : end_of_part(text_, end);
    }
    if (end == npos)
      fail(fmt::format(
          "a quote or bracket is not closed, or nested too deeply: {}",
          printable(text_.substr(start, std::min(text_.find('\n', start), text_.size()) - start))));
  }
  result.raw = text_.substr(start, end - start);
  advance(end);
  return result;
}

std::size_t Parser::condition(std::int64_t line) {
  const std::size_t result = add(Kind::condition);
  for (;;) {
    skip_newlines();
    if (at_ >= text_.size()) fail("'[[' needs its ']]'", line);
    if (take_word("]]")) return result;
    std::string_view sign;
    for (const std::string_view one : {"&&", "||", "(", ")", "<", ">"}) {
      if (starts(one)) sign = one;
    }
    std::vector<Word>& words = node(result).words;
    const bool after_match = !words.empty() && words.back().raw == "=~";
    if (after_match) {
      words.push_back(regular_expression());
    } else if (!sign.empty()) {
      words.push_back({std::string(sign), line_, at_});
      at_ += sign.size();
    } else {
      const std::size_t before = at_;
      Word next = word();
      if (at_ == before) fail("'[[' needs its ']]'", line);
      node(result).words.push_back(std::move(next));
    }
  }
}

Word Parser::regular_expression() {
  Word result{"", line_, at_};
  const std::size_t start = at_;
  int brackets = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n' || ((c == ' ' || c == '\t') && brackets == 0)) break;
    brackets += c == '(' ? 1 : c == ')' ? -1 : 0;
    const std::size_t end = c == '(' || c == ')' ? at_ + 1 : end_of_part(text_, at_);
    if (end == npos) fail("a quote is not closed");
    advance(end);
  }
  result.raw = text_.substr(start, at_ - start);
  return result;
}

std::size_t Parser::simple(int depth) {
  const std::size_t result = add(Kind::simple);
  bool assigns = true;
  for (;;) {
    skip_blank();
    if (at_ >= text_.size()) break;
    if (redirection(result)) continue;
    const bool process = starts("<(") || starts(">(");
    if (is_meta(text_[at_]) && !process) break;
    if (assigns && assignment(result, depth)) continue;
    const bool declares = !node(result).words.empty() && is_declaration(node(result).words.front().raw);
    if (declares && assignment(result, depth)) continue;
    assigns = false;
    Word next = word();
    node(result).words.push_back(std::move(next));
  }
  const Node& made = node(result);
  if (made.words.empty() && made.assignments.empty() && made.redirections.empty())
    fail(at_ < text_.size()
             ? fmt::format("'{}' is not expected here", printable(text_.substr(at_, at_end_of_token() - at_)))
             : "a command is expected");
  return result;
}

bool Parser::assignment(std::size_t result, int depth) {
  if (depth > deepest_syntax) fail("is nested too deeply");
  std::size_t end = at_;
  if (!is_name_start(text_[end])) return false;
  while (end < text_.size() && is_name(text_[end])) ++end;
  Assignment made;
  made.name = text_.substr(at_, end - at_);
  if (end < text_.size() && text_[end] == '[') {
    const std::size_t closed = behind_bracket(text_, end + 1, '[', ']', 1);
    if (closed == npos) return false;
    made.index = text_.substr(end + 1, closed - end - 2);
    if (made.index.empty() || made.index.find('\n') != npos) return false;
    end = closed;
  }
  made.appends = text_.substr(end).starts_with("+=");
  if (!made.appends && (end >= text_.size() || text_[end] != '=')) return false;
  at_ = end + (made.appends ? 2 : 1);
  if (starts("(")) {
    made.is_list = true;
    const std::int64_t line = line_;
    ++at_;
    for (skip_newlines(); !starts(")"); skip_newlines()) {
      if (at_ >= text_.size()) fail("'(' needs its ')'", line);
      const std::size_t before = at_;
      made.items.push_back(word());
      if (at_ == before) fail(fmt::format("'{}' is not expected in a list", text_[at_]));
    }
    ++at_;
  } else {
    made.value = word();
  }
  node(result).assignments.push_back(std::move(made));
  return true;
}

void Parser::redirections(std::size_t result) {
  for (skip_blank(); at_ < text_.size() && redirection(result); skip_blank()) {
  }
}

bool Parser::redirection(std::size_t result) {
  std::size_t at = at_;
  while (at < text_.size() && text_[at] >= '0' && text_[at] <= '9') ++at;
  const std::string_view rest = text_.substr(at);
  std::string_view sign;
  for (const std::string_view one :
       {"&>>", "&>", "<<<", "<<-", "<<", "<>", ">>", ">&", "<&", ">|", ">", "<"}) {
    if (rest.starts_with(one)) {
      sign = one;
      break;
    }
  }
  if (sign.empty() || (sign.front() == '&' && at != at_)) return false;
  if ((sign == "<" || sign == ">") && rest.substr(1).starts_with("(")) return false;
  at_ = at + sign.size();
  skip_blank();
  const std::int64_t line = line_;
  Word target = word();
  if (target.raw.empty()) {
    const auto& before = node(result).redirections;
    const bool placeholder = sign == ">" && !before.empty() && before.back().sign == "<";
    fail(placeholder ? fmt::format("replace the placeholder <{}> with its value", before.back().target.raw)
                     : fmt::format("'{}' needs a file", sign),
         line);
  }
  if (sign != "<<" && sign != "<<-") {
    node(result).redirections.push_back({std::string(sign), std::move(target), false});
    return true;
  }
  std::string delimiter;
  std::copy_if(target.raw.begin(), target.raw.end(), std::back_inserter(delimiter),
               [](char c) { return c != '\'' && c != '"' && c != '\\'; });
  const bool literal = delimiter.size() != target.raw.size();
  node(result).redirections.push_back({"<<", {"", line, at_}, literal});
  heredocs_.push_back({result, node(result).redirections.size() - 1, std::move(delimiter), sign == "<<-"});
  return true;
}

void Parser::read_heredoc(std::size_t index, std::size_t place, const std::string& delimiter,
                          bool strips_tabs) {
  const std::int64_t line = line_;
  const std::size_t start = at_;
  std::string body;
  while (at_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view one = text_.substr(at_, end - at_);
    if (strips_tabs) one.remove_prefix(std::min(one.find_first_not_of('\t'), one.size()));
    at_ = std::min(end + 1, text_.size());
    ++line_;
    if (one == delimiter) {
      node(index).redirections[place].target = {std::move(body), line, start};
      return;
    }
    body.append(one).append("\n");
  }
  fail(fmt::format("the text up to '{}' has no end", printable(delimiter)), line - 1);
}

}  // namespace headroom::shell
