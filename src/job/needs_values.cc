#include "job/needs_values.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace trainyard::job {
namespace {

constexpr std::string_view kResult = ".result.";

/// The prefix of the name of a value.
std::string_view begin_of(bool of_round_before) { return of_round_before ? "prev." : "needs."; }

/// Adds the results of a group that a text names, each once; `like` is one of them without its key.
void add_results(std::string_view text, const NeedsValue& like, std::vector<NeedsValue>& values) {
  const std::string begin =
      fmt::format("{{{}{}{}", begin_of(like.of_round_before), like.group, kResult);
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    at += begin.size();
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos) return;
    NeedsValue value = like;
    value.key = text.substr(at, end - at);
    if (!value.key.empty() && std::ranges::find(values, value) == values.end()) {
      values.push_back(std::move(value));
    }
  }
}

void look_through(const text::YamlNode& node, const NeedsValue& like,
                  std::vector<NeedsValue>& values) {
  if (node.text.contains('{')) add_results(node.text, like, values);
  for (const text::YamlNode* const item : node.items) look_through(*item, like, values);
}

}  // namespace

std::vector<NeedsValue> needs_values(const text::YamlNode& node, const ValueGroups& groups) {
  std::vector<NeedsValue> values;
  const auto add = [&](const std::vector<std::string>& names, bool of_round_before) {
    for (const std::string& group : names) {
      NeedsValue value{.group = group, .of_round_before = of_round_before};
      for (const auto kind : {NeedsValue::Kind::Directory, NeedsValue::Kind::Directories}) {
        value.kind = kind;
        values.push_back(value);
      }
      value.kind = NeedsValue::Kind::Result;
      look_through(node, value, values);
    }
  };
  add(groups.needed, false);
  add(groups.repeated, true);
  return values;
}

std::string name_of(const NeedsValue& value) {
  const std::string_view begin = begin_of(value.of_round_before);
  switch (value.kind) {
    case NeedsValue::Kind::Directory:
      return fmt::format("{}{}.dir", begin, value.group);
    case NeedsValue::Kind::Directories:
      return fmt::format("{}{}.dirs", begin, value.group);
    case NeedsValue::Kind::Result:
      break;
  }
  return fmt::format("{}{}{}{}", begin, value.group, kResult, value.key);
}

std::size_t round_slot(const GroupSpec& group) { return kMatrixSlots + group.matrix.keys().size(); }

std::size_t first_needs_slot(const GroupSpec& group) {
  return round_slot(group) + (group.round ? 1 : 0);
}

}  // namespace trainyard::job
