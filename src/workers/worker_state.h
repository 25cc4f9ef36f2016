// The inside of a Worker.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "pipeline/bus_state.h"
#include "trainyard/worker.h"
#include "wire/worker.h"
#include "workers/channel.h"
#include "workers/place.h"
#include "workers/routes.h"

namespace trainyard::workers {

class WorkerState : public std::enable_shared_from_this<WorkerState> {
 public:
  /// Alone where it has no socket; else it joins there.
  static Result<Worker> join(Place place);
  static WorkerState& of(const Worker& worker) { return *worker.state_; }

  explicit WorkerState(Place place);
  WorkerState(WorkerState&&) = delete;
  WorkerState& operator=(WorkerState&&) = delete;
  ~WorkerState();

  void connect(PipelineBase& loop, Follow follow);
  /// False: it is connected already, which only its end to follow may change.
  bool connect(EventBus& bus, PipelineBase* loop, Follow follow);
  Result<wire::WorkerReply> ask(const wire::WorkerRequest& request, Timeout within,
                                const std::stop_token& stop);
  /// Asks for what the others have to come for. The end of the run is an error, which says why.
  Result<void> meet(const wire::WorkerRequest& request, Timeout within,
                    const std::stop_token& stop);
  /// Printed, where this worker has failed and cannot say so: those it waits for read nothing.
  void finish(Outcome outcome, const std::string& why);
  /// The workers that may still send to this one in that role. None are named before anything is
  /// known of the others; messages may come all the same.
  [[nodiscard]] Senders senders(Role role);
  /// Called when that may have changed, for as long as it lives; on the thread that reads. `change`
  /// says how one worker has changed; null: others have joined the run.
  using Watcher = std::function<void(const PeerChange* change)>;
  void watch_senders(const std::shared_ptr<const Watcher>& watcher);

  Place place;
  std::vector<Role> roles;
  std::shared_ptr<Channel> channel;  ///< None when it is alone.
  std::stop_source ending;

 private:
  /// The last copy of the handle joins the reading thread. That thread shares the state while it
  /// calls listeners, and must not have the last share: it cannot join itself.
  static Worker handle_to(std::shared_ptr<WorkerState> state);

  struct Connected {
    std::shared_ptr<detail::BusState> bus;
    PipelineBase* loop = nullptr;   ///< None: it is a bus by itself.
    PipelineBase::Finisher finish;  ///< Ends the pipeline, if there is one.
    Follow follow;
  };
  /// A pipeline that will end, with the reason and the outcome. Ended without the lock, as the end
  /// calls code that waits for it.
  struct Ending {
    PipelineBase::Finisher finish;
    std::string why;
    Outcome outcome = Outcome::Finished;
  };
  using Endings = std::vector<Ending>;
  static void end_all(const Endings& endings);
  /// How a connected pipeline ends when the run ends with this word.
  static Ending ending_by(const wire::EndWord& word, const Connected& connected);
  void peer_changed(const wire::PeerWord& word);
  void roll_changed(const wire::RollWord& word);
  /// Without the lock.
  void tell_watchers(const PeerChange* change);
  void run_begins(const PipelineBase& loop);
  /// With the lock.
  void follow(const Connected& connected, const wire::PeerWord& word, Endings& endings) const;
  void lost(const wire::LostWord& word);
  void end(const wire::EndWord& word);
  void refused(const std::string& why);
  [[nodiscard]] bool is_followed(const Follow& follow, const wire::PeerWord& word) const;
  void bus_gone(const detail::BusState& bus);
  /// Emits an event to all connected buses, without the lock.
  template <class P>
  void tell(const Event<P>& event, const P& payload);

  std::atomic<bool> failed_ = false;  ///< Until its pipeline runs again.
  std::mutex mutex_;
  std::vector<Connected> connected_;
  std::optional<wire::EndWord> end_;    ///< None: the run goes on.
  std::map<int, wire::PeerWord> over_;  ///< Other workers that have ended well.
  std::optional<wire::RollWord> roll_;  ///< None: the router has not said it yet.
  std::vector<std::weak_ptr<const Watcher>> watchers_;
};

}  // namespace trainyard::workers
