// One of the processes of a parallel run (trainyard/parallel.h): who it is, and what it does
// together with the others.
//
//   worker.connect(loop);                                  // events and finish, both ways
//   if (auto all = worker.ready(0, 10s); !all) throw std::runtime_error(all.error().message);
//   loop.events().emit(kWeights, weights, trainyard::remote);
//   auto met = worker.barrier("epoch", 60s);               // an error names who is missing
//
// Events that are emitted before all workers listen wait for them: a worker listens from its first
// ready(), barrier(), run of a connected pipeline or wait for an event on, or when it emits itself.
// So register listeners first.
//
// Listeners of remote events are called by a thread of the worker, one event at a time, in the
// order in which one worker emitted them. One that does not return holds up the others, and one
// that waits for another remote event waits for itself. The worker that emits an event calls its
// own listeners in emit(): what is an error in a listener of remote events is one there, too.
// Listeners of a queue, and of events of this process alone (Event), may wait. Any thread may call
// anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline_base.h"
#include "trainyard/result.h"
#include "trainyard/step_options.h"
#include "trainyard/timeout.h"

namespace trainyard {

/// Whose end is the end of a pipeline, too. A worker that fails ends all, whatever this says; one
/// that is to begin again ends nobody. Of those that it hears: in a star only the first hears all.
struct Follow {
  enum class Whom : std::uint8_t { All, Role, Nobody, UntilAll };
  Whom whom = Whom::All;
  Role role = {};
};
/// The first of the others that ends (DI-engine).
inline constexpr Follow follow_all{};
/// The first of those with that role.
constexpr Follow follow_role(Role role) { return {.whom = Follow::Whom::Role, .role = role}; }
inline constexpr Follow follow_nobody{.whom = Follow::Whom::Nobody};
/// The last of the others.
inline constexpr Follow follow_until_all{.whom = Follow::Whom::UntilAll};

/// Another worker has ended, or is there again.
struct PeerChange {
  enum class What : std::uint8_t {
    Ready,     ///< It listens. Not emitted for workers that listened before this one joined.
    Again,     ///< It has begun again and listens; what was retained it gets once more.
    Finished,  ///< It has ended well.
    Lost,      ///< It has failed, and is to begin again.
    Failed,    ///< It has failed; all end.
  };
  int node = 0;
  What what = What::Ready;
  std::string outcome;  ///< Of its pipeline: "max steps", "finished", "stopped", "failed".
  std::string why;
  std::vector<std::string> roles;
};
/// Emitted on every connected bus. No RemoteEvent.
inline constexpr Event<PeerChange> kPeerChange{"trainyard.peer"};

/// Events that did not get where they should.
struct EventsLost {
  std::string event;
  int node = 0;  ///< Who did not get them.
  std::uint64_t count = 0;
};
/// Emitted on the buses of the workers that did not get them, where the policy is
/// WhenFull::DropOldest: before the next event that comes after them.
inline constexpr Event<EventsLost> kEventsLost{"trainyard.events-lost"};

namespace workers {
class WorkerState;
}

/// A handle: copies stand for the same worker.
class Worker {
 public:
  /// A program that `trainyard parallel` or parallel() has started. Where nobody has: one worker by
  /// itself, so that a program runs without them, too. Takes its variables out of the environment;
  /// once a process, while it has one thread. An error: it is not let in, or this process is a
  /// worker already, as in what parallel() calls.
  [[nodiscard]] static Result<Worker> from_environment();
  /// One by itself, for what works with and without others.
  static Worker alone();

  /// Its number, by which others know it.
  [[nodiscard]] int node() const;
  /// How many there are, and which of them it is, from 0.
  [[nodiscard]] int count() const;
  [[nodiscard]] int index() const;
  /// 1, and 2 when it has begun again, ...
  [[nodiscard]] int life() const;
  [[nodiscard]] int port() const;
  /// It is the only one, and nobody relays.
  [[nodiscard]] bool is_alone() const;
  [[nodiscard]] const std::vector<std::string>& labels() const;
  [[nodiscard]] const std::vector<Role>& roles() const;
  /// As PipelineBase::has_role.
  [[nodiscard]] bool has_role(Role role) const;

  /// The options of a pipeline in this worker: its labels and roles, and "node.<n>".
  [[nodiscard]] PipelineOptions pipeline(PipelineOptions options = {}) const;
  /// The bus goes on to the others.
  void connect(EventBus& bus) const;
  /// And others hear of the end of each of its runs, and it of theirs. It must not outlive the
  /// worker's last handle, nor be moved. Again: only whom it follows may change.
  void connect(PipelineBase& loop, Follow follow = follow_all) const;

  /// Waits until so many workers listen, all when it is 0. An error names those that do not: late,
  /// or at once where one has ended that never did. Not in a listener of remote events: an error.
  [[nodiscard]] Result<void> ready(int workers = 0, Timeout within = std::chrono::seconds(60),
                                   const std::stop_token& stop = {}) const;
  /// Waits until all that have one of these roles (none: all workers) have come to the barrier of
  /// this name, but for those that have ended well. An error names who is missing, or has failed.
  /// The name has 1 to 256 bytes. Not in a listener of remote events: an error. A listener that
  /// does not return, or events of this worker that wait for others, hold it up by at most 2 s.
  [[nodiscard]] Result<void> barrier(std::string_view name,
                                     Timeout within = std::chrono::seconds(60),
                                     const std::vector<Role>& roles = {},
                                     const std::stop_token& stop = {}) const;

  /// A buffer in memory that others can map: filled in place and emitted it is not copied.
  [[nodiscard]] Result<Buffer> alloc(DType type, Dimensions shape) const;

  /// Asked to stop when the run is to end: another worker has failed, its parent is gone, or this
  /// one is cut off. Half of the grace is left then before TERM.
  [[nodiscard]] std::stop_token ending() const;
  /// The status of the router, as JSON: workers, queues, counts, and the workers that wait at each
  /// barrier. Calling it in a listener of remote events is an error.
  [[nodiscard]] Result<std::string> status() const;

 private:
  friend class workers::WorkerState;
  explicit Worker(std::shared_ptr<workers::WorkerState> state) : state_(std::move(state)) {}
  std::shared_ptr<workers::WorkerState> state_;
};

/// A step that meets the others before its forward half goes on, and again on the way back
/// (DI-engine `Barrier`).
template <class C>
class BarrierStep {
 public:
  BarrierStep(Worker worker, std::string name, PipelineBase& loop,
              Timeout within = std::chrono::seconds(60))
      : worker_(std::move(worker)), name_(std::move(name)), loop_(&loop), within_(within) {}
  void forward(C&) { meet("forward"); }
  void backward(C&) { meet("backward"); }

 private:
  void meet(const char* half) {
    const auto met = worker_.barrier(name_ + "/" + half, within_, {}, loop_->ending());
    if (!met && !loop_->ending().stop_requested()) throw std::runtime_error(met.error().message);
  }
  Worker worker_;
  std::string name_;
  PipelineBase* loop_;
  Timeout within_;
};

}  // namespace trainyard
