#include "config/placeholder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/nearest.h"
#include "config/shell_quote.h"

namespace trainyard {
namespace {

bool starts_identifier(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool continues_identifier(char byte) {
  return starts_identifier(byte) || (byte >= '0' && byte <= '9') || byte == '-';
}

std::string_view leading_identifier(std::string_view text) {
  if (text.empty() || !starts_identifier(text.front())) return {};
  const auto end = std::ranges::find_if_not(text, continues_identifier);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// What stands at one place of a text: some text as it is to come out, or a placeholder.
struct Piece {
  std::size_t length = 1;  ///< How much of the text it is.
  std::string_view literal;
  std::string_view name;  ///< Of a placeholder; empty for text.
};

Piece piece_at(std::string_view text) {
  if (text.starts_with("${")) return {.length = 2, .literal = text.substr(0, 2)};
  if (text.starts_with("{{")) {
    const std::string_view name = leading_identifier(text.substr(2));
    if (!name.empty() && text.substr(2 + name.size()).starts_with("}}")) {
      return {.length = name.size() + 4, .literal = text.substr(1, name.size() + 2)};
    }
    return {.length = 2, .literal = text.substr(0, 1)};
  }
  if (text.starts_with('{')) {
    const std::string_view name = leading_identifier(text.substr(1));
    if (!name.empty() && text.substr(1 + name.size()).starts_with('}')) {
      return {.length = name.size() + 2, .literal = {}, .name = name};
    }
  }
  return {.length = 1, .literal = text.substr(0, 1)};
}

std::string unknown_placeholder(std::string_view name, const Template::Names& names) {
  const auto meant = nearest(name, names.names);
  if (meant) {
    return fmt::format("unknown placeholder '{{{}}}', did you mean '{{{}}}'?", name, *meant);
  }
  return fmt::format("unknown placeholder '{{{}}}'; write '{{{{{}}}}}' for the text itself", name,
                     name);
}

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && leading_identifier(text).size() == text.size();
}

Template::Read Template::read(std::string_view text, const Names& names) {
  Read result;
  ShellReader shell;
  std::string& literal = result.text.literal_;
  std::size_t part_start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Piece piece = piece_at(text.substr(at));
    std::string_view as_text = piece.literal;
    if (!piece.name.empty()) {
      const auto found = std::ranges::find(names.names, piece.name);
      if (found == names.names.end()) {
        result.problems.push_back(unknown_placeholder(piece.name, names));
      } else if (names.in_shell && shell.after_backslash()) {
        result.problems.push_back(
            fmt::format("'{{{}}}' stands right after a backslash, which would quote only the first "
                        "character of its value",
                        piece.name));
      } else {
        Part part{.text_before = static_cast<std::uint32_t>(literal.size() - part_start),
                  .slot = static_cast<std::uint16_t>(found - names.names.begin()),
                  .in_shell = names.in_shell,
                  .context = {}};
        if (names.in_shell) part.context = shell.value_here();
        result.text.parts_.push_back(part);
        part_start = literal.size();
        at += piece.length;
        continue;
      }
      as_text = text.substr(at, piece.length);
    }
    literal += as_text;
    if (names.in_shell) shell.read(as_text);
    at += piece.length;
  }
  return result;
}

std::string Template::fill(const Bindings& bindings) const {
  std::string filled;
  filled.reserve(literal_.size() + (parts_.size() * 16));
  std::size_t at = 0;
  for (const Part& part : parts_) {
    filled.append(literal_, at, part.text_before);
    at += part.text_before;
    const std::optional<std::string>& value = bindings[part.slot];
    if (!value) continue;
    if (part.in_shell) {
      filled += shell_quoted(*value, part.context);
    } else {
      filled += *value;
    }
  }
  filled.append(literal_, at);
  return filled;
}

std::optional<std::size_t> Template::missing(const Bindings& bindings) const {
  for (const Part& part : parts_) {
    if (!bindings[part.slot]) return part.slot;
  }
  return std::nullopt;
}

bool Template::uses(std::size_t slot) const {
  return std::ranges::any_of(parts_, [slot](const Part& part) { return part.slot == slot; });
}

}  // namespace trainyard
