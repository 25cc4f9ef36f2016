#include "job/group_names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include "model/plan.h"

namespace trainyard::job {
namespace {

bool was_shown(GroupsBefore groups, std::string_view name) {
  return std::ranges::any_of(
      groups, [name](const model::PlannedGroup* group) { return group->shown() == name; });
}

/// Whether a group of this name may be part of a later round of the run's repeat.
bool is_of_a_round(GroupsBefore groups, std::string_view name) {
  const auto of = read_name_in_round(name);
  return of && std::ranges::any_of(groups, [&of](const model::PlannedGroup* it) {
           return it->name == of->group && it->called == name_in_round(of->group, 0);
         });
}

}  // namespace

std::string name_in_round(std::string_view group, std::uint32_t round) {
  return fmt::format("{}.{}", group, round);
}

std::optional<RoundOfGroup> read_name_in_round(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  RoundOfGroup read{.group = name.substr(0, dot)};
  const std::string_view digits = name.substr(dot + 1);
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, read.round);
  if (error != std::errc{} || rest != end || name != name_in_round(read.group, read.round)) {
    return std::nullopt;
  }
  return read;
}

std::string called_in_run(const GroupSpec& group, const JobSpec& spec, std::uint32_t batch,
                          GroupsBefore groups_before) {
  if (group.round) return name_in_round(group.name, *group.round);
  std::string other = group.name;
  if (!was_shown(groups_before, other) && !is_of_a_round(groups_before, other)) return {};
  const auto is_taken = [&] {
    return was_shown(groups_before, other) ||
           std::ranges::find(spec.groups, other, &GroupSpec::name) != spec.groups.end();
  };
  do other += fmt::format(" ({})", batch);
  while (is_taken());
  return other;
}

}  // namespace trainyard::job
