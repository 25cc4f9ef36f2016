// A machine that is made up: tasks take random times and memory, things go wrong, and none of it
// takes any real time. It plays its part as run/local_machine.h does: of the yard, or at the end of
// an agent's stream (sim/made_up_agent.h). Whether the yard plays its own is for the watcher to
// say, which sees every command and every wait first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "run/machine.h"
#include "sim/agenda.h"
#include "sim/behaviour.h"
#include "sim/faults.h"
#include "sim/random.h"
#include "sim/watcher.h"
#include "sim/workload.h"

namespace trainyard::sim {

/// The objects that all parts of a made-up run share.
struct World {
  Watcher& watcher;
  FaultCounts& counts;
  Agenda& agenda;
};

/// The part of a machine in its run.
struct Part {
  std::uint64_t number = 0;  ///< Among the machines of the run: each has luck of its own.
  bool joins = true;         ///< Tasks run there.
  /// Receives the events there, if they are not the yard's: the agent that looks after it. Then
  /// nothing of the yard is there: no batches, no users.
  std::function<void(model::What)> agent = nullptr;
};

class MadeUpMachine final : public run::Machine {
 public:
  /// `workload` and what the world refers to must outlive it.
  MadeUpMachine(std::uint64_t seed, const Workload& workload, World world, Part part = {});

  void carry_out(const model::Command& command) override;
  std::vector<model::Event> wait(std::optional<Instant> until) override;
  [[nodiscard]] bool more_to_come() const override { return added_ < workload_.additions.size(); }

  /// Whether the journal's disk is full now.
  [[nodiscard]] bool disk_full() const { return disk_full_ > 0; }
  /// The number of processes.
  [[nodiscard]] std::size_t processes() const { return processes_.size(); }

  // For a machine that is one of several.

  /// The yard gets an event that did not happen here.
  void hear_of(model::What what) { inbox_.push_back({.at = now(), .what = std::move(what)}); }
  /// While the yard is stopped: until when.
  [[nodiscard]] std::optional<Instant> stopped_until() const { return stopped_until_; }
  /// Whether an attempt at it runs here, or begins when the keeper is there again.
  [[nodiscard]] bool has(model::TaskIndex task) const;
  /// Carries out a command for the agent.
  void ask(const model::Command& command);
  /// Tells what a machine tells when it joins, but that it does.
  void look_first();
  /// All processes are killed, each within that time from now.
  void end_all(Duration within);
  /// Another agent begins, where nothing runs any more.
  void begin_anew();

 private:
  struct Process {
    model::AttemptKey key;
    Behaviour behaviour;
    std::optional<Instant> since;  ///< Nothing: it is being started.
    bool killed = false;           ///< KILL takes its time.
    bool late_seen = false;        ///< Its allocation was counted.
    Bytes peak;
    Bytes promise;
    Bytes disk;                         ///< Its promise: it writes all of it.
    bool waits = false;                 ///< For its device.
    std::vector<model::GpuIndex> gpus;  ///< Its GPUs, and since when.
    Instant gpus_since;
    Bytes gpu_peak;
    bool out_of_gpu = false;  ///< It says so when it ends.
    Bytes gpu_memory_max;     ///< Its cap on each GPU; 0: none.
    /// Things on the agenda for an older number of the process are void.
    std::uint64_t number = 0;
  };
  using Step = Agenda::Step;

  [[nodiscard]] Instant now() const { return world_.agenda.now(); }
  void at(Instant when, Step step) { world_.agenda.at(when, std::move(step)); }
  void add_batch();

  // Processes.
  void start(const model::StartAttempt& command);
  void signal(const model::SignalAttempt& command);
  void stop(const model::StopAttempt& command);
  void grant(const model::GrantDevice& command);
  void come_alive(model::TaskIndex task, std::uint64_t number);
  [[nodiscard]] bool refuses_to_start(model::TaskIndex task) const;
  // Two-phase processes.
  void begin_loading(const Process& process);
  void end_loading(model::TaskIndex task, std::uint64_t number);
  void end_training(model::TaskIndex task, std::uint64_t number);
  void say(const Process& process, model::Said said, std::string message = {});
  void start_over(const Process& process);
  /// Does what comes next in its life, unless it has ended by then.
  void next(Instant when, const Process& process,
            void (MadeUpMachine::*step)(model::TaskIndex task, std::uint64_t number));
  Process* living(model::TaskIndex task, std::uint64_t number);

