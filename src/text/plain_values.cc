#include "text/plain_values.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace trainyard::text {
namespace {

constexpr std::string_view kScript = "compute it in a script that gets the value as an argument";
constexpr EvaluatingPlace kTest{.what = "'[[ ... ]]'", .cure = "write '[ ... ]'"};
constexpr EvaluatingPlace kArithmetic{.what = "arithmetic", .cure = kScript};
constexpr EvaluatingPlace kSubscript{.what = "a subscript", .cure = kScript};
constexpr EvaluatingPlace kSubstring{.what = "'${x:...}'", .cure = kScript};
constexpr EvaluatingPlace kIndirect{.what = "'${!x}'", .cure = kScript};
constexpr EvaluatingPlace kPrompt{.what = "'${x@P}'", .cure = kScript};
constexpr EvaluatingPlace kWordList{.what = "'compgen'", .cure = kScript};
constexpr EvaluatingPlace kDeclaration{.what = "'declare', 'local' or 'readonly'",
                                       .cure = "assign to a variable without it: x={v}"};
constexpr EvaluatingPlace kNameInVariable{.what = "a name of a variable that is in a variable",
                                          .cure = "write the name of the variable"};
constexpr EvaluatingPlace kOwnVariable{.what = "a variable of bash that it evaluates",
                                       .cure = "use a variable of another name"};

bool is_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
         (byte >= '0' && byte <= '9');
}

bool is_decimal(char byte) { return byte >= '0' && byte <= '9'; }

bool is_among(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_quote(char byte) { return byte == '\'' || byte == '"'; }

/// Without quotes and backslashes, as `l\et`, `"let"`, `$'let'` and `let` are one word.
std::string without_quotes(std::string_view text) {
  std::string bare;
  bare.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      // The end of a line after it is as good as not there.
      if (text.substr(at + 1).starts_with('\n')) ++at;
    } else if (is_quote(text[at])) {
      if (bare.ends_with('$')) bare.pop_back();
    } else {
      bare += text[at];
    }
  }
  return bare;
}

/// The text between the bracket at `open` and the one that closes it; all the rest where none does.
std::string_view in_brackets(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '[') ++depth;
    if (text[at] == ']' && --depth == 0) return text.substr(open + 1, at - open - 1);
  }
  return text.substr(open + 1);
}

bool is_number(std::string_view subscript) {
  return !subscript.empty() && std::ranges::all_of(subscript, is_decimal);
}

/// The evaluating place of an expansion; `text` begins after its `${`.
std::optional<EvaluatingPlace> place_in_expansion(std::string_view text) {
  if (text.starts_with('!')) return kIndirect;
  if (text.starts_with('#')) text.remove_prefix(1);
  const auto end = std::ranges::find_if_not(text, is_name_byte);
  auto at = static_cast<std::size_t>(end - text.begin());
  if (at == 0 && !text.empty() && std::string_view("@*?-$").contains(text.front())) at = 1;
  text.remove_prefix(at);
  if (text.starts_with('[')) {
    const std::string_view subscript = in_brackets(text, 0);
    if (subscript != "@" && subscript != "*" && !is_number(subscript)) return kSubscript;
    text.remove_prefix(std::min(subscript.size() + 2, text.size()));
  }
  if (text.starts_with("@P")) return kPrompt;
  if (!text.starts_with(':')) return std::nullopt;
  text = text.substr(1, text.find('}') - 1);
  if (!text.empty() && std::string_view("-=?+").contains(text.front())) return std::nullopt;
  const bool is_fixed =
      std::ranges::all_of(text, [](char byte) { return is_decimal(byte) || byte == ':'; });
  return is_fixed ? std::nullopt : std::optional(kSubstring);
}

/// The first evaluating place that characters alone show, wherever they are.
std::optional<EvaluatingPlace> place_in_characters(std::string_view text) {
  if (text.contains("[[")) return kTest;
  if (text.contains("((") || text.contains("$[")) return kArithmetic;
  for (auto at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) {
    if (const auto place = place_in_expansion(text.substr(at + 2))) return place;
  }
  for (auto at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    const std::string_view subscript = in_brackets(text, at);
    const std::string_view behind = text.substr(std::min(at + subscript.size() + 2, text.size()));
    const bool is_of_name = at > 0 && is_name_byte(text[at - 1]);
    const bool is_assigned = behind.starts_with('=') || behind.starts_with("+=");
    const bool is_descriptor = behind.starts_with("}<") || behind.starts_with("}>");
    const bool expands = subscript.contains('$') || subscript.contains('`');
    if ((is_assigned || is_descriptor) && !is_number(subscript)) return kSubscript;
    if (is_of_name && expands) return kSubscript;
  }
  return std::nullopt;
}

