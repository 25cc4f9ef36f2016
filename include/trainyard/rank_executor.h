// One executor, run by several processes that are commanded as one: data-parallel training on one
// machine (NVFlare `MultiProcessExecutor`).
//
//   trainyard::RankExecutor trainer({.ranks = 4, .executor = "trainer",
//                                    .components = "[{id: trainer, type: trainer}]"}, registry);
//   trainyard::RankContext context;
//   trainyard::Shareable reply = trainer.execute("train", task, context);
//
// The ranks are started by the first execute(), or by start(); each makes its own components, and
// stays for the tasks that follow. A task goes to all of them, and its buffers lie in memory that
// all of them map. Whatever goes wrong in a rank is answered with a return code and its cause, and
// the group is launched anew for the next task when it must be. No process outlives this object.
//
// Any thread; one task at a time. The handlers are called on a thread of their own. After the first
// start(), execute() or alloc() it belongs to that process: in a fork of it start(), execute(),
// fire() and alloc() say so, and nothing has an effect on the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/buffer.h"              // IWYU pragma: export
#include "trainyard/component.h"           // IWYU pragma: export
#include "trainyard/component_registry.h"  // IWYU pragma: export
#include "trainyard/json.h"                // IWYU pragma: export
#include "trainyard/launcher.h"            // IWYU pragma: export
#include "trainyard/rank_context.h"        // IWYU pragma: export
#include "trainyard/rank_limits.h"         // IWYU pragma: export
#include "trainyard/result.h"
#include "trainyard/return_code.h"  // IWYU pragma: export
#include "trainyard/shareable.h"    // IWYU pragma: export

namespace trainyard {

/// The result of execute() when all ranks have done their part.
enum class RankResult : std::uint8_t {
  First,  ///< The reply of rank 0.
  All,    ///< The same; replies that execute_all() returns have their buffers for every rank.
  Sum,    ///< That of rank 0, with each buffer the sum of those of all ranks.
  Mean,   ///< The same with the mean; of floating-point numbers only.
};

struct RankExecutorOptions {
  int ranks = 1;
  std::string executor = {};    ///< The id of the component that executes.
  std::string components = {};  ///< YAML or JSON (docs/ranks.md).
  /// Instead of `components`: the file that they are in.
  std::string components_file = {};
  Launcher launcher = {};
  /// The command line of a rank. Empty: this program again, without arguments, whose main() begins
  /// with run_as_rank(); or Python, where the executor is of type `python`.
  std::vector<std::string> program = {};
  /// For the ranks, NAME=value, beside what this process has.
  std::vector<std::string> environment = {};
  RankResult result = RankResult::First;
  int restarts = 0;  ///< How often a task is tried again after a rank has died.
  RankLimits limits = {};
  /// Where rank-0.log and so on go. Empty: a directory of its own, which is removed at the end if
  /// nothing went wrong.
  std::string log_directory = {};
  /// Called with notes that are no answers; without one they go to standard error.
  std::function<void(std::string_view)> note = {};
};

class RankExecutor final : public Executor {
 public:
  using Handler = std::function<void(const RankEvent&, RankContext&)>;

  /// Nothing is started, and nothing is checked yet. The registry is kept.
  explicit RankExecutor(RankExecutorOptions options, ComponentRegistry registry = {});
  RankExecutor(RankExecutor&&) = delete;
  RankExecutor& operator=(RankExecutor&&) = delete;
  /// As finalize().
  ~RankExecutor() override;

  /// All that is wrong with the options, a mistake a line. start() does it first.
  [[nodiscard]] Result<void> validate() const;

  /// Launches the ranks, waits until all have made their components, and fires kStartRun. The reply
  /// is Ok or says why not. Does nothing when they are there.
  [[nodiscard]] Shareable start(RankContext& context, const std::stop_token& stop = {});

  /// Has every rank execute the task. The reply has the code of the first rank that did not say Ok;
  /// its traceback(), or the end of its log, is that of the reply. `stop` ends it with TaskAborted.
  /// Small tasks cost what the messages cost; each buffer is copied once, however many ranks, or
  /// not at all if it comes from alloc(), as a sum or a mean does.
  [[nodiscard]] Shareable execute(std::string_view task, const Shareable& input,
                                  RankContext& context, std::stop_token stop = {}) override;

  /// The same, but returns the reply of each rank, by rank, with its values, whatever
  /// RankExecutorOptions::result is. With RankResult::First only rank 0 sends its buffers.
  [[nodiscard]] std::vector<Shareable> execute_all(std::string_view task, const Shareable& input,
                                                   RankContext& context,
                                                   const std::stop_token& stop = {});

  /// Tells the ranks that listen, and waits until they have heard it. Ok when there are none.
  EventOutcome fire(std::string_view event, const Json& data, RankContext& context);

  /// kStartRun starts, kEndRun finalizes, every other event is fired: so that an executor of ranks
  /// can stand where an executor is asked for.
  void handle_event(const RankEvent& event, RankContext& context) override;
  [[nodiscard]] std::vector<std::string> listens_to() const override { return {"*"}; }

  /// Called for each event that a rank fires, in order; the rank waits for it. To be set before
  /// start(). What a rank fired as its task was aborted may come until finalize(), or the
  /// destructor, has returned: what the handler refers to must outlive the executor.
  void on_event(Handler handler);

  /// A buffer to be filled in place and sent without a copy.
  [[nodiscard]] Result<Buffer> alloc(DType type, Dimensions shape);

  /// Ends the task that runs, or the launch, as its stop token does. Any thread.
  void abort(const std::string& reason);

  /// Fires kEndRun, which may take limits.event, unless a task is going on; lets the ranks end, and
  /// ends those that do not within limits.close (within limits.stop those that execute). After it
  /// start(), execute() and execute_all() reply LaunchFailed. Again: no effect.
  void finalize();

  /// Where the ranks write; empty before start().
  [[nodiscard]] std::string log_directory() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
