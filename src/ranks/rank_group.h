// A group of ranks on this machine: starts them, sends requests and ends them. It carries out the
// commands of ranks/group.h.
//
// Three kinds of threads meet here. The *group's thread* starts the processes, lets them in,
// receives their words and their ends, and keeps the time. A thread that *calls* execute() talks to
// the ranks itself while it waits, so that a small task takes no other thread's turn. A *thread for
// events* calls the handler for events that ranks fire. One lock guards all that they share.
//
// Any thread may call anything but the constructor and the destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ranks/group.h"
#include "ranks/launch_line.h"
#include "ranks/shared_arenas.h"
#include "trainyard/launcher.h"
#include "trainyard/rank_context.h"
#include "trainyard/shareable.h"
#include "wire/rank.h"

namespace trainyard::ranks {

class RankGroup {
 public:
  class State;  ///< ranks/rank_group_state.h

  struct Options {
    Group::Options group;
    Launcher launcher;
    RankCommand command;
    std::vector<std::string> environment;
    std::string directory;   ///< For logs; it is there.
    std::string components;  ///< As check_components() gives them.
    std::string executor;
    /// The arenas of this process: buffers in them are sent without a copy.
    std::shared_ptr<SharedArenas> arenas;
    bool all_buffers = false;  ///< Each rank sends the buffers of its replies, not rank 0 alone.
    /// Called by the thread for events. The rank gets the text of an exception.
    std::function<wire::EventDone(int rank, const wire::EventWord&)> on_event;
    /// Notes for the user that answer no request. Any thread.
    std::function<void(const std::string&)> note;
    /// Released when nothing of the group is left: if a handler has ended it, that is after its
    /// destructor.
    std::shared_ptr<const void> alive;
  };

  explicit RankGroup(Options options);
  RankGroup(RankGroup&&) = delete;
  RankGroup& operator=(RankGroup&&) = delete;
  /// Closes, and waits until nothing is left.
  ~RankGroup();

  /// Whether it can take a request, once an execution that was asked to stop has stopped.
  [[nodiscard]] bool is_up() const;

  struct Launched {
    Verdict verdict;
    std::string traceback;  ///< From a component that could not be made.
  };
  /// Brings the group up, after the end of what there was before. All ranks have made their
  /// components when it returns Ok.
  Launched launch(const RankContext& context, const std::stop_token& stop);

  struct Execution {
    Verdict verdict;
    bool again = false;      ///< A rank died, and it is to be tried once more.
    bool not_begun = false;  ///< The group went down before it was sent.
    /// By rank, as far as they have replied; without all_buffers only that of rank 0 has buffers.
    std::vector<std::optional<Shareable>> replies;
    std::string traceback;
    std::string changes;  ///< Changes of the context by rank 0.
  };
  /// The group must be up; one at a time. `id` is that of a task, and the same when it is tried
  /// again.
  Execution execute(std::uint64_t id, std::string_view task, const Shareable& input,
                    const RankContext& context, const std::stop_token& stop);

  struct Heard {
    Verdict verdict;
    std::vector<std::string> errors;
    std::string changes;  ///< Changes of the context by rank 0.
  };
  /// Sends the event to the ranks that listen, but for `except`, and waits until they have received
  /// it, or until `stop` is requested.
  Heard fire(wire::EventWord event, const RankContext& context, std::optional<int> except,
             const std::stop_token& stop = {});

  /// Ends the group, cleanly if it can be, and waits until it is down.
  void close();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::ranks