/// Variables that bash evaluates when they are set, or expands once more later.
constexpr std::array<std::string_view, 13> kEvaluated{
    "RANDOM", "SRANDOM", "SECONDS", "OPTIND",         "HISTCMD", "LINENO",  "PS0",
    "PS1",    "PS2",     "PS4",     "PROMPT_COMMAND", "ENV",     "BASH_ENV"};
constexpr std::array<std::string_view, 4> kDeclaringWords{"declare", "typeset", "local",
                                                          "readonly"};
constexpr std::array<std::string_view, 5> kTakersOfNames{"read", "mapfile", "readarray", "getopts",
                                                         "unset"};
constexpr std::array<std::string_view, 3> kTestersOfNames{"test", "[", "printf"};

/// The evaluating place of one simple command; `words` has no files of redirections.
std::optional<EvaluatingPlace> place_in_words(const std::vector<std::string_view>& words) {
  const auto has = [&words](const auto& names) {
    return std::ranges::any_of(words, [&](std::string_view word) { return is_among(word, names); });
  };
  const auto any = [&words](auto holds) { return std::ranges::any_of(words, holds); };
  if (has(std::array<std::string_view, 1>{"let"})) return kArithmetic;
  if (has(kDeclaringWords)) return kDeclaration;
  const bool sets_own = any([](std::string_view word) {
    const std::size_t end = word.find_first_of("+=");
    return is_among(word.substr(0, end), kEvaluated);
  });
  if (sets_own) return kOwnVariable;
  const bool expands = any(
      [](std::string_view word) { return word.find_first_of("$`[") != std::string_view::npos; });
  // `compgen -W` expands its list of words once more.
  if (expands && has(std::array<std::string_view, 1>{"compgen"})) return kWordList;
  const bool takes_name = expands && has(kTakersOfNames);
  const bool tests_name =
      has(kTestersOfNames) && any([](std::string_view word) { return word.starts_with("-v"); });
  const bool waits_for_name =
      has(std::array<std::string_view, 1>{"wait"}) &&
      any([](std::string_view word) { return word.starts_with('-') && word.contains('p'); });
  if (takes_name || tests_name || waits_for_name) return kNameInVariable;
  return std::nullopt;
}

/// The evaluating place of the first command of a text that has one.
std::optional<EvaluatingPlace> place_in_commands(std::string_view text) {
  std::vector<std::string_view> words;
  bool is_file = false;
  for (std::size_t at = 0; at < text.size();) {
    constexpr std::string_view kEnds = " \t\r\n;&|()`<>";
    const std::size_t end = std::min(text.find_first_of(kEnds, at), text.size());
    if (end > at && !is_file) words.push_back(text.substr(at, end - at));
    if (end > at) is_file = false;
    if (end < text.size() && (text[end] == '<' || text[end] == '>')) {
      is_file = true;
    } else if (end == text.size() || std::string_view("\n;&|()`").contains(text[end])) {
      if (const auto place = place_in_words(words)) return place;
      words.clear();
      is_file = false;
    }
    at = end + 1;
  }
  return place_in_words(words);
}

}  // namespace

std::optional<EvaluatingPlace> evaluating_place(std::string_view text) {
  const std::string bare = without_quotes(text);
  const auto place = place_in_characters(bare);
  return place ? place : place_in_commands(bare);
}

bool is_plain(std::string_view value) {
  return std::ranges::all_of(value, [](char byte) {
    return is_name_byte(byte) || std::string_view(".+-%/=,:@").contains(byte);
  });
}

std::optional<std::string> variable_in(std::string_view value,
                                       const std::function<bool(std::string_view)>& is_variable) {
  for (std::size_t at = 0; at < value.size();) {
    const auto begin = value.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = std::find_if_not(begin, value.end(), is_name_byte);
    const std::string_view name(begin, end);
    if (!name.empty() && !is_decimal(name.front()) && is_variable(name)) return std::string(name);
    at += name.size() + 1;
  }
  return std::nullopt;
}

}  // namespace trainyard::text
