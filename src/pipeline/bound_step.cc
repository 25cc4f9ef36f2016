#include "pipeline/bound_step.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fnmatch.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/match.h"
#include "base/nearest.h"

namespace trainyard::pipeline {

bool BoundStep::waits() const {
  return (node != nullptr && node->waits()) || !nested.empty() ||
         std::ranges::any_of(parts, [](const auto& part) { return part->waits(); });
}

void BoundStep::drop() noexcept {
  if (node) node->drop();
  for (const auto& part : std::views::reverse(parts)) part->drop();
  while (!nested.empty()) {
    NestedCall& call = *nested.back();
    nested.pop_back();
    call.step->drop();
    call.taken.store(false);
  }
}

namespace {

using detail::StepKind;
using detail::StepRules;
using detail::StepTree;
using detail::Touched;

/// Labels that pipelines have elsewhere: a pattern for one of them is not a mistake here.
constexpr std::array<std::string_view, 4> kElsewhere{"standalone", "distributed", "async",
                                                     "node.1"};

bool matches(const std::string& pattern, const std::string& label) {
  return fnmatch(pattern.c_str(), label.c_str(), 0) == 0;
}

StepError mistake(const std::string& step, const std::string& text) {
  return {.step = step,
          .message = text,
          .error = std::make_exception_ptr(
              std::invalid_argument(fmt::format("step '{}': {}", step, text)))};
}

std::optional<std::string> label_mistake(const std::string& pattern,
                                         const Surroundings& surroundings) {
  if (match_any({pattern}, surroundings.labels)) return std::nullopt;
  if (pattern.starts_with("node.")) return std::nullopt;
  for (const std::string_view label : kElsewhere) {
    if (matches(pattern, std::string(label))) return std::nullopt;
  }
  std::vector<std::string_view> known(surroundings.labels.begin(), surroundings.labels.end());
  known.insert(known.end(), std::begin(kElsewhere), std::end(kElsewhere));
  const auto meant = nearest(pattern, known);
  return fmt::format("no pipeline has a label that matches '{}'; this one has {}{}", pattern,
                     fmt::join(surroundings.labels, ", "),
                     meant ? fmt::format(" (did you mean '{}'?)", *meant) : "");
}

bool plays(const std::vector<Role>& roles, const Surroundings& surroundings) {
  return roles.empty() ||
         std::ranges::any_of(roles, [&](Role role) { return has_role(surroundings, role); });
}

/// Where there is no other pipeline that could play them.
std::optional<std::string> role_mistake(const std::vector<Role>& roles,
                                        const Surroundings& surroundings) {
  if (!surroundings.is_alone || plays(roles, surroundings)) return std::nullopt;
  const auto names = [](const std::vector<Role>& of) {
    std::vector<std::string_view> all;
    std::ranges::transform(of, std::back_inserter(all), &Role::name);
    return fmt::format("{}", fmt::join(all, ", "));
  };
  return fmt::format("it is for {}, and this pipeline is {}: nobody runs it", names(roles),
                     names(surroundings.roles));
}

StepLock* lock_of(const StepRules& rules, const Surroundings& surroundings) {
  return match(
      rules.lock, [](NoLock) -> StepLock* { return nullptr; },
      [&](SharedLock) { return surroundings.shared_lock; }, [](StepLock* lock) { return lock; });
}

/// A part that runs on another thread than the group that holds its lock would wait for ever.
/// `step` is around `group`, or is it.
void check_locks(const BoundStep& step, const BoundStep& group, bool apart,
                 std::vector<StepError>& mistakes) {
  const bool beside = apart || group.kind == StepKind::Parallel;
  for (const auto& part : group.parts) {
    if (beside && part->lock != nullptr && part->lock == step.lock) {
      mistakes.push_back(mistake(
          part->path, fmt::format("its lock is held by '{}', which waits for it", step.path)));
    }
    check_locks(step, *part, beside, mistakes);
  }
}

/// A group touches what its parts touch, unless it says so itself.
void gather_touches(BoundStep& group) {
  if (!group.touches_all) return;
  group.touches_all = group.parts.empty() || std::ranges::any_of(group.parts, [](const auto& part) {
                        return part->touches_all;
                      });
  if (group.touches_all) return;
  for (const auto& part : group.parts) {
    group.reads.insert(group.reads.end(), part->reads.begin(), part->reads.end());
    group.writes.insert(group.writes.end(), part->writes.begin(), part->writes.end());
  }
}

/// "serial<collect,2>"; nothing for a single step.
std::string name_of_group(const StepTree& tree) {
  if (tree.kind != StepKind::Serial && tree.kind != StepKind::Parallel) return {};
  std::vector<std::string> parts;
  parts.reserve(tree.parts.size());
  for (const StepTree& part : tree.parts) {
    parts.push_back(part.name.empty() ? std::to_string(parts.size() + 1) : part.name);
  }
  return fmt::format("{}<{}>", tree.kind == StepKind::Serial ? "serial" : "parallel",
                     fmt::join(parts, ","));
}

bool overlap(const std::vector<Touched>& some, const std::vector<Touched>& others,
             const Context& context) {
  return std::ranges::any_of(some, [&](const Touched& one) {
    return std::ranges::any_of(others,
                               [&](const Touched& it) { return one.overlaps(it, context); });
  });
}

bool conflict(const BoundStep& one, const BoundStep& other, const Context& context) {
  return one.touches_all || other.touches_all || overlap(one.writes, other.writes, context) ||
         overlap(one.writes, other.reads, context) || overlap(one.reads, other.writes, context);
}

}  // namespace

bool match_any(const std::vector<std::string>& patterns, const std::vector<std::string>& labels) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return std::ranges::any_of(labels,
                               [&](const std::string& label) { return matches(pattern, label); });
  });
}

