#include "job/job_needs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <ranges>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/list_text.h"
#include "base/nearest.h"
#include "job/job_binding.h"
#include "job/matrix.h"
#include "text/placeholder.h"

namespace trainyard::job {
namespace {

std::optional<std::size_t> find_group(const JobSpec& spec, std::string_view name) {
  const auto found = std::ranges::find(spec.groups, name, &GroupSpec::name);
  if (found == spec.groups.end()) return std::nullopt;
  return static_cast<std::size_t>(found - spec.groups.begin());
}

std::optional<std::size_t> find_earlier(GroupsBefore groups, std::string_view name) {
  const auto latest_first = groups | std::views::reverse;
  const auto found = std::ranges::find_if(latest_first, [name](const auto* group) {
    return group->name == name || group->called == name;
  });
  if (found == latest_first.end()) return std::nullopt;
  return static_cast<std::size_t>(latest_first.end() - found) - 1;
}

/// The groups of a repeat that need none of their round begin it: they need all of the round
/// before, and in round 0 what stands for it.
void add_round_before(const JobSpec& spec, GroupsBefore groups_before, std::size_t number,
                      Needs& needs) {
  const std::uint32_t round = spec.groups[number].round.value_or(0);
  const auto is_of_round = [&spec](model::GroupIndex it) {
    return spec.groups[it.value].round.has_value();
  };
  if (std::ranges::any_of(needs.own, is_of_round) ||
      std::ranges::any_of(needs.by_task, is_of_round)) {
    return;
  }
  const std::optional<RepeatSpec>& repeat = spec.repeat;
  if (!repeat) return;
  for (const InitialSpec& initial : repeat->initial) {
    const auto stands = find_group(spec, initial.group);
    if (round > 0 || !stands || spec.groups[*stands].round) continue;
    const model::GroupIndex index{static_cast<std::uint32_t>(*stands)};
    if (std::ranges::find(needs.own, index) == needs.own.end()) needs.own.push_back(index);
  }
  for (const GroupSpec& group : spec.groups) {
    if (round == 0) break;
    const auto before = find_earlier(groups_before, name_in_round(group.name, round - 1));
    if (before) needs.earlier.push_back({static_cast<std::uint32_t>(*before)});
  }
}

/// Index of an earlier group that users call by this name. In a later round of a repeat only groups
/// of the same job file count.
std::optional<std::size_t> find_before(const GroupSpec& needing, GroupsBefore groups,
                                       std::string_view name) {
  if (needing.round.value_or(0) == 0) return find_earlier(groups, name);
  const auto found = std::ranges::find(
      groups, name, [](const auto* group) -> std::string_view { return group->name; });
  if (found == groups.end()) return std::nullopt;
  return static_cast<std::size_t>(found - groups.begin());
}

std::string unknown_group(const JobSpec& spec, const GroupSpec& needing, GroupsBefore groups_before,
                          std::string_view name) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string_view> names;
  for (const model::PlannedGroup* const group : groups_before) names.push_back(group->shown());
  for (const GroupSpec& group : spec.groups) {
    if (&group != &needing) names.push_back(group.name);
  }
  if (const auto meant = nearest(name, names)) {
    return fmt::format("needs: group '{}' not found (did you mean '{}'?)", name, *meant);
  }
  if (names.empty()) {
    return fmt::format("needs: group '{}' not found; '{}' is the only group", name, needing.name);
  }
  return fmt::format("needs: group '{}' not found; other groups: {}", name,
                     short_list_text(names, kShown));
}

using Circle = std::vector<std::size_t>;

/// Removes groups whose needs are all removed, until none is left to remove: the remaining groups
/// are on a circle or need one that is.
void take_off(const std::vector<Needs>& needs, std::vector<bool>& done) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (done[i]) continue;
      const auto is_done = [&](model::GroupIndex need) { return done[need.value]; };
      const bool ready = std::ranges::all_of(needs[i].own, is_done) &&
                         std::ranges::all_of(needs[i].by_task, is_done);
      if (ready) done[i] = changed = true;
    }
  }
}