  // Processes on GPUs.
  void give_gpus(Process& process, const std::vector<model::GpuIndex>& gpus);
  [[nodiscard]] Bytes gpu_use(const Process& process) const;
  [[nodiscard]] Bytes used_on(model::GpuIndex gpu) const;
  void fill_gpus();
  void end_those_at_their_caps();
  static bool was_at_its_cap(const Process& process);
  void run_out_of_gpu(model::TaskIndex task);
  void leave_gpus(const Process& process);
  model::GpusSampled read_gpus();
  void look_at_gpus_after(Duration after);
  void lose_gpu(const Trouble& trouble);
  void lose_gpu_memory(const Trouble& trouble);

  void end_at(Instant when, const Process& process, model::End end);
  void die(model::TaskIndex task, std::uint64_t number, const model::End& end);
  void tell_end(const Process& process, const model::End& end, Duration after);

  // The machine.
  void sample();
  model::Sampled read();
  [[nodiscard]] Bytes memory_taken();
  [[nodiscard]] Bytes written_by(const Process& process) const;
  Bytes disk_free();
  void leave_on_disk(const Process& process);
  void kill_for_memory();
  void plan(const Trouble& trouble);
  void for_a_while(const Trouble& trouble, Step begin, Step end);
  void count_for_a_while(const Trouble& trouble, Fault fault, int& how_many);
  void squeeze_memory(Duration lasts);
  void take_free_memory(Duration lasts);
  void kill_many();
  void lose_keeper(Duration for_so_long);
  void replace_keeper(const std::set<model::AttemptKey>& vanished);
  void lose_guard();
  std::set<model::AttemptKey> end_what_runs();
  void stop_yard(Duration lasts);
  void do_what_was_asked(const model::Command& command);
  void ask_to_kill(const Trouble& trouble);
  void ask_to_retry(model::TaskIndex task);

  [[nodiscard]] const model::Shape& shape_of(model::TaskIndex task) const {
    return workload_.plan.shape_of(task);
  }
  void tell(model::What what);

  const Workload& workload_;
  World world_;
  Part part_;
  std::uint64_t seed_;
  Random random_;
  std::vector<model::Event> inbox_;
  std::map<model::TaskIndex, Process> processes_;
  std::set<model::AttemptKey> unheard_;  ///< Gone, and its end is still to be told.
  struct Leftover {
    model::GpuIndex gpu;
    Bytes memory;
    Instant until;
  };
  std::vector<Leftover> leftovers_;  ///< Ended tasks that the driver still shows.
  struct CardState {
    int gone = 0;
    bool found = false;  ///< It was late, and its data have been reported.
    Bytes of_others;
    int other_users = 0;  ///< Number of those who compute there.
  };
  std::vector<CardState> cards_;
  int gpus_unnamed_ = 0;
  Bytes memory_of_others_;
  double cpu_of_others_ = 0;
  int samples_delayed_ = 0;
  int disk_full_ = 0;
  std::multiset<std::uint64_t> refused_;  ///< Trouble::which, of the starts that are refused now.
  Bytes disk_left_;                       ///< Of ended tasks: their files get deleted.
  bool keeper_gone_ = false;
  std::uint64_t agents_ = 0;  ///< The number of agents that have begun so far.
  std::optional<Instant> stopped_until_;
  bool keeper_is_replaced_ = false;   ///< Soon: the one that was there has died.
  std::vector<model::Command> held_;  ///< For the one that takes its place.
  std::size_t added_ = 0;             ///< The number of batches.
  std::uint64_t next_request_ = 1;
  std::uint64_t turns_ = 0;
};

}  // namespace trainyard::sim
