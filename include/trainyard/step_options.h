// The options of a step when it is registered: the members and resources that it reads and writes,
// its lock, and where it runs. Plain values; any thread.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainyard/context.h"

namespace trainyard {

/// The role of a node of a parallel pipeline (DI-engine `Role`). Others are as easily made:
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

/// A resource that steps share and no context has as a member: a replay buffer, a model, a file.
/// Declared once, so that a name that is spelt wrong does not compile:
///   inline constexpr trainyard::Resource kReplay{"replay"};
/// Two of one name are one. The name is a literal.
struct Resource {
  constexpr explicit Resource(std::string_view literal) : name(literal) {}
  std::string_view name;
};
/// For a step that touches nothing that others do: {.writes = {trainyard::nothing}}.
inline constexpr Resource nothing{""};

namespace detail {

/// A part of what steps share, whatever the context.
struct Touched {
  struct Range {
    std::size_t first = 0;
    std::size_t size = 0;
  };
  std::string_view resource = {};
  std::function<Range(const Context&)> member = {};  ///< Empty: it is the resource.

  [[nodiscard]] bool overlaps(const Touched& other, const Context& context) const;
};

}  // namespace detail

/// A part of what the steps of a pipeline of C share: a member of it, or a Resource.
template <class C>
class Touch {
 public:
  template <class Class, class Member>
  Touch(Member Class::* member) {  // NOLINT(google-explicit-constructor): {&Train::model, kReplay}
    static_assert(std::derived_from<C, Class>, "a step touches members of its own context");
    touched_.member = [member](const Context& context) {
      const auto* const first = reinterpret_cast<const std::byte*>(&context);
      const auto* const at =
          reinterpret_cast<const std::byte*>(&(static_cast<const C&>(context).*member));
      return detail::Touched::Range{.first = static_cast<std::size_t>(at - first),
                                    .size = sizeof(Member)};
    };
  }
  Touch(const Resource& it)  // NOLINT(google-explicit-constructor): as above
      : touched_{.resource = it.name} {}
  Touch(const char*) = delete;  // Declare a Resource, so that the compiler knows its name.

  [[nodiscard]] const detail::Touched& touched() const { return touched_; }

 private:
  detail::Touched touched_;
};

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

template <class C>
struct StepOptions {
  /// Steps that touch nothing in common, or only read it, may run side by side where the pipeline
  /// is async. One that names nothing may touch everything, and keeps its place in the order.
  /// `total_step` and `last` need not be named: no step writes them. What a nested step touches is
  /// said by the steps that call it.
  std::vector<Touch<C>> reads = {};
  std::vector<Touch<C>> writes = {};
  /// {.lock = trainyard::shared_lock}, or {.lock = &mine}.
  std::variant<NoLock, SharedLock, StepLock*> lock = {};
  /// It runs only where a label of the pipeline matches one of these patterns (*, ?, [abc]).
  /// Empty: everywhere.
  std::vector<std::string> where = {};
  /// It runs only in a pipeline with one of these roles, or in one without roles. Empty: in all.
  /// Where there is one pipeline alone a role that it does not have is an error.
  std::vector<Role> roles = {};
};

namespace detail {

/// The same, whatever the context.
struct StepRules {
  std::vector<Touched> reads = {};
  std::vector<Touched> writes = {};
  std::variant<NoLock, SharedLock, StepLock*> lock = {};
  std::vector<std::string> where = {};
  std::vector<Role> roles = {};
};

template <class C>
StepRules rules_of(StepOptions<C> options) {
  const auto touched = [](const std::vector<Touch<C>>& touches) {
    std::vector<Touched> all;
    for (const Touch<C>& touch : touches) all.push_back(touch.touched());
    return all;
  };
  return {.reads = touched(options.reads),
          .writes = touched(options.writes),
          .lock = options.lock,
          .where = std::move(options.where),
          .roles = std::move(options.roles)};
}

}  // namespace detail

}  // namespace trainyard
