// What a step says of itself when it is registered: what it reads and writes, what it must not run
// beside, and where it belongs. Plain values; any thread.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainyard/context.h"

namespace trainyard {

/// What a node of a parallel pipeline is for (DI-engine `Role`). Others are as easily made:
/// constexpr trainyard::Role kLogger{"logger"};
struct Role {
  std::string_view name;
  friend auto operator<=>(Role, Role) = default;
};
namespace role {
inline constexpr Role kLearner{"learner"};
inline constexpr Role kCollector{"collector"};
inline constexpr Role kEvaluator{"evaluator"};
inline constexpr Role kFetcher{"fetcher"};
}  // namespace role

/// A part of what steps share: a member of this pipeline's context, or anything else by a name.
class Touch {
 public:
  struct Range {
    std::size_t first = 0;
    std::size_t size = 0;
  };

  template <class Class, class Member>
    requires std::derived_from<Class, Context>
  Touch(Member Class::* member)  // NOLINT(google-explicit-constructor): {&Train::model, "buffer"}
      : range_([member](const Context& context) {
          const auto* const first = reinterpret_cast<const std::byte*>(&context);
          const auto* const at =
              reinterpret_cast<const std::byte*>(&(static_cast<const Class&>(context).*member));
          return Range{.first = static_cast<std::size_t>(at - first), .size = sizeof(Member)};
        }) {}
  Touch(const char* name) : name_(name) {}             // NOLINT(google-explicit-constructor)
  Touch(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool overlaps(const Touch& other, const Context& context) const;

 private:
  std::string name_;
  std::function<Range(const Context&)> range_;
};
/// For a step that touches nothing that others do: {.writes = {trainyard::nothing}}.
inline constexpr const char* nothing = "";

/// Steps with the same lock never run at the same time, in neither half. One thread may take it
/// again. It must outlive the pipelines that use it.
class StepLock {
 public:
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};
struct NoLock {};
struct SharedLock {};
/// The one lock that every pipeline has of its own.
inline constexpr SharedLock shared_lock;

struct StepOptions {
  /// Steps that touch nothing in common, or only read it, may run side by side where the pipeline
  /// is async. One that names nothing may touch everything, and keeps its place in the order.
  /// `total_step` and `last` need not be named: no step writes them. What a nested step touches is
  /// said by the steps that call it.
  std::vector<Touch> reads;
  std::vector<Touch> writes;
  /// {.lock = trainyard::shared_lock}, or {.lock = &mine}.
  std::variant<NoLock, SharedLock, StepLock*> lock;
  /// It runs only where a label of the pipeline matches one of these patterns (*, ?, [abc]).
  /// Empty: everywhere.
  std::vector<std::string> where;
  /// It runs only in a pipeline with one of these roles, or in one without roles. Empty: in all.
  std::vector<Role> roles;
};

}  // namespace trainyard
