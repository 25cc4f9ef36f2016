#include "text/placeholder.h"

#include <algorithm>
#include <expected>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/nearest.h"
#include "text/shell_refusal.h"

namespace trainyard::text {
namespace {

bool starts_identifier(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool continues_identifier(char byte) {
  return starts_identifier(byte) || (byte >= '0' && byte <= '9') || byte == '-';
}

/// Includes the name of a group, and of a key, which may have any characters but braces.
std::string_view leading_identifier(std::string_view text) {
  if (text.empty() || !starts_identifier(text.front())) return {};
  if (text.starts_with("needs.") || text.starts_with("prev.")) {
    return text.substr(0, text.find_first_of("{}\n"));
  }
  const auto end = std::ranges::find_if_not(text, continues_identifier);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// One piece of a text: literal text, or a placeholder.
struct Piece {
  std::size_t length = 1;  ///< The length of the piece in the text.
  std::string_view literal;
  std::string_view name;  ///< The name of a placeholder; empty for text.
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
      return {.length = name.size() + 2, .name = name};
    }
  }
  return {.length = 1, .literal = text.substr(0, 1)};
}

std::string unknown_placeholder(std::string_view name, const Template::Names& names) {
  const auto meant = nearest(name, names.names);
  if (meant) {
    return fmt::format("unknown placeholder '{{{}}}' (did you mean '{{{}}}'?)", name, *meant);
  }
  if (!names.matrix || !is_identifier(name)) {
    return fmt::format("unknown placeholder '{{{0}}}'; for literal text, write '{{{{{0}}}}}'",
                       name);
  }
  const std::string keys = names.matrix->empty()
                               ? std::string()
                               : fmt::format(" (keys: {})", fmt::join(*names.matrix, ", "));
  return fmt::format(
      "unknown placeholder '{{{0}}}'; add '{0}' to the matrix{1}, or write '{{{{{0}}}}}' for "
      "literal text",
      name, keys);
}

/// The cure in a mistake, with the placeholder in the place of `{v}`.
std::string cure_for(std::string_view cure, std::string_view name) {
  std::string text(cure);
  constexpr std::string_view kAny = "{v}";
  for (auto at = text.find(kAny); at != std::string::npos; at = text.find(kAny, at + name.size())) {
    text.replace(at + 1, kAny.size() - 2, name);
  }
  return text;
}

/// The kind of place in the shell command. The error says why no value can be used there, and what
/// to do instead.
std::expected<ShellContext, std::string> context_of(const Piece& piece, std::string_view after,
                                                    ShellReader& shell,
                                                    const Template::Names& names) {
  if (!names.in_shell) return ShellContext{};
  auto context = shell.value_here();
  if (!context) {
    const ShellRefusal& why = context.error();
    return std::unexpected(fmt::format("'{{{}}}' cannot be used {}; {}", piece.name, why.where,
                                       cure_for(why.cure, piece.name)));
  }
  // Written out, `{n}>file` would redirect the descriptor n.
  if (after.starts_with('<') || after.starts_with('>')) context->quoted = true;
  return *context;
}

/// Whether both sides have a character that begins or ends a word of a command.
bool stands_alone(std::string_view text, std::size_t at, std::size_t length) {
  constexpr std::string_view kBefore = " \t\r\n;&|(";
  constexpr std::string_view kBehind = " \t\r\n;&|)";
  const std::size_t end = at + length;
  return (at == 0 || kBefore.contains(text[at - 1])) &&
         (end == text.size() || kBehind.contains(text[end]));
}

/// The late refusal is reported for the first value in a document: it is not known any more which
/// one it is about.
void add_late(const ShellRefusal& why, const Template::Names& names, Template::Read& read) {
  const auto slot = read.text.first_in_document();
  if (!why.refuses() || !slot) return;
  const std::string_view name = names.names[*slot];
  read.problems.push_back(
      fmt::format("'{{{}}}' cannot be used {}; {}", name, why.where, cure_for(why.cure, name)));
}

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && !text.contains('.') && leading_identifier(text).size() == text.size();
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
             .own_word = names.in_shell && context->quoting == Quoting::Word &&
                         stands_alone(text, at, piece.length),
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
  if (names.in_shell) {
    add_late(shell.at_end(), names, result);
    result.text.traits_ = shell.traits();
  }
  return result;
}

Template Template::plain(std::string text) {
  Template made;
  made.literal_ = std::move(text);
  return made;
}

std::size_t Template::filled_size(const Bindings& bindings) const {
  std::size_t size = literal_.size();
  for (const Part& part : parts_) {
    if (const std::optional<std::string>& value = bindings[part.slot]) size += value->size();
  }
  return size;
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

std::optional<std::size_t> Template::only_slot() const {
  if (parts_.size() != 1 || !literal_.empty()) return std::nullopt;
  return parts_.front().slot;
}

std::vector<std::size_t> Template::slots_as_words() const {
  std::vector<std::size_t> slots;
  for (const Part& part : parts_) {
    if (part.own_word && std::ranges::find(slots, part.slot) == slots.end()) {
      slots.push_back(part.slot);
    }
  }
  return slots;
}

Template::Command Template::command(const Bindings& bindings, const Lists& lists) const {
  Command command;
  std::vector<std::size_t> slots;  // The slots of the variables, in their order.
  std::size_t at = 0;
  for (const Part& part : parts_) {
    check(part.in_shell, "a command for the shell");
    command.text.append(literal_, at, part.text_before);
    at += part.text_before;
    // Nothing reads a comment, so its value need not be there.
    if (part.context.quoting == Quoting::Comment) continue;
    if (const auto list = lists.find(part.slot); list != lists.end() && part.own_word) {
      command.text += "\"$@\"";
      command.parameters = list->second;
      continue;
    }
    const auto known = std::ranges::find(slots, part.slot);
    const auto number = known - slots.begin() + 1;
    std::string name = fmt::format("TRAINYARD_V{}", number);
    command.text += shell_variable(name, part.context.quoting);
    if (known != slots.end()) continue;
    slots.push_back(part.slot);
    command.variables.emplace_back(std::move(name), bindings[part.slot].value_or(""));
  }
  command.text.append(literal_, at);
  return command;
}

std::optional<std::size_t> Template::first_in_document() const {
  const auto found = std::ranges::find_if(parts_, [](const Part& part) {
    return part.in_shell && part.context.quoting == Quoting::HereDocument;
  });
  if (found == parts_.end()) return std::nullopt;
  return found->slot;
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

}  // namespace trainyard::text
