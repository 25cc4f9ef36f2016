// The parts that a rank is made of: an executor, which does the work, and others that hear events
// (NVFlare `Executor`, `FLComponent`). They are made in each rank, of a ComponentRegistry.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/json.h"
#include "trainyard/rank_context.h"
#include "trainyard/shareable.h"

namespace trainyard {

/// The first event that a rank hears, once all of them are there, and the last.
inline constexpr std::string_view kStartRun = "start-run";
inline constexpr std::string_view kEndRun = "end-run";

/// Something that happened. Valid while it is handled.
struct RankEvent {
  std::string_view name;
  const Json& data;
  std::optional<int> from_rank;  ///< Where it was fired; nothing when that was the parent.
};

class Component {
 public:
  Component() = default;
  Component(Component&&) = delete;
  Component& operator=(Component&&) = delete;
  virtual ~Component() = default;

  /// The names of the events that it receives; "*" is all. Called once, when all components are
  /// made. An event without a listener is not sent.
  [[nodiscard]] virtual std::vector<std::string> listens_to() const { return {}; }

  /// In order of the configuration, the events of the parent in the order in which it fired them.
  /// Those of the parent come on a thread of their own, perhaps while the executor executes; what
  /// is fired within the rank comes on the thread that fires it. What it throws is told to who
  /// fired the event, and the next component is called. It may fire events; those go to others, and
  /// back to itself, until one has led to another 20 times.
  virtual void handle_event(const RankEvent& event, RankContext& context);
};

class Executor : public Component {
 public:
  /// Called in every rank for each task, one at a time, on the thread on which it was made. What it
  /// throws ends the task in all ranks; the process stays. `stop` says that the result is not
  /// wanted any more: who has not returned some seconds later is ended.
  [[nodiscard]] virtual Shareable execute(std::string_view task, const Shareable& input,
                                          RankContext& context, std::stop_token stop) = 0;
};

}  // namespace trainyard
