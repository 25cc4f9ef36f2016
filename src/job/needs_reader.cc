#include "job/needs_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"

namespace trainyard::job {
namespace {

constexpr std::string_view kNamesWanted =
    "'needs' must be names of groups, as in [prepare, train], or tasks with the same matrix "
    "values, as in [{group: train, match: matrix}]";

/// The keys that `match` says, all of the other group's for `matrix`. Nothing after a complaint.
std::optional<std::vector<std::string>> read_match(const text::Complainer& to,
                                                   const text::YamlNode& node,
                                                   const GroupSpec& other) {
  const std::vector<std::string>& there = other.matrix.keys();
  if (node.kind == text::YamlKind::Text && node.text == "matrix") return there;
  std::vector<const text::YamlNode*> items;
  if (node.kind == text::YamlKind::Text) items.push_back(&node);
  if (node.kind == text::YamlKind::List) items.assign(node.items.begin(), node.items.end());
  if (items.empty()) {
    to.complain(node, "'match' must be 'matrix' or keys of it, as in [lr, seed]");
    return std::nullopt;
  }
  std::vector<std::string> keys;
  for (const text::YamlNode* const item : items) {
    const bool known = std::ranges::find(there, item->text) != there.end();
    if (!known) {
      const auto near =
          nearest(item->text, std::vector<std::string_view>(there.begin(), there.end()));
      to.complain(*item,
                  fmt::format("match: the matrix of group '{}' has no '{}'{}", other.name,
                              item->text, near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
      return std::nullopt;
    }
    if (std::ranges::find(keys, item->text) == keys.end()) keys.push_back(item->text);
  }
  return keys;
}

std::optional<Need> read_matched(const text::Complainer& to, const text::YamlNode& node,
                                 const std::vector<GroupSpec>& before) {
  constexpr std::array<std::string_view, 2> kKeys{"group", "match"};
  text::check_keys(to, node, kKeys, {});
  const text::YamlNode* const group = node.find("group");
  if (group == nullptr || group->kind != text::YamlKind::Text) {
    to.complain(node, kNamesWanted);
    return std::nullopt;
  }
  Need need{.group = group->text, .place = group->place, .match = {}};
  const text::YamlNode* const match = node.find("match");
  if (match == nullptr) return need;
  const auto other = std::ranges::find(before, need.group, &GroupSpec::name);
  if (other == before.end()) {
    to.complain(*group, fmt::format("match: no group '{}' before this one", need.group));
    return std::nullopt;
  }
  if (other->matrix_broken) return std::nullopt;
  if (!other->has_matrix) {
    to.complain(*match,
                fmt::format("match: group '{0}' has no matrix; 'needs: [{0}]' waits for all "
                            "of it",
                            need.group));
    return std::nullopt;
  }
  need.match = read_match(to, *match, *other);
  if (!need.match) return std::nullopt;
  return need;
}

}  // namespace

std::vector<Need> read_needs(const text::Complainer& to, const text::YamlNode& node,
                             const std::vector<GroupSpec>& before) {
  std::vector<Need> needs;
  std::vector<const text::YamlNode*> items;
  if (node.kind == text::YamlKind::List) {
    items.assign(node.items.begin(), node.items.end());
  } else if (node.kind == text::YamlKind::Text || node.kind == text::YamlKind::Mapping) {
    items.push_back(&node);
  } else {
    to.complain(node, fmt::format("{}; [] for none", kNamesWanted));
  }
  for (const text::YamlNode* const item : items) {
    if (item->kind == text::YamlKind::Text) {
      needs.push_back({.group = item->text, .place = item->place, .match = {}});
    } else if (item->kind == text::YamlKind::Mapping) {
      if (auto need = read_matched(to, *item, before)) needs.push_back(std::move(*need));
    } else {
      to.complain(*item, kNamesWanted);
    }
  }
  return needs;
}

}  // namespace trainyard::job
