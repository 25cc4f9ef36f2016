// A step or a group in its place in a pipeline: what it is called there, and what holds for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/side_by_side.h"
#include "trainyard/any_step.h"
#include "trainyard/context.h"
#include "trainyard/detail/step_node.h"
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

}  // namespace trainyard::pipeline
