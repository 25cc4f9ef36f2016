#include "job/matching.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "job/job_binding.h"
#include "job/matrix.h"
#include "text/placeholder.h"

namespace trainyard::job {
namespace {

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

std::vector<model::TaskNeed> match_tasks(const JobSpec& spec, std::span<const std::uint32_t> starts,
                                         const text::YamlDocument& document,
                                         text::MistakeList& mistakes) {
  return Matcher(spec, starts, document, mistakes).match();
}

}  // namespace trainyard::job
