// The yard's side of its keeper: its end of the socket, the line to the guard, and the messages in
// flight in both directions. Private to process/keeper.h: no other file includes it.
//
//            keeper dies (its socket closes)         word of the guard: another one
//   Listens ──────────────────────────────▶ Dead ──────────────────────────────▶ Listens
//                                             │
//                                             └──▶ Gone: no word will come any more, and the keeper
//                                                  has exited
//
// Requests that come while it is dead wait for the one that takes its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/time.h"
#include "process/guard_line.h"
#include "process/guard_words.h"
#include "process/keeper.h"
#include "process/keeper_message.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/process_scan.h"

namespace trainyard::process {

struct Keeper::State {
  /// The maximum size of waiting messages before start() waits for the keeper to take some of them.
  static constexpr std::size_t kOutgoingMax = std::size_t{32} << 20;

  State(GuardLine::Made made, const KeeperOptions& options);
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State();

  // To the keeper.
  void tell_every_keeper(const std::string& message);
  void plan_flush();
  void flush();
  bool flush_now();
  void wait_for_room();
  void ask_for_a_pulse();
  void look();
  void falls_silent();
  void reap_adopted_children();

  // From it and its guard.
  void watch();
  void read();
  /// Reads all that has come; false when nothing more does.
  bool read_what_is_there(std::vector<KeeperNews>& news);
  void has_answered(std::vector<KeeperNews>& news);
  void hear_guard();
  void take(FromGuard word, std::vector<KeeperNews>& news);
  void has_died(std::vector<KeeperNews>& news);
  void wait_for_another();
  void wait_for_its_end(std::vector<KeeperNews>& news);
  void both_have_ended(std::vector<KeeperNews>& news);
  void be_gone(std::vector<KeeperNews>& news, std::string why,
               std::vector<UnreportedExit> exits = {});
  void tell(std::vector<KeeperNews> news);
  void tell_own_news();
  [[nodiscard]] bool is_asleep() const;
  [[nodiscard]] std::string how_it_died(const FromGuard& word) const;
  [[nodiscard]] std::string why_no_other(const FromGuard& last) const;
  [[nodiscard]] std::string how_guard_ended();

  GuardLine guard;
  sys::Descriptor socket;  ///< Closed while there is no keeper.
  pid_t keeper = 0;        ///< The last one that there was.
  sys::Descriptor ended;   ///< Of that one: it is no child of ours. Closed if it was gone already.
  Duration stop_grace;
  Duration silence_max{5'000};
  sys::ProcessScan machine;
  std::optional<sys::ChildList> children;  ///< Of this process, if it adopts orphans.
  sys::EventLoop* loop = nullptr;
  Listener listener;
  KeeperMessageReader reader;
  std::string outgoing;
  std::string for_every_keeper;      ///< Messages for each later keeper; this one has them.
  std::string lease;                 ///< The last lease that was sent; empty: there is none.
  std::vector<KeeperNews> own_news;  ///< News that this process made itself.
  bool flush_planned = false;
  Duration heard_at = sys::EventLoop::now();
  std::optional<Duration> asked_at;  ///< For a pulse that has not come back.
  int looks_in_vain = 0;             ///< Since it was asked.
  bool silent = false;
  bool dead = false;
  int waits_for_another = 0;  ///< Seconds that it has waited and was awake in.
  bool gone = false;
  /// Shared, so that a callback that the loop still holds can see that this is no more.
  std::shared_ptr<State*> alive = std::make_shared<State*>(this);
};

}  // namespace trainyard::process
