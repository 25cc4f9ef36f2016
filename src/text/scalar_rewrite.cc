#include "text/scalar_rewrite.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "text/mistake.h"

namespace trainyard::text {
namespace {

using Edits = std::map<std::pair<int, int>, const ScalarEdit*>;  // By line and column.

std::pair<int, int> at(Place place) { return {place.line, place.column}; }

/// One plain value in whatever context.
bool is_plain_anywhere(std::string_view value) {
  const auto is_letter = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.';
  };
  char before = ' ';
  for (const char byte : value) {
    if (!is_letter(byte) && (byte != ' ' || before == ' ')) return false;
    before = byte;
  }
  return before != ' ';
}

/// The beginning of each line.
std::vector<std::size_t> line_starts(std::string_view text) {
  std::vector<std::size_t> starts{0};
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', end + 1)) {
    starts.push_back(end + 1);
  }
  return starts;
}

/// A piece of the text, from here on so long.
struct Span {
  std::size_t from = 0;
  std::size_t size = 0;
};

/// The place of the value, between its quotes if it has any; nothing if it is not written letter by
/// letter.
std::optional<Span> find_value(std::string_view text, const std::vector<std::size_t>& lines,
                               const ScalarEdit& edit) {
  const auto line = static_cast<std::size_t>(edit.place.line);
  if (edit.place.line < 1 || edit.place.column < 1 || line > lines.size()) return std::nullopt;
  std::size_t from = lines[line - 1] + static_cast<std::size_t>(edit.place.column) - 1;
  if (from >= text.size() || edit.from.contains('\n')) return std::nullopt;
  const char quote = text[from];
  if (quote == '"' || quote == '\'') {
    ++from;
    const std::size_t end = from + edit.from.size();
    if (end >= text.size() || text[end] != quote) return std::nullopt;
  }
  if (text.substr(from, edit.from.size()) != edit.from || edit.from.empty()) return std::nullopt;
  return Span{.from = from, .size = edit.from.size()};
}

/// Whether two trees are equal except for the edits, each of which is found once: a value found
/// twice has another meaning elsewhere. `key` is the key whose value the node is; empty for a node
/// that is not the value of a mapping.
bool is_same_but_for(Edits& edits, const YamlNode& before, const YamlNode& after,
                     std::string_view key) {
  if (before.kind != after.kind || before.quoted != after.quoted ||
      before.items.size() != after.items.size()) {
    return false;
  }
  const auto edit = before.kind == YamlKind::Text ? edits.find(at(before.place)) : edits.end();
  if (edit != edits.end()) {
    const ScalarEdit* const it = std::exchange(edit->second, nullptr);
    const bool meant = it != nullptr && it->key == key && it->from == before.text;
    return meant && after.text == it->to;
  }
  if (before.text != after.text) return false;
  for (std::size_t i = 0; i < before.items.size(); ++i) {
    const bool is_value = before.kind == YamlKind::Mapping && i % 2 == 1;
    const std::string_view of = is_value ? std::string_view(before.items[i - 1]->text) : "";
    if (!is_same_but_for(edits, *before.items[i], *after.items[i], of)) return false;
  }
  return true;
}

/// Whether all other values keep their meaning.
bool holds(std::string_view before, std::string_view after, Edits edits) {
  const YamlDocument old(before, "");
  const YamlDocument fresh(after, "");
  if (!old.mistakes().empty() || !fresh.mistakes().empty()) return false;
  if (old.root() == nullptr || fresh.root() == nullptr) return false;
  return is_same_but_for(edits, *old.root(), *fresh.root(), "");
}

}  // namespace

Result<std::string> rewrite_scalars(std::string_view text, const std::string& file,
                                    const std::vector<ScalarEdit>& edits) {
  const std::vector<std::size_t> lines = line_starts(text);
  const auto refuse = [&](Place place, std::string_view why) {
    return std::unexpected(Error{to_text(Mistake{
        .file = file, .line = place.line, .column = place.column, .message = std::string(why)})});
  };
  Edits by_place;
  for (const ScalarEdit& edit : edits) {
    check(is_plain_anywhere(edit.to), "a value that is plain wherever it stands");
    by_place[at(edit.place)] = &edit;
  }
  std::string result;
  std::size_t copied = 0;
  for (const auto& [place, edit] : by_place) {
    const std::optional<Span> value = find_value(text, lines, *edit);
    if (!value || value->from < copied) {
      return refuse(edit->place, "this is not a plain value in one line; edit it by hand");
    }
    result.append(text.substr(copied, value->from - copied)).append(edit->to);
    copied = value->from + value->size;
  }
  result.append(text.substr(copied));
  if (holds(text, result, by_place)) return result;
  // One of the edits may be to blame, and the others may be fine alone.
  for (const auto& [place, edit] : by_place) {
    if (by_place.size() == 1) break;
    const Result<std::string> alone = rewrite_scalars(text, file, {*edit});
    if (!alone) return std::unexpected(alone.error());
  }
  return refuse(by_place.empty() ? Place{} : by_place.begin()->second->place,
                "another value here would also change other keys; edit it by hand");
}

std::string line_diff(std::string_view before, std::string_view after, const std::string& file) {
  std::string diff;
  std::size_t line = 1;
  while (!before.empty() || !after.empty()) {
    const auto take = [](std::string_view& rest) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view taken = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      return taken;
    };
    const std::string_view old = take(before);
    const std::string_view fresh = take(after);
    if (old != fresh) diff += fmt::format("@@ -{0} +{0} @@\n-{1}\n+{2}\n", line, old, fresh);
    ++line;
  }
  return diff.empty() ? diff : fmt::format("--- {0}\n+++ {0}\n{1}", file, diff);
}

}  // namespace trainyard::text
