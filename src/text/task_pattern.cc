#include "text/task_pattern.h"

#include <algorithm>
#include <expected>
#include <ranges>

#include <fnmatch.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/number_text.h"
#include "text/placeholder.h"

namespace trainyard::text {
namespace {

bool has_wildcard(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

/// A pattern that is not valid for the shell ("[1") matches nothing but itself.
bool matches(const std::string& pattern, std::string_view text) {
  if (pattern == text) return true;
  return has_wildcard(pattern) && ::fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

bool is_same_value(const std::string& written, const std::string& value) {
  if (matches(written, value)) return true;
  const auto number = number_in(written);
  return number && number == number_in(value);
}

}  // namespace

Result<TaskPattern> TaskPattern::read(std::string_view text) {
  TaskPattern pattern;
  pattern.text_ = text;
  const std::size_t slash = text.find('/');
  const bool has_group = slash != std::string_view::npos;
  const std::string_view id = has_group ? text.substr(slash + 1) : text;
  if (text.empty() || slash == 0 || id.contains('/')) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a valid name or pattern of tasks; write it as in 'lr=0.1', "
                          "'train/lr=0.1' or 'train/*'",
                          text)});
  }
  if (has_group) pattern.group_ = text.substr(0, slash);
  pattern.id_ = id;
  for (std::string_view rest = id; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t sign = part.find('=');
    if (sign == std::string_view::npos || !is_identifier(part.substr(0, sign))) {
      pattern.keys_.clear();
      break;
    }
    pattern.keys_.push_back(
        {.name = std::string(part.substr(0, sign)), .value = std::string(part.substr(sign + 1))});
  }
  return pattern;
}

bool TaskPattern::is_in_group(const TaskNames& task) const {
  return group_.empty() || matches(group_, task.group) || matches(group_, task.group_in_file);
}

bool TaskPattern::has_keys(const TaskNames& task) const {
  return !keys_.empty() && std::ranges::all_of(keys_, [&task](const Key& key) {
    return std::ranges::any_of(task.keys, [&key](const auto& it) {
      return it.first == key.name && is_same_value(key.value, it.second);
    });
  });
}

bool TaskPattern::names(const TaskNames& task) const {
  if (id_ != task.id) return false;
  return group_.empty() || group_ == task.group || group_ == task.group_in_file;
}

bool TaskPattern::covers(const TaskNames& task) const {
  if (group_.empty() && (text_ == task.group || text_ == task.group_in_file)) return true;
  if (!is_in_group(task)) return false;
  return id_.empty() || matches(id_, task.id) || has_keys(task);
}

TaskChoice::TaskChoice(std::vector<TaskPattern> patterns, const ForEachTask& for_each_task) {
  matches_.reserve(patterns.size());
  std::unordered_multimap<std::string_view, Matches*> by_id;
  for (TaskPattern& pattern : patterns) {
    matches_.push_back({.pattern = std::move(pattern), .called = {}, .named = {}, .covered = {}});
    by_id.emplace(matches_.back().pattern.id(), &matches_.back());
  }
  for_each_task([&](const TaskNames& task) {
    for (auto [at, end] = by_id.equal_range(task.id); at != end; ++at) {
      Matches& it = *at->second;
      if (!it.pattern.names(task)) continue;
      const bool called = it.pattern.text() == fmt::format("{}/{}", task.group, task.id);
      (called ? it.called : it.named).push_back(tasks_);
    }
    ++tasks_;
  });
  std::vector<Matches*> unnamed;
  for (Matches& it : matches_) {
    if (it.called.empty() && it.named.empty()) unnamed.push_back(&it);
  }
  if (unnamed.empty()) return;
  std::size_t place = 0;
  for_each_task([&](const TaskNames& task) {
    for (Matches* it : unnamed) {
      if (it->pattern.covers(task)) it->covered.push_back(place);
    }
    ++place;
  });
}

std::vector<TaskChoice::Meant> TaskChoice::meant() const {
  std::vector<Meant> meant;
  meant.reserve(matches_.size());
  for (const Matches& it : matches_) {
    const std::vector<std::size_t>& named = it.called.empty() ? it.named : it.called;
    meant.push_back({.text = it.pattern.text(),
                     .tasks = named.empty() ? it.covered : named,
                     .by_name = !named.empty()});
  }
  return meant;
}

namespace {

std::vector<std::string> keys_of(std::span<const TaskNames> tasks) {
  std::vector<std::string> keys;
  for (const TaskNames& task : tasks) {
    for (const auto& [key, value] : task.keys) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace

std::string values_instead(std::string_view pattern, std::span<const TaskNames> tasks) {
  constexpr std::size_t kShown = 8;
  for (const auto part : std::views::split(pattern.substr(pattern.find('/') + 1), ',')) {
    const std::string_view word(part.begin(), part.end());
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return {};
    std::vector<std::string> values;
    for (const TaskNames& task : tasks) {
      for (const auto& [key, value] : task.keys) {
        if (key != word.substr(0, equals)) continue;
        if (std::ranges::find(values, value) == values.end()) values.push_back(value);
      }
    }
    if (std::ranges::find(values, word.substr(equals + 1)) != values.end()) continue;
    const bool is_key = !values.empty();
    if (!is_key) values = keys_of(tasks);
    if (values.empty()) return {};
    const std::size_t more = values.size() - std::min(values.size(), kShown);
    values.resize(values.size() - more);
    const std::string what =
        is_key ? fmt::format("values of {}", word.substr(0, equals)) : std::string("matrix keys");
    return fmt::format("; the {} are {}{}", what, fmt::join(values, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  }
  return {};
}

std::vector<bool> TaskChoice::chosen() const {
  std::vector<bool> chosen(tasks_, matches_.empty());
  for (const Meant& meant : meant()) {
    for (const std::size_t task : meant.tasks) chosen[task] = true;
  }
  return chosen;
}

}  // namespace trainyard::text
