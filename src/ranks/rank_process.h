// A rank, in its own process: receives requests of the parent on two connections, and carries them
// out.
//
// Three threads: the one that runs it makes the components and executes; one reads the words of the
// parent, so that a stop is heard at once; one tells the components of events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "link/frame_socket.h"
#include "ranks/component_builder.h"
#include "ranks/shared_arenas.h"
#include "trainyard/component_registry.h"
#include "trainyard/rank_context.h"
#include "trainyard/return_code.h"
#include "wire/frame.h"
#include "wire/rank.h"

namespace trainyard::ranks {

class RankProcess {
 public:
  /// `requests` has been welcomed. `local_rank`: on its machine, which only its launcher knows.
  RankProcess(link::FrameSocket requests, const ComponentRegistry& registry, int local_rank);
  RankProcess(RankProcess&&) = delete;
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess();

  /// Until the parent closes, or is gone. An error: what it said was not understood.
  Result<void> run();

 private:
  class Link;
  struct Asked {
    bool over = false;
    ReturnCode code = ReturnCode::Ok;
    std::string why;
    wire::EventDone done;
  };
  struct Told {
    std::uint64_t sequence = 0;
    wire::EventWord event;
  };

  Result<void> initialise(const wire::Frame& frame, const wire::InitialiseRequest& request);
  wire::RankReply make_components(const wire::InitialiseRequest& request);
  Result<void> execute(wire::Frame frame, wire::ExecuteRequest request);
  Result<void> reply(std::uint64_t sequence, const wire::RankReply& reply);
  void released(const wire::Frame& frame);
  /// The token of the request that begins now; asked to stop already if that has come before it.
  std::stop_token begin_request(std::uint64_t sequence);

  void read_words();
  Result<void> take_word(const wire::Frame& frame);
  void parent_is_gone();
  /// With the lock: nobody answers what was fired.
  void end_asked(ReturnCode code, const std::string& why);
  void tell_events();
  /// The first of those that the parent has fired.
  void tell_one(std::unique_lock<std::mutex>& lock);
  /// False when the time limit has passed.
  bool wait_for_answer(std::unique_lock<std::mutex>& lock, std::uint64_t id);
  wire::EventDone tell(const wire::EventWord& event);
  /// Those who listen, in order; adds what they throw.
  void tell_components(const RankEvent& event, RankContext& context,
                       std::vector<std::string>& errors);
  EventOutcome fire(RankContext& context, std::string_view event, const Json& data,
                    Audience audience);
  Result<void> say(wire::FrameKind kind, std::uint64_t sequence, const wire::RankWord& word);

  link::FrameSocket requests_;
  const ComponentRegistry& registry_;
  int local_rank_;
  std::shared_ptr<SharedArenas> arenas_;
  std::shared_ptr<Link> link_;
  wire::InitialiseRequest first_;
  BuiltComponents components_;
  std::vector<std::vector<std::string>> listens_;  ///< Of each component.
  RankContext request_base_;  ///< The parent's contexts as sent, by each of the connections.
  RankContext word_base_;

  std::mutex saying_;  ///< Of words_, for writing; it is read by one thread.
  std::unique_ptr<link::FrameSocket> words_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::stop_source stop_;
  std::uint64_t request_ = 0;
  std::optional<std::uint64_t> stop_up_to_;  ///< The last request that is to stop.
  std::map<std::uint64_t, Asked> asked_;     ///< Events that we have fired.
  std::uint64_t last_event_ = 0;
  std::deque<Told> told_;
  bool components_made_ = false;
  bool over_ = false;  ///< Nothing more is told or asked.
  bool left_ = false;  ///< run() has been left.

  std::thread reader_;
  std::thread teller_;
};

}  // namespace trainyard::ranks
