#include "config/job_needs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "config/job_spec.h"
#include "config/mistake.h"
#include "config/yaml_reader.h"
#include "model/ids.h"

namespace trainyard {
namespace {

using Needs = std::vector<std::vector<GroupIndex>>;

std::optional<std::size_t> find_group(const JobSpec& spec, std::string_view name) {
  const auto found = std::ranges::find(spec.groups, name, &GroupSpec::name);
  if (found == spec.groups.end()) return std::nullopt;
  return static_cast<std::size_t>(found - spec.groups.begin());
}

std::string unknown_group(const JobSpec& spec, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(spec.groups.size());
  for (const GroupSpec& group : spec.groups) names.push_back(group.name);
  if (const auto meant = nearest(name, names)) {
    return fmt::format("needs: there is no group '{}', did you mean '{}'?", name, *meant);
  }
  return fmt::format("needs: there is no group '{}'", name);
}

/// A way through groups that ends where it starts; empty when there is none. Groups come off one by
/// one once nothing they need is left; what cannot come off is on a circle or needs one.
std::vector<std::size_t> find_circle(const Needs& needs) {
  std::vector<bool> done(needs.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (done[i]) continue;
      const bool ready =
          std::ranges::all_of(needs[i], [&](GroupIndex need) { return done[need.value]; });
      if (ready) done[i] = changed = true;
    }
  }
  const auto left = std::ranges::find(done, false);
  if (left == done.end()) return {};
  std::vector<std::size_t> way{static_cast<std::size_t>(left - done.begin())};
  while (true) {
    const auto next =
        std::ranges::find_if(needs[way.back()], [&](GroupIndex need) { return !done[need.value]; });
    const std::size_t group = next->value;
    const auto seen = std::ranges::find(way, group);
    if (seen != way.end()) return {seen, way.end()};
    way.push_back(group);
  }
}

void check_circle(const JobSpec& spec, const Needs& needs, const YamlDocument& document,
                  MistakeList& mistakes) {
  const std::vector<std::size_t> circle = find_circle(needs);
  if (circle.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const GroupSpec& group = spec.groups[circle[i]];
    const GroupSpec& next = spec.groups[circle[(i + 1) % circle.size()]];
    text += fmt::format("{}'{}' needs '{}'{}", i == 0 ? "" : ", ", group.name, next.name,
                        group.needs ? "" : " (the group before it)");
  }
  const GroupSpec& group = spec.groups[circle.front()];
  const Place place =
      group.needs && !group.needs->empty() ? group.needs->front().second : group.place;
  mistakes.add(document.mistake(
      place,
      fmt::format("group '{}': the groups need each other in a circle: {}", group.name, text)));
}

}  // namespace

Needs resolve_needs(const JobSpec& spec, const YamlDocument& document, MistakeList& mistakes) {
  Needs needs(spec.groups.size());
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const GroupSpec& group = spec.groups[i];
    if (!group.needs) {
      if (i > 0) needs[i].push_back({static_cast<std::uint32_t>(i - 1)});
      continue;
    }
    for (const auto& [name, place] : *group.needs) {
      const auto found = find_group(spec, name);
      if (!found) {
        mistakes.add(document.mistake(
            place, fmt::format("group '{}': {}", group.name, unknown_group(spec, name))));
        continue;
      }
      const GroupIndex index{static_cast<std::uint32_t>(*found)};
      if (std::ranges::find(needs[i], index) == needs[i].end()) needs[i].push_back(index);
    }
  }
  check_circle(spec, needs, document, mistakes);
  return needs;
}

}  // namespace trainyard
