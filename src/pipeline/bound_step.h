// A step or a group in its place in a pipeline: what it is called there, and what holds for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/worker_pool.h"
#include "trainyard/any_step.h"
#include "trainyard/context.h"
#include "trainyard/detail/step_node.h"
#include "trainyard/pipeline_base.h"
#include "trainyard/step_options.h"

namespace trainyard {
class PipelineState;
}  // namespace trainyard

namespace trainyard::pipeline {

struct NestedCall;

struct BoundStep {
  std::string path;  ///< "evaluate/upload".
  detail::StepKind kind = detail::StepKind::Single;
  std::unique_ptr<detail::StepNode> node;         ///< Of a single one.
  std::vector<std::unique_ptr<BoundStep>> parts;  ///< Of a group, in order.
  std::unique_ptr<SideBySide> together;           ///< Of a parallel group.
  std::vector<std::exception_ptr> part_errors;    ///< Of a parallel group that runs.
  StepLock* lock = nullptr;
  std::vector<detail::Touched> reads;
  std::vector<detail::Touched> writes;
  bool touches_all = true;
  PipelineState* pipeline = nullptr;
  /// The group that it is a part of; or the step that called it, while a nested one is called.
  BoundStep* around = nullptr;
  bool is_part = false;  ///< Of a group, or nested.

  /// Nested steps that it called and whose way back is still to go, in the order of calls.
  std::vector<NestedCall*> nested;

  /// Something of it, or of what it called, waits for the way back.
  [[nodiscard]] bool waits() const;

  /// Destroys that, in the order of the way back, without running it.
  void drop() noexcept;

  /// Nothing but its node needs to be looked at.
  [[nodiscard]] bool is_bare() const { return node != nullptr && lock == nullptr; }
};

/// One call of a nested step: a copy of it that refers to the one that was registered.
struct NestedCall {
  std::unique_ptr<BoundStep> step;
  BoundStep* caller = nullptr;  ///< Where it waits for its way back.
  Context* context = nullptr;
  std::atomic<std::uint64_t> number = 0;  ///< Of this call among all that used the copy.
  std::atomic<bool> taken = false;        ///< All of the above belongs to the thread that took it.
};

// From steps as they were registered to steps in their place: names, locks, and whether they belong
// here at all. Pure, but for the steps it moves.

/// The properties of a pipeline on which the binding of its steps depends.
struct Surroundings {
  std::vector<std::string> labels;
  std::vector<Role> roles;
  bool is_alone = true;  ///< There are no other workers who might play a role.
  StepLock* shared_lock = nullptr;
  PipelineState* pipeline = nullptr;
};

/// Whether one of the patterns (*, ?, [abc]) matches one of the labels.
bool match_any(const std::vector<std::string>& patterns, const std::vector<std::string>& labels);

bool has_role(const Surroundings& surroundings, Role role);

/// Puts it in its place as `path`. A step that does not belong here, with all its parts: nothing.
/// Adds to `mistakes`: a label that no pipeline has, a role that no pipeline has, a lock that would
/// wait for itself.
std::unique_ptr<BoundStep> bind_step(detail::StepTree tree, std::string path,
                                     const Surroundings& surroundings,
                                     std::vector<StepError>& mistakes);

/// A nested step is called: throws when a part of it would wait for a lock that one of those around
/// the call holds.
void check_locks_of_callers(BoundStep& nested);

/// "learn", or "step-3"; "learn#2" when there is one already.
std::string unused_name(std::string name, const detail::StepTree& tree, std::size_t number,
                        const std::vector<std::string>& taken);

/// The pairs of steps that must keep their order, as they touch the same, without pairs that follow
/// from others.
std::vector<std::pair<std::size_t, std::size_t>> conflicts(
    const std::vector<std::unique_ptr<BoundStep>>& steps, const Context& context);

/// The steps of a pipeline that its other steps call: each is one step, of which as many calls can
/// wait for their way back as its callers make. Any thread.
class NestedSteps {
 public:
  /// Makes a copy that refers to the one step.
  using MakeTree = std::function<detail::StepTree()>;

  std::size_t add(std::string name, MakeTree make, detail::StepRules rules);
  [[nodiscard]] bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Puts those that were added since in their place, so that what is wrong is known at the start.
  void bind_new(const Surroundings& surroundings, std::vector<StepError>& mistakes);

  /// A copy that nobody uses, as called by that step; it is the caller's until its way back is gone
  /// or dropped. Throws when the step cannot be placed, or when there is no caller.
  NestedCall& take(std::size_t index, BoundStep* caller, const Surroundings& surroundings);

 private:
  struct Nested {
    std::string name;
    MakeTree make;
    detail::StepRules rules;
    std::vector<std::unique_ptr<NestedCall>> calls;
    bool bound = false;
  };
  static NestedCall& take_free(Nested& nested, const Surroundings& surroundings);
  static std::unique_ptr<NestedCall> make_call(const Nested& nested,
                                               const Surroundings& surroundings,
                                               std::vector<StepError>& mistakes);

  std::atomic<std::size_t> count_ = 0;  ///< Of all: it is asked in every iteration.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Nested>> all_;
};

}  // namespace trainyard::pipeline
