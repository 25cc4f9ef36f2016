#include "config/placeholder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/nearest.h"
#include "config/here_document.h"
#include "config/shell_quote.h"
#include "config/shell_reader.h"

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

/// How the value is quoted. The error says why it cannot be.
std::expected<ShellContext, std::string> context_of(const Piece& piece, std::string_view after,
                                                    ShellReader& shell,
                                                    const Template::Names& names) {
  if (!names.in_shell) return ShellContext{};
  auto context = shell.value_here();
  if (!context) {
    const ShellRefusal& why = context.error();
    return std::unexpected(fmt::format(
        "'{{{}}}' stands {}; {}", piece.name, why.where,
        why.runs_values
            ? "write the command as a list, in which no shell reads it; a variable of 'env' would "
              "be run here as well"
            : "hand the value over in a variable of 'env', or write the command as a list"));
  }
  // `{n}>file` would write to the file what the program writes to its descriptor n.
  if (after.starts_with('<') || after.starts_with('>')) context->quoted = true;
  return *context;
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
      } else if (const auto context =
                     context_of(piece, text.substr(at + piece.length), shell, names);
                 !context) {
        result.problems.push_back(context.error());
      } else {
        result.text.parts_.push_back(
            {.text_before = static_cast<std::uint32_t>(literal.size() - part_start),
             .slot = static_cast<std::uint16_t>(found - names.names.begin()),
             .in_shell = names.in_shell,
             .context = *context});
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

std::optional<Template::Ending> Template::ends_here_document(const Bindings& bindings) const {
  const auto in_document = [](const Part& part) {
    return part.in_shell && (part.context.place == ShellPlace::HereDocument ||
                             part.context.place == ShellPlace::HereDocumentRaw);
  };
  if (std::ranges::none_of(parts_, in_document)) return std::nullopt;
  struct Value {
    ShellPiece piece;
    std::size_t slot = 0;
    HereEnd document;
  };
  std::vector<Value> values;
  ShellReader shell;
  std::string filled;
  std::size_t at = 0;
  for (const Part& part : parts_) {
    const std::string_view before = std::string_view(literal_).substr(at, part.text_before);
    at += part.text_before;
    shell.read(before);
    filled += before;
    const std::size_t begin = filled.size();
    const std::optional<std::string>& value = bindings[part.slot];
    if (value) filled += shell_quoted(*value, part.context);
    if (value && in_document(part)) {
      values.push_back({.piece = {.begin = begin, .end = filled.size()},
                        .slot = part.slot,
                        .document = *shell.here_document()});
    }
    check(shell.value_here().has_value(), "a place that was looked at when it was read");
  }
  filled.append(literal_, at);
  for (const Value& value : values) {
    if (may_end_document(value.document, filled, value.piece)) {
      return Ending{.slot = value.slot, .word = value.document.word};
    }
  }
  return std::nullopt;
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