/// Paths through groups that end where they start, no two of them through the same group. At most
/// as many as are reported.
std::vector<Circle> find_circles(const std::vector<Needs>& needs) {
  std::vector<Circle> circles;
  std::vector<bool> done(needs.size(), false);
  while (circles.size() < text::MistakeList::kShownMax) {
    take_off(needs, done);
    const auto left = std::ranges::find(done, false);
    if (left == done.end()) break;
    Circle way{static_cast<std::size_t>(left - done.begin())};
    auto seen = way.end();
    while (seen == way.end()) {
      const auto is_open = [&](model::GroupIndex need) { return !done[need.value]; };
      const Needs& last = needs[way.back()];
      auto next = std::ranges::find_if(last.own, is_open);
      if (next == last.own.end()) next = std::ranges::find_if(last.by_task, is_open);
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

/// The place where a group says that it needs another.
text::Place place_of_need(const GroupSpec& group, std::string_view name) {
  if (!group.needs) return group.place;
  const auto said = std::ranges::find(*group.needs, name, &Need::group);
  return said == group.needs->end() ? group.place : said->place;
}

void complain_of_circle(const JobSpec& spec, const Circle& circle,
                        const text::YamlDocument& document, text::MistakeList& mistakes) {
  std::string text;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const GroupSpec& group = spec.groups[circle[i]];
    const GroupSpec& next = spec.groups[circle[(i + 1) % circle.size()]];
    text += fmt::format("{}'{}' needs '{}'{}", i == 0 ? "" : ", ", group.name, next.name,
                        group.needs ? "" : " (the group before it)");
  }
  const GroupSpec& group = spec.groups[circle.front()];
  const GroupSpec& next = spec.groups[circle[1 % circle.size()]];
  mistakes.add(document.mistake(place_of_need(group, next.name),
                                fmt::format("group '{}': cycle in 'needs': {}", group.name, text)));
}

/// The combinations of a group by their values for some keys.
std::map<Cell, std::vector<std::size_t>> combinations_by_cell(
    const GroupSpec& group, const std::vector<std::string>& keys) {
  std::map<Cell, std::vector<std::size_t>> by_cell;
  const CellReader reader(group.matrix, keys);
  for (std::size_t i = 0; i < group.matrix.size(); ++i) by_cell[reader.cell(i)].push_back(i);
  return by_cell;
}

/// A group whose tasks are matched, and the first of its tasks.
struct Matched {
  const GroupSpec& group;
  std::uint32_t start = 0;
};

/// By combination of `own`, the tasks of `other` of the same cell. Nothing where one has none: that
/// is a combination of `own`.
struct Partners {
  std::vector<std::vector<std::uint32_t>> tasks;
  std::optional<std::size_t> without;
};

Partners partners_of(const Matched& own, const Matched& other,
                     const std::vector<std::string>& keys) {
  const auto by_cell = combinations_by_cell(other.group, keys);
  const CellReader reader(own.group.matrix, keys);
  Partners partners;
  partners.tasks.resize(own.group.matrix.size());
  for (std::size_t i = 0; i < own.group.matrix.size(); ++i) {
    const auto there = by_cell.find(reader.cell(i));
    if (there == by_cell.end()) {
      partners.without = i;
      return partners;
    }
    for (const std::size_t combination : there->second) {
      const std::size_t first = combination * other.group.tasks.size();
      for (std::size_t task = 0; task < other.group.tasks.size(); ++task) {
        partners.tasks[i].push_back(other.start + static_cast<std::uint32_t>(first + task));
      }
    }
  }
  return partners;
}

/// Matches the groups of a job, one after the other.
class Matcher {
 public:
  Matcher(const JobSpec& spec, std::span<const std::uint32_t> starts,
          const text::YamlDocument& document, text::MistakeList& mistakes)
      : spec_(spec), starts_(starts), document_(document), mistakes_(mistakes) {}

  std::vector<model::TaskNeed> match() && {
    for (std::size_t i = 0; i < spec_.groups.size(); ++i) {
      const Matched own{.group = spec_.groups[i], .start = starts_[i]};
      if (!own.group.needs || own.group.matrix_broken) continue;
      const auto before = static_cast<std::ptrdiff_t>(all_.size());
      for (const Need& need : *own.group.needs) {
        if (!add(own, need)) return {};
      }
      std::ranges::sort(all_.begin() + before, all_.end());
      const auto twice = std::ranges::unique(all_.begin() + before, all_.end());
      all_.erase(twice.begin(), twice.end());
    }
    return std::move(all_);
  }

 private:
  /// False after a mistake.
  bool add(const Matched& own, const Need& need) {
    const auto found = std::ranges::find(spec_.groups, need.group, &GroupSpec::name);
    if (!need.match || found == spec_.groups.end() || found->matrix_broken) return true;
    const auto place = static_cast<std::size_t>(found - spec_.groups.begin());
    const Partners partners =
        partners_of(own, {.group = *found, .start = starts_[place]}, *need.match);
    if (partners.without) {
      text::Bindings bindings;
      bind_combination(own.group, *partners.without, bindings);
      return complain(own, need,
                      fmt::format("group '{}' has no task for the combination {}", need.group,
                                  combination_text(own.group, bindings)));
    }
    std::uint32_t task = own.start;
    for (const std::vector<std::uint32_t>& needed : partners.tasks) {
      for (std::size_t k = 0; k < own.group.tasks.size(); ++k, ++task) {
        for (const std::uint32_t it : needed) all_.push_back({.task = {task}, .needed = {it}});
      }
      if (all_.size() > kTaskNeedsMax) {
        return complain(
            own, need,
            fmt::format("the tasks of the job need more than {} others in all", kTaskNeedsMax));
      }
    }
    return true;
  }

  bool complain(const Matched& own, const Need& need, const std::string& message) {
    mistakes_.add(document_.mistake(need.place,
                                    fmt::format("group '{}': needs: {}", own.group.name, message)));
    return false;
  }

  const JobSpec& spec_;
  std::span<const std::uint32_t> starts_;
  const text::YamlDocument& document_;
  text::MistakeList& mistakes_;
  std::vector<model::TaskNeed> all_;
};

}  // namespace

std::vector<Needs> resolve_needs(const JobSpec& spec, GroupsBefore groups_before,
                                 const text::YamlDocument& document, text::MistakeList& mistakes) {
  std::vector<Needs> needs(spec.groups.size());
  const auto add = [](std::vector<model::GroupIndex>& to, std::size_t group) {
    const model::GroupIndex index{static_cast<std::uint32_t>(group)};
    if (std::ranges::find(to, index) == to.end()) to.push_back(index);
  };
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const GroupSpec& group = spec.groups[i];
    if (!group.needs) {
      if (i > 0) add(needs[i].own, i - 1);
      continue;
    }
    for (const auto& [name, place, match] : *group.needs) {
      if (const auto own = find_group(spec, name)) {
        add(match ? needs[i].by_task : needs[i].own, *own);
      } else if (const auto earlier = find_before(group, groups_before, name)) {
        add(needs[i].earlier, *earlier);
      } else {
        mistakes.add(
            document.mistake(place, fmt::format("group '{}': {}", group.name,
                                                unknown_group(spec, group, groups_before, name))));
      }
    }
  }
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    if (spec.groups[i].round) add_round_before(spec, groups_before, i, needs[i]);
  }
  for (const Circle& circle : find_circles(needs)) {
    complain_of_circle(spec, circle, document, mistakes);
  }
  return needs;
}

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

std::vector<model::TaskNeed> match_tasks(const JobSpec& spec, std::span<const std::uint32_t> starts,
                                         const text::YamlDocument& document,
                                         text::MistakeList& mistakes) {
  return Matcher(spec, starts, document, mistakes).match();
}

}  // namespace trainyard::job
