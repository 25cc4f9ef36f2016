#include "text/python_command.h"

#include <algorithm>
#include <expected>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "text/placeholder.h"

namespace trainyard::text {
namespace {

/// Has a meaning to the shell where no quotes are.
constexpr std::string_view kForShell = "$`|&;<>()*?[]{}~#!\n";
/// The same in double quotes.
constexpr std::string_view kForShellInDouble = "$`";
/// The characters that a backslash escapes in double quotes.
constexpr std::string_view kEscapedInDouble = "$`\"\\";

Error for_shell(char byte) {
  if (byte == '\n') return Error{"has several lines, which are for the shell"};
  return Error{fmt::format("has a '{}', which is for the shell", byte)};
}

class WordSplitter {
 public:
  explicit WordSplitter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> split() {
    for (; at_ < text_.size(); ++at_) {
      const char byte = text_[at_];
      if (byte == ' ' || byte == '\t') {
        end_word();
      } else if (byte == '\'' || byte == '"') {
        in_word_ = true;
        if (Result<void> quoted = take_quoted(byte); !quoted) {
          return std::unexpected(std::move(quoted).error());
        }
      } else if (byte == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        add(text_[++at_]);
      } else if (kForShell.contains(byte) || byte == '\\') {
        return std::unexpected(for_shell(byte));
      } else {
        add(byte);
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  void add(char byte) {
    in_word_ = true;
    word_ += byte;
  }
  void end_word() {
    if (std::exchange(in_word_, false)) words_.push_back(std::exchange(word_, {}));
  }
  Result<void> take_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      const bool in_double = quote == '"';
      if (in_double && kForShellInDouble.contains(text_[at_])) {
        return std::unexpected(for_shell(text_[at_]));
      }
      if (in_double && text_.substr(at_).starts_with("\\\n")) {
        ++at_;  // The line continues.
        continue;
      }
      const bool escapes = in_double && text_[at_] == '\\' && at_ + 1 < text_.size() &&
                           kEscapedInDouble.contains(text_[at_ + 1]);
      if (escapes) ++at_;
      word_ += text_[at_];
    }
    if (at_ == text_.size())
      return std::unexpected(Error{fmt::format("has a {} without end", quote)});
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool in_word_ = false;
  std::string word_;
  std::vector<std::string> words_;
};

/// Whether the name is that of a Python interpreter: python3, /opt/venv/bin/python3.12, pypy3.
bool is_python(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  return program.starts_with("python") || program.starts_with("pypy");
}

/// The number of arguments that an option of the interpreter takes up; 0: it cannot be told apart
/// from the script, as -um cannot.
std::size_t length_of_option(std::string_view option) {
  if (option == "--check-hash-based-pycs") return 2;
  if (option.starts_with("--")) return 0;
  const std::size_t with_value = option.find_first_of("WXmc", 1);
  if (with_value == std::string_view::npos) return 1;
  if (option[with_value] == 'm' || option[with_value] == 'c') return 0;
  return with_value + 1 == option.size() ? 2 : 1;
}

}  // namespace

Result<PythonCommand> read_python_command(std::vector<std::string> arguments) {
  if (arguments.empty() || !is_python(arguments.front())) {
    return std::unexpected(Error{"does not start with a Python"});
  }
  std::size_t at = 1;
  while (at < arguments.size() && arguments[at].starts_with('-') && arguments[at] != "-" &&
         arguments[at] != "-m" && arguments[at] != "-c") {
    const std::size_t length = length_of_option(arguments[at]);
    if (length == 0) {
      return std::unexpected(Error{
          fmt::format("has '{}'; give each option of Python by itself, as in 'python3 -u -m fit'",
                      arguments[at])});
    }
    at += length;
  }
  if (at >= arguments.size()) return std::unexpected(Error{"has no script"});
  const std::string& script = arguments[at];
  if (script == "-") return std::unexpected(Error{"reads its script from standard input"});
  const bool is_option = script == "-m" || script == "-c";
  if (is_option && at + 1 == arguments.size()) return std::unexpected(Error{"has no script"});
  const auto slash = script.rfind('/');
  std::string directory = script == "-c" ? "" : ".";
  if (slash != std::string::npos) directory = script.substr(0, slash + 1);
  return PythonCommand{
      .arguments = std::move(arguments), .interpreter = at, .directory = std::move(directory)};
}

Result<std::vector<std::string>> words_of_command(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return WordSplitter(text).split();
}

Result<PythonCommand> read_python_command(std::string_view text) {
  Result<std::vector<std::string>> words = words_of_command(text);
  if (!words) return std::unexpected(std::move(words).error());
  return read_python_command(*std::move(words));
}

std::string program_of_command(std::string_view text) {
  constexpr std::string_view kMoreCommands = ";|\n()";
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  // The shell becomes what comes behind it. An option of it would be none of a program.
  if (text.starts_with("exec ")) {
    text.remove_prefix(std::min(text.find_first_not_of(' ', 5), text.size()));
    if (text.starts_with('-')) return {};
  }
  const std::string_view word = text.substr(0, text.find_first_of(" \t<>"));
  if (word.find_first_of(kForShell) != std::string_view::npos ||
      word.find_first_of("'\"\\=") != std::string_view::npos) {
    return {};
  }
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (quote != '\'' && byte == '\\') {
      ++i;
    } else if (quote != '\'' && (byte == '`' || (byte == '$' && next == '('))) {
      return {};
    } else if (quote != 0) {
      if (byte == quote) quote = 0;
    } else if (byte == '\'' || byte == '"') {
      quote = byte;
    } else if (byte == '&') {
      // 2>&1 and &> are about its output.
      if (next != '>' && (i == 0 || (text[i - 1] != '>' && text[i - 1] != '<'))) return {};
    } else if (kMoreCommands.contains(byte)) {
      return {};
    }
  }
  return quote == 0 ? std::string(word) : std::string();
}

bool needs_shell(const std::string& word) { return program_of_command(word) != word; }

bool is_python_module(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name | std::views::split('.'), [](const auto& part) {
    const std::string_view text(part.begin(), part.end());
    return is_identifier(text) && !text.contains('-');
  });
}

}  // namespace trainyard::text
