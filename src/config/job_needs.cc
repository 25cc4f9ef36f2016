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

using Circle = std::vector<std::size_t>;

/// Takes off what needs nothing that is left, until nothing comes off any more: what is left then
/// is on a circle or needs one.
void take_off(const Needs& needs, std::vector<bool>& done) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (done[i]) continue;
      const bool ready =
          std::ranges::all_of(needs[i], [&](GroupIndex need) { return done[need.value]; });
      if (ready) done[i] = changed = true;
    }
  }
}

/// Ways through groups that end where they start, no two of them through the same group. At most as
/// many as are told.
std::vector<Circle> find_circles(const Needs& needs) {
  std::vector<Circle> circles;
  std::vector<bool> done(needs.size(), false);
  while (circles.size() < MistakeList::kShownMax) {
    take_off(needs, done);
    const auto left = std::ranges::find(done, false);
    if (left == done.end()) break;
    Circle way{static_cast<std::size_t>(left - done.begin())};
    auto seen = way.end();
    while (seen == way.end()) {
      const auto next = std::ranges::find_if(needs[way.back()],
                                             [&](GroupIndex need) { return !done[need.value]; });
      seen = std::ranges::find(way, std::size_t{next->value});
      if (seen == way.end()) {
        way.emplace_back(next->value);
        seen = way.end();
      }
    }
    circles.emplace_back(seen, way.end());
    for (const std::size_t group : circles.back()) done[group] = true;
  }
  return circles;
}

/// Where a group says that it needs another.
Place place_of_need(const GroupSpec& group, std::string_view name) {
  if (!group.needs) return group.place;
  const auto said =
      std::ranges::find(*group.needs, name, [](const auto& need) { return need.first; });
  return said == group.needs->end() ? group.place : said->second;
}

void complain_of_circle(const JobSpec& spec, const Circle& circle, const YamlDocument& document,
                        MistakeList& mistakes) {
  std::string text;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const GroupSpec& group = spec.groups[circle[i]];
    const GroupSpec& next = spec.groups[circle[(i + 1) % circle.size()]];
    text += fmt::format("{}'{}' needs '{}'{}", i == 0 ? "" : ", ", group.name, next.name,
                        group.needs ? "" : " (the group before it)");
  }
  const GroupSpec& group = spec.groups[circle.front()];
  const GroupSpec& next = spec.groups[circle[1 % circle.size()]];
  mistakes.add(document.mistake(
      place_of_need(group, next.name),
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
  for (const Circle& circle : find_circles(needs)) {
    complain_of_circle(spec, circle, document, mistakes);
  }
  return needs;
}

}  // namespace trainyard
