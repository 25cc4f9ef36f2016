#include "job/needs_values.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "job/job_spec.h"
#include "text/yaml_reader.h"

namespace trainyard::job {
namespace {

constexpr std::string_view kBegin = "{needs.";
constexpr std::string_view kResult = ".result.";

/// Adds the results of `group` that a text names, each once.
void add_results(std::string_view text, const std::string& group, std::vector<NeedsValue>& values) {
  const std::string begin = fmt::format("{}{}{}", kBegin, group, kResult);
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    at += begin.size();
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos) return;
    NeedsValue value{.kind = NeedsValue::Kind::Result,
                     .group = group,
                     .key = std::string(text.substr(at, end - at))};
    if (!value.key.empty() && std::ranges::find(values, value) == values.end()) {
      values.push_back(std::move(value));
    }
  }
}

void look_through(const text::YamlNode& node, const std::vector<std::string>& needed,
                  std::vector<NeedsValue>& values) {
  if (node.text.contains(kBegin)) {
    for (const std::string& group : needed) add_results(node.text, group, values);
  }
  for (const text::YamlNode* const item : node.items) look_through(*item, needed, values);
}

}  // namespace

std::vector<NeedsValue> needs_values(const text::YamlNode& node,
                                     const std::vector<std::string>& needed) {
  std::vector<NeedsValue> values;
  for (const std::string& group : needed) {
    values.push_back({.kind = NeedsValue::Kind::Directory, .group = group, .key = {}});
    values.push_back({.kind = NeedsValue::Kind::Directories, .group = group, .key = {}});
  }
  look_through(node, needed, values);
  return values;
}

std::string name_of(const NeedsValue& value) {
  switch (value.kind) {
    case NeedsValue::Kind::Directory:
      return fmt::format("needs.{}.dir", value.group);
    case NeedsValue::Kind::Directories:
      return fmt::format("needs.{}.dirs", value.group);
    case NeedsValue::Kind::Result:
      break;
  }
  return fmt::format("needs.{}{}{}", value.group, kResult, value.key);
}

std::size_t first_needs_slot(const GroupSpec& group) {
  return kMatrixSlots + group.matrix.keys().size();
}

}  // namespace trainyard::job
