#include "text/shell_parameters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard::text {
namespace {

/// After these a command begins as after a semicolon.
constexpr std::array<std::string_view, 8> kKeywords{"if",    "then",  "else", "elif",
                                                    "while", "until", "do",   "!"};

class ParameterReader {
 public:
  bool read(std::string_view command) {
    for (std::size_t at = 0; at < command.size() && !changed_; ++at) {
      const char byte = command[at];
      if (byte == '\\') {
        word_ += command.substr(at++, 2);
      } else if (byte == '\'' || byte == '"') {
        at = skip_quoted(command, at);
        word_ += byte;  // No word that is looked for has a quote.
      } else if (byte == '(' && is_function(command, at)) {
        changed_ = true;
      } else if (std::string_view(";&|(){}\n`").contains(byte)) {
        end_word();
        end_command();
      } else if (byte == ' ' || byte == '\t') {
        end_word();
      } else {
        word_ += byte;
      }
    }
    end_word();
    return changed_;
  }

 private:
  static std::size_t skip_quoted(std::string_view command, std::size_t at) {
    const char quote = command[at++];
    while (at < command.size() && command[at] != quote) {
      at += quote == '"' && command[at] == '\\' ? 2 : 1;
    }
    return at;
  }

  /// A name before it, and nothing but blanks in it.
  bool is_function(std::string_view command, std::size_t at) {
    const std::size_t close = command.find_first_not_of(" \t", at + 1);
    const bool named =
        !word_.empty() ? word_.find_first_of("$=") == std::string::npos : after_first_;
    return named && close != std::string_view::npos && command[close] == ')';
  }

  void end_word() {
    if (word_.empty()) return;
    const std::string word = std::exchange(word_, {});
    if (at_start_) {
      after_first_ = true;
      if (std::ranges::find(kKeywords, word) != kKeywords.end()) return;
      changed_ = changed_ || word == "shift" || word == "function";
      at_start_ = false;
      sets_ = word == "set";
      return;
    }
    after_first_ = false;
    if (!sets_) return;
    if (std::exchange(is_name_of_option_, false)) return;
    const bool option = word.starts_with('-') || word.starts_with('+');
    changed_ = changed_ || word == "--" || !option;
    is_name_of_option_ = option && word.ends_with('o');
  }

  void end_command() {
    at_start_ = true;
    sets_ = after_first_ = is_name_of_option_ = false;
  }

  std::string word_;
  bool at_start_ = true;            ///< The next word is the first of a command.
  bool after_first_ = false;        ///< The last word was that.
  bool sets_ = false;               ///< The command is `set`.
  bool is_name_of_option_ = false;  ///< The next word is, as in `set -o pipefail`.
  bool changed_ = false;
};

}  // namespace

bool changes_parameters(std::string_view command) { return ParameterReader().read(command); }

}  // namespace trainyard::text
