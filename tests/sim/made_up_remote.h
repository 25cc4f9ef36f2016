// A machine of a made-up run that an agent looks after, as its yard sees it: what
// run/remote_machine.h promises to the scheduler, between the same phases. That one holds streams
// and timers of a real clock, so that this is a model of it at the level of events:
//
//   * while it is not heard of, it is told to be silent, and told not to be when the same agent
//     answers again: then nothing was lost, and what could not be said is said;
//   * an attempt is told to have vanished only when it has ended for certain: when the newest clock
//     that was heard of its agent is older than the lease and what an end takes, or when another
//     agent is ready, which has seen to the end of what was left. The machine is told to be gone
//     right after that, and joins again with the next agent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "sim/agenda.h"
#include "sim/agent_words.h"
#include "sim/machine.h"
#include "sim/made_up_agent.h"
#include "sim/random.h"

namespace trainyard::sim {

class MadeUpRemote {
 public:
  struct Options {
    std::uint64_t seed = 0;  ///< For its network.
    std::string name;
    Duration lease{60'000};
    Duration allocation{0};  ///< As FleetMember has it.
    int allocations = 0;
  };
  struct Ears {
    std::function<void(model::What)> tell;
    std::function<model::MachineIndex()> next_number;       ///< As it joins for the first time.
    std::function<std::optional<Instant>()> stopped_until;  ///< For the yard, while it is stopped.
  };
  /// The agent and what the world refers to must outlive it.
  MadeUpRemote(Options options, MadeUpAgent& agent, World world, Ears ears);

  /// Begins to reach it, and goes on until it is left.
  void connect() { reach(); }
  void carry_out(const model::Command& command);
  [[nodiscard]] bool runs(model::AttemptKey key) const { return attempts_.contains(key); }
  [[nodiscard]] bool is(model::MachineIndex machine) const { return machine_ == machine; }

  // Troubles between the two.

  /// Words of both directions wait, those that have been said, too.
  void split(Duration lasts);
  /// The stream ends.
  void cut();
  /// It is never reached again: an allocation that is over.
  void leave_for_good();

 private:
  enum class Phase : std::uint8_t { Connecting, Open, Cut, Lost };

  void at(Instant when, Agenda::Step step);
  void catch_up_at(Instant when);
  void reach();
  void hear(const AgentWord& word);
  void take(const Greets& greets);
  void take(const Ready& ready);
  void take(const model::What& told);
  void take(const Heard& heard);
  [[nodiscard]] bool take_in(model::What& what) const;
  void answers_again();
  void another_answers();
  [[nodiscard]] std::optional<Instant> taken_away_at();
  void turn_away();
  void stream_ended();
  void lose(const std::string& why);
  void pulse();
  void tell_until_when();
  void say(YardWord word);
  void say_at_once(const YardWord& word);
  void send(const YardWord& word);
  void send_back(std::uint64_t stream, const AgentWord& word);

  Options options_;
  MadeUpAgent& agent_;
  World world_;
  Ears ears_;
  Random random_;
  WayThere there_;
  WayThere back_;

  std::vector<Agenda::Step> put_off_;  ///< Put off until the yard goes on.

  Phase phase_ = Phase::Connecting;
  std::uint64_t stream_ = 0;  ///< The number of the last one.
  bool is_open_ = false;      ///< It has not ended yet.
  bool spoken_ = false;       ///< Something has come over it.
  /// Nothing comes any more that was on its way over these streams; what was said over others that
  /// have ended comes before the next one opens, as it was said.
  std::uint64_t lost_up_to_ = 0;
  std::optional<Greets> greets_;  ///< The last one.
  std::optional<model::MachineIndex> machine_;
  std::set<model::AttemptKey> attempts_;
  UnheardWords<YardWord> unheard_;
  std::uint64_t heard_ = 0;
  Instant heard_at_;
  Instant clock_;
  Instant lease_heard_;
  Duration reach_after_;
  bool ready_ = false;
  bool joined_ = false;
  bool silent_ = false;
  bool left_ = false;
};

}  // namespace trainyard::sim
