// An agent on a made-up machine, as its yard can rely on it: what run/agent_server.h and the keeper
// behind it promise. The real ones hold processes and descriptors, so that this is a model of them
// at the level of events:
//
//   * it does what it was told in order, once, and over the next stream what was said over one that
//     was cut; what it tells it tells in that way, too;
//   * when its clock shows more than it was last told that tasks may run until, it ends all of them
//     within kEndMax, starts nothing more, tells that they vanished and goes;
//   * when it dies, or is told to leave, its keeper ends them, too. Another one begins with the
//     next stream, and sees to the end of what was left before it is ready;
//   * where the machine was started anew what ran is gone, and the next agent is in another place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "sim/agent_words.h"
#include "sim/machine.h"
#include "sim/random.h"
#include "sim/workload.h"

namespace trainyard::sim {

class MadeUpAgent {
 public:
  /// The maximum time to end all that runs, once it has begun to: less than a yard waits for it
  /// (run::RemoteMachine::kEndMax).
  static constexpr Duration kEndMax{5'000};

  struct Options {
    std::uint64_t seed = 0;    ///< Of the run.
    std::uint64_t number = 0;  ///< Among the machines of the run.
    Workload workload;         ///< The hardware there, and its troubles.
    bool changes = false;      ///< Each time that it begins anew it may have less.
    /// Called before each attempt that is started here.
    std::function<void(model::TaskIndex)> about_to_start;
  };
  MadeUpAgent(Options options, World world);

  /// The receiver of its words: the yard that has opened the last stream.
  void set_ear(std::function<void(AgentWord)> ear) { ear_ = std::move(ear); }
  void hear(const YardWord& word);
  /// The stream that was opened last has ended.
  void stream_ended() { has_stream_ = false; }

  /// It dies, and what runs with it. With `reboots` the whole machine.
  void die(bool reboots);

  [[nodiscard]] const model::Capacity& capacity() const { return options_.workload.capacity; }
  [[nodiscard]] const MadeUpMachine& machine() const { return *machine_; }
  [[nodiscard]] bool lives() const { return lives_; }

 private:
  void take(const Opens& opens);
  void take(const Begins& begins);
  void take(const model::Command& command);
  void take(const Heard& heard);
  void take(const Leaves& leaves);
  void begin();
  void become_ready();
  void tell(model::What what);
  void say(AgentWord word);
  void run_until(Instant moment);
  void end_of_lease();
  void go();
  void when_nothing_runs(Agenda::Step then);

  Options options_;
  World world_;
  Random random_;
  std::function<void(AgentWord)> ear_;
  std::unique_ptr<MadeUpMachine> machine_;

  bool lives_ = false;
  bool has_stream_ = false;
  bool begins_ = false;  ///< It knows its run.
  bool ready_ = false;   ///< A run has begun here.
  bool ending_ = false;  ///< Its lease is over.
  std::uint64_t instance_ = 0;
  std::uint64_t place_ = 0;
  std::uint64_t heard_ = 0;
  Instant runs_until_;
  UnheardWords<AgentWord> unheard_;
  std::vector<model::Command> held_;      ///< Kept until it is ready.
  std::set<model::AttemptKey> attempts_;  ///< Requested, and their end was not reported.
};

}  // namespace trainyard::sim
