// The inside of a RankExecutor: what its calls and its handlers share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"
#include "link/arena.h"
#include "ranks/component_config.h"
#include "ranks/group.h"
#include "ranks/launch_line.h"
#include "ranks/rank_group.h"
#include "ranks/shared_arenas.h"
#include "trainyard/rank_executor.h"
#include "wire/rank.h"

namespace trainyard {

class RankExecutor::State {
 public:
  State(RankExecutorOptions with, ComponentRegistry of)
      : options(std::move(with)), registry(std::move(of)) {}

  /// An error tells all that is wrong, a mistake a line.
  [[nodiscard]] Result<ranks::CheckedComponents> check() const;
  [[nodiscard]] Result<ranks::CheckedComponents> check_components_of_options() const;
  Result<void> make_group();
  [[nodiscard]] Result<ranks::RankCommand> command(const ranks::CheckedComponents& checked);
  struct Up {
    Shareable reply;
    std::shared_ptr<ranks::RankGroup> group;
  };
  Up bring_up(RankContext& context, const std::stop_token& stop);
  /// Its launch, and kStartRun.
  Shareable launch(ranks::RankGroup& to, RankContext& context, const std::stop_token& stop);
  std::vector<Shareable> execute(std::string_view task, const Shareable& input,
                                 RankContext& context, const std::stop_token& stop);
  [[nodiscard]] Shareable reply_of(const ranks::Verdict& verdict,
                                   const std::string& traceback) const;
  std::vector<Shareable> replies_of(ranks::RankGroup::Execution done);
  std::shared_ptr<ranks::RankGroup> current();
  void take_in(RankContext& context, const std::string& changes);
  EventOutcome fire(std::string_view event, const Json& data, RankContext& context);
  /// Fires an event from outside a run, which must not come before kStartRun.
  EventOutcome fire_from_outside(std::string_view event, const Json& data, RankContext& context);
  wire::EventDone heard(int rank, const wire::EventWord& word);
  void finalize();
  /// The reason why this process must not use this object: it is a fork of the process that used it
  /// first, whose threads and ranks it does not have. Makes this process the first one if there is
  /// none.
  [[nodiscard]] std::optional<std::string> why_not_here();
  /// The same without the sentence, and without making this process the first one.
  [[nodiscard]] bool is_copy() const;
  void note(const std::string& what) const;
  [[nodiscard]] std::shared_ptr<const void> one_more_group();
  /// Waits until no handler is called any more, and nothing is left of a group that one has ended.
  void wait_for_the_rest();
  class Within;
  class NotBusy;
  class Abortable;

  RankExecutorOptions options;
  ComponentRegistry registry;
  /// The process that first started ranks or allocated buffers; 0: none has. Not guarded by
  /// `mutex`, which a fork of a process with several threads may find locked for ever.
  std::atomic<std::int64_t> owner{0};
  std::vector<Handler> handlers;
  std::atomic<bool> busy{false};
  std::atomic<bool> has_started{false};  ///< All ranks of this launch have heard kStartRun.
  std::mutex launching;  ///< Held while the group is brought up, which may take minutes.

  std::mutex mutex;  ///< Guards the members below. Not held while ranks are waited for.
  std::shared_ptr<ranks::RankGroup> group;
  std::shared_ptr<ranks::SharedArenas> arenas =
      std::make_shared<ranks::SharedArenas>(link::ArenaPool::Options{.arenas_max = 32});
  RankContext run_context;  ///< Its siblings go to the handlers.
  std::string directory;
  bool own_directory = false;
  bool failed = false;     ///< Something went wrong: the logs stay.
  bool finalized = false;  ///< No group is launched any more.
  std::uint64_t last_task = 0;
  int handling = 0;                    ///< Calls of handlers.
  int groups = 0;                      ///< Groups of which something is left.
  std::vector<Abortable*> abortables;  ///< Those that abort() ends.
  std::condition_variable over;        ///< A call of a handler, or a group.
};

}  // namespace trainyard
