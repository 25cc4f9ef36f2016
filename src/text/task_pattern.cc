#include "text/task_pattern.h"

#include <algorithm>
#include <expected>
#include <ranges>

#include <fnmatch.h>

#include <fmt/format.h>

#include "base/list_text.h"
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

/// The matrix keys of "lr=0.1,data=c,d" with their values: what follows a comma without a key of its
/// own belongs to the value before it. None if the text does not begin with a key.
std::vector<std::pair<std::string, std::string>> keys_in(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const auto each : std::views::split(text, ',')) {
    const std::string_view part(each);
    const std::size_t sign = part.find('=');
    if (sign != std::string_view::npos && is_identifier(part.substr(0, sign))) {
      keys.emplace_back(part.substr(0, sign), part.substr(sign + 1));
    } else if (keys.empty()) {
      break;
    } else {
      keys.back().second.append(",").append(part);
    }
  }
  return keys;
}

}  // namespace

Result<TaskPattern> TaskPattern::read(std::string_view text) {
  TaskPattern pattern;
  pattern.text_ = text;
  const std::size_t slash = text.find('/');
  const bool has_group = slash != std::string_view::npos;
  const std::string_view id = has_group ? text.substr(slash + 1) : text;
  pattern.keys_ = keys_in(text);
  pattern.is_without_group_ = !pattern.keys_.empty();
  if (!pattern.is_without_group_) pattern.keys_ = keys_in(id);
  if (text.empty() || slash == 0 || (id.contains('/') && pattern.keys_.empty())) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a valid name or pattern of tasks; write it as in 'lr=0.1', "
                          "'train/lr=0.1' or 'train/*'",
                          text)});
  }
  if (has_group) pattern.group_ = text.substr(0, slash);
  pattern.id_ = id;
  return pattern;
}

bool TaskPattern::is_in_group(const TaskNames& task) const {
  return group_.empty() || matches(group_, task.group) || matches(group_, task.group_in_file);
}

bool TaskPattern::has_keys(const TaskNames& task) const {
  return !keys_.empty() && std::ranges::all_of(keys_, [&task](const auto& key) {
    return std::ranges::any_of(task.keys, [&key](const auto& it) {
      return it.first == key.first && is_same_value(key.second, it.second);
    });
  });
}

bool TaskPattern::names(const TaskNames& task) const {
  if (id_ != task.id) return false;
  return group_.empty() || group_ == task.group || group_ == task.group_in_file;
}

bool TaskPattern::covers(const TaskNames& task) const {
  if (group_.empty() && (text_ == task.group || text_ == task.group_in_file)) return true;
  if (is_without_group_ && has_keys(task)) return true;
  if (!is_in_group(task)) return false;
  return id_.empty() || matches(id_, task.id) || has_keys(task);
}

TaskChoice::TaskChoice(std::vector<TaskPattern> patterns, const ForEachTask& for_each_task) {
  matches_.reserve(patterns.size());
  std::unordered_multimap<std::string_view, Matches*> by_id;
  for (TaskPattern& pattern : patterns) {
    matches_.push_back({.pattern = std::move(pattern)});
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
  auto wanted = keys_in(pattern);
  if (wanted.empty()) wanted = keys_in(pattern.substr(pattern.find('/') + 1));
  for (const auto& [name, typed] : wanted) {
    std::vector<std::string> values;
    for (const TaskNames& task : tasks) {
      for (const auto& [key, value] : task.keys) {
        if (key != name) continue;
        if (std::ranges::find(values, value) == values.end()) values.push_back(value);
      }
    }
    if (std::ranges::find(values, typed) != values.end()) continue;
    const bool is_key = !values.empty();
    if (!is_key) values = keys_of(tasks);
    if (values.empty()) return {};
    const std::string what =
        is_key ? fmt::format("values of {}", name) : std::string("matrix keys");
    return fmt::format("; the {} are {}", what, short_list_text(values, kShown));
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
