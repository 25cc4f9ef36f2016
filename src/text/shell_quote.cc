#include "text/shell_quote.h"

#include <algorithm>

#include <fmt/format.h>

namespace trainyard::text {
namespace {

bool safe_in_a_word(char byte) {
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  const bool digit = byte >= '0' && byte <= '9';
  return letter || digit || std::string_view("_@%+=:,./-").find(byte) != std::string_view::npos;
}

std::string with_backslashes(std::string_view value, std::string_view before) {
  std::string quoted;
  for (const char byte : value) {
    if (before.find(byte) != std::string_view::npos) quoted += '\\';
    quoted += byte;
  }
  return quoted;
}

/// A single quote cannot be quoted in single quotes: they are left for it.
std::string in_single_quotes(std::string_view value) {
  std::string quoted;
  for (const char byte : value) {
    if (byte == '\'') {
      quoted += "'\\''";
    } else {
      quoted += byte;
    }
  }
  return quoted;
}

}  // namespace

std::string shell_word(std::string_view value) {
  if (!value.empty() && std::ranges::all_of(value, safe_in_a_word)) return std::string(value);
  return "'" + in_single_quotes(value) + "'";
}

std::string quoted_command(const std::string& command) {
  return fmt::format("{0}{1}{0}", command.contains('\'') ? '"' : '\'', command);
}

std::string shell_quoted(std::string_view value, ShellContext context) {
  switch (context.quoting) {
    case Quoting::Word:
      return context.quoted ? "'" + in_single_quotes(value) + "'" : shell_word(value);
    case Quoting::SingleQuotes:
      return in_single_quotes(value);
    case Quoting::DoubleQuotes:
      return with_backslashes(value, "\\$`\"");
    case Quoting::HereDocument:
      return with_backslashes(value, "\\$`");
    case Quoting::Comment:
      break;
  }
  std::string line(value);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string shell_variable(std::string_view name, Quoting quoting) {
  switch (quoting) {
    case Quoting::Word:
      return fmt::format("\"${}\"", name);
    case Quoting::SingleQuotes:
      return fmt::format("'\"${{{}}}\"'", name);
    case Quoting::DoubleQuotes:
    case Quoting::HereDocument:
      return fmt::format("${{{}}}", name);
    case Quoting::Comment:
      break;
  }
  return {};
}

}  // namespace trainyard::text
