#include "config/shell_quote.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace trainyard {
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

std::string shell_quoted(std::string_view value, ShellContext context) {
  std::string quoted;
  switch (context.place) {
    case ShellPlace::Word:
      quoted = context.quoted ? "'" + in_single_quotes(value) + "'" : shell_word(value);
      break;
    case ShellPlace::SingleQuotes:
      quoted = in_single_quotes(value);
      break;
    case ShellPlace::DoubleQuotes:
      quoted = with_backslashes(value, "\\$`\"");
      break;
    case ShellPlace::HereDocument:
      quoted = with_backslashes(value, "\\$`");
      break;
    case ShellPlace::HereDocumentRaw:
      quoted = value;
      break;
    case ShellPlace::Comment:
      quoted = value;
      std::ranges::replace(quoted, '\n', ' ');
      break;
  }
  // The shell takes a layer of backslashes off what stands in backticks before it reads it.
  return context.backticks ? with_backslashes(quoted, "\\`") : quoted;
}

}  // namespace trainyard