bool has_role(const Surroundings& surroundings, Role role) {
  return surroundings.roles.empty() ||
         std::ranges::find(surroundings.roles, role) != surroundings.roles.end();
}

std::unique_ptr<BoundStep> bind_step(StepTree tree, std::string path,
                                     const Surroundings& surroundings,
                                     std::vector<StepError>& mistakes) {
  const std::size_t mistakes_before = mistakes.size();
  for (const std::string& pattern : tree.rules.where) {
    if (auto text = label_mistake(pattern, surroundings)) mistakes.push_back(mistake(path, *text));
  }
  const bool here = tree.rules.where.empty() || match_any(tree.rules.where, surroundings.labels);
  if (here) {
    if (auto text = role_mistake(tree.rules.roles, surroundings))
      mistakes.push_back(mistake(path, *text));
  }
  if (!here || mistakes.size() > mistakes_before) return nullptr;
  if (!plays(tree.rules.roles, surroundings)) return nullptr;

  auto bound = std::make_unique<BoundStep>();
  bound->path = std::move(path);
  bound->kind = tree.kind;
  bound->node = std::move(tree.node);
  bound->lock = lock_of(tree.rules, surroundings);
  bound->touches_all = tree.rules.reads.empty() && tree.rules.writes.empty();
  bound->reads = std::move(tree.rules.reads);
  bound->writes = std::move(tree.rules.writes);
  bound->pipeline = surroundings.pipeline;
  std::vector<std::string> names;
  for (StepTree& part : tree.parts) {
    if (part.name.empty()) part.name = std::to_string(names.size() + 1);
    names.push_back(unused_name(part.name, part, names.size() + 1, names));
    auto one = bind_step(std::move(part), fmt::format("{}/{}", bound->path, names.back()),
                         surroundings, mistakes);
    if (!one) continue;
    one->around = bound.get();
    one->is_part = true;
    bound->parts.push_back(std::move(one));
  }
  if (!bound->node && bound->parts.empty()) return nullptr;
  gather_touches(*bound);
  if (bound->lock != nullptr) check_locks(*bound, *bound, false, mistakes);
  if (bound->kind == StepKind::Parallel) {
    bound->together = std::make_unique<SideBySide>(
        bound->parts.size(), std::span<const std::pair<std::size_t, std::size_t>>{},
        SideBySide::Order::Upward);
    bound->part_errors.resize(bound->parts.size());
  }
  return bound;
}

void check_locks_of_callers(BoundStep& nested) {
  std::vector<StepError> mistakes;
  for (const BoundStep* step = nested.around; step != nullptr; step = step->around) {
    if (step->lock != nullptr) check_locks(*step, nested, false, mistakes);
  }
  if (!mistakes.empty()) std::rethrow_exception(mistakes.front().error);
}

std::string unused_name(std::string name, const StepTree& tree, std::size_t number,
                        const std::vector<std::string>& taken) {
  if (name.empty()) name = tree.name;
  if (name.empty()) name = name_of_group(tree);
  if (name.empty()) name = fmt::format("step-{}", number);
  std::string unused = name;
  for (int copy = 2; std::ranges::find(taken, unused) != taken.end(); ++copy) {
    unused = fmt::format("{}#{}", name, copy);
  }
  return unused;
}

std::vector<std::pair<std::size_t, std::size_t>> conflicts(
    const std::vector<std::unique_ptr<BoundStep>>& steps, const Context& context) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  // A pair that follows from other pairs is left out.
  std::vector<std::vector<bool>> follows(steps.size(), std::vector<bool>(steps.size()));
  for (std::size_t later = 0; later < steps.size(); ++later) {
    for (std::size_t earlier = later; earlier-- > 0;) {
      if (follows[later][earlier] || !conflict(*steps[earlier], *steps[later], context)) continue;
      pairs.emplace_back(earlier, later);
      follows[later][earlier] = true;
      for (std::size_t i = 0; i < earlier; ++i) {
        if (follows[earlier][i]) follows[later][i] = true;
      }
    }
  }
  return pairs;
}

std::size_t NestedSteps::add(std::string name, MakeTree make, detail::StepRules rules) {
  const std::scoped_lock lock(mutex_);
  Nested& nested = *all_.emplace_back(std::make_unique<Nested>());
  nested.name = std::move(name);
  nested.make = std::move(make);
  nested.rules = std::move(rules);
  return count_++;
}

NestedCall& NestedSteps::take(std::size_t index, BoundStep* caller,
                              const Surroundings& surroundings) {
  const std::scoped_lock lock(mutex_);
  Nested& nested = *all_.at(index);
  if (caller == nullptr || caller->pipeline != surroundings.pipeline) {
    throw std::logic_error(fmt::format(
        "nested step '{}' is called outside of the steps of its pipeline", nested.name));
  }
  NestedCall& call = take_free(nested, surroundings);
  call.caller = caller;
  call.step->around = caller;
  ++call.number;
  return call;
}

void NestedSteps::bind_new(const Surroundings& surroundings, std::vector<StepError>& mistakes) {
  const std::scoped_lock lock(mutex_);
  for (const auto& nested : all_) {
    if (std::exchange(nested->bound, true)) continue;
    auto call = make_call(*nested, surroundings, mistakes);
    if (call) nested->calls.push_back(std::move(call));
  }
}

NestedCall& NestedSteps::take_free(Nested& nested, const Surroundings& surroundings) {
  for (const auto& call : nested.calls) {
    if (!call->taken.exchange(true)) return *call;
  }
  std::vector<StepError> mistakes;
  auto call = make_call(nested, surroundings, mistakes);
  if (!mistakes.empty()) std::rethrow_exception(mistakes.front().error);
  if (!call) {
    throw std::logic_error(fmt::format("nested step '{}' is not placed here", nested.name));
  }
  call->taken = true;
  return *nested.calls.emplace_back(std::move(call));
}

std::unique_ptr<NestedCall> NestedSteps::make_call(const Nested& nested,
                                                   const Surroundings& surroundings,
                                                   std::vector<StepError>& mistakes) {
  detail::StepTree tree = nested.make();
  tree.rules = nested.rules;
  auto step = bind_step(std::move(tree), nested.name, surroundings, mistakes);
  if (!step) return nullptr;
  auto call = std::make_unique<NestedCall>();
  call->step = std::move(step);
  call->step->is_part = true;
  return call;
}

}  // namespace trainyard::pipeline
