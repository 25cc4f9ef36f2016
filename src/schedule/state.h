// What the scheduler remembers, and the steps that its decisions are made of. Private to
// schedule/scheduler.h: nobody else includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/ending.h"
#include "schedule/estimates.h"
#include "schedule/forecast.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/group_book.h"
#include "schedule/ledger.h"
#include "schedule/lookahead.h"
#include "schedule/scheduler.h"
#include "schedule/task_table.h"
#include "schedule/waiting_room.h"

namespace trainyard {

/// What a task that ran out of memory asks for next: a fifth more than it had, or what it was seen
/// to use when that is more; never more than can be given.
Bytes grown(Bytes had, Bytes peak, Bytes most);

struct Scheduler::State {
  State(const Plan& plan, const Limits& limits, const Capacity& capacity);

  // What can happen. Each adds to `out` what it leads to.
  void begin(Instant at, const Sampled& machine, Decision& out);
  void started(Instant at, const AttemptStarted& event, Decision& out);
  void reported(Instant at, const StageReported& event, Decision& out);
  void ended(Instant at, const AttemptEnded& event, Decision& out);
  void interrupted(Instant at, Decision& out);
  void kill_asked(Instant at, const KillAsked& event, Decision& out);
  void sampled(Instant at, const Sampled& reading, Decision& out);
  void gpus_sampled(Instant at, const GpusSampled& reading, Decision& out);
  /// Lets go of what is waited for long enough.
  void let_go(Instant at) { gpus_.let_go(at); }
  /// When that is to be done next.
  [[nodiscard]] std::optional<Instant> next_letting_go() const { return gpus_.first_linger_end(); }
  void end_overdue(Instant at, Decision& out);

  /// Starts every waiting task that fits, oldest first, and notes why the others wait.
  void start_what_fits(Instant at, Decision& out);
  /// Says what could be promised, if that is new: after a reading, and with a new reason.
  void tell_headroom(bool after_reading, Decision& out);

  std::set<std::pair<Instant, TaskIndex>> deadlines;  ///< Of time limits and graces.
  TaskTable tasks;
  bool begun = false;
  bool keeper_silent = false;  ///< Nothing is started then.

 private:
  /// So many are loaded ahead of a GPU where nothing better is known: enough that there is always
  /// one that fits into a gap.
  static constexpr int kAheadMax = 24;

  /// What an attempt said to have run out of.
  enum class Lack : std::uint8_t {
    HostMemory,
    GpuMemory,   ///< Of a GPU that it was given.
    GpuNotGiven  ///< It used one all the same.
  };
  struct Running {
    AttemptKey key;
    Instant started;
    bool seen = false;  ///< Its process is known to exist.
    Stage stage = Stage::Train;
    std::optional<Instant> training_since;
    bool ahead = false;            ///< Started, and not training yet.
    bool waits = false;            ///< For its device, in the waiting room.
    std::optional<LastWord> word;  ///< After which it only ends.
    bool its_end_tells = false;    ///< It has trained when it ends well.
    StopCause cause = StopCause::None;
    bool signalled = false;   ///< The signal that it wants before any TERM has been sent,
    bool terminated = false;  ///< TERM has,
    bool killed = false;      ///< KILL has.
    std::optional<Instant> deadline;
    std::optional<Duration> time_left;         ///< Of its time limit, while it waits for a device.
    std::vector<std::uint64_t> kill_requests;  ///< Who waits to hear of its end.
    Request promise;
    Bytes memory_peak;  ///< Of all readings.
    GpuSet gpus;        ///< That it holds.
    Lack lack = Lack::HostMemory;
  };
  static Lack lack_of(const Running& running, bool of_gpu);
  /// With how much it would be, or was, tried.
  [[nodiscard]] static std::string tried_with(Lack lack, const Request& promise);
  /// How often younger tasks started while this one was the oldest that lacked room, and since
  /// when.
  struct Passed {
    int times = 0;
    Instant since;
  };
  /// One that lacks room, and what it asks for.
  struct Blocked {
    TaskIndex task;
    Request request;
  };
  /// One look at those who wait, oldest first.
  struct Round {
    Instant at;
    std::optional<Blocked> oldest;
    bool owed = false;            ///< It was passed too often.
    std::optional<Vacancy> kept;  ///< The room that is kept for it then.
    bool loads_wait = false;      ///< An older task may not be loaded ahead yet.
    bool gpu_loads_wait = false;  ///< The same of those that want GPUs.
  };
  /// How long tasks of a group took that ended well.
  struct Durations {
    std::int64_t count = 0;
    Duration sum{0};
    Duration longest{0};
  };

  [[nodiscard]] const Shape& shape_of(TaskIndex task) const {
    return shapes_[tasks[task].shape.value];
  }
  [[nodiscard]] GroupIndex group_of(TaskIndex task) const { return shape_of(task).group; }

  // Of groups.
  void open_group(GroupIndex group, Decision& out);
  void skip_group(GroupIndex group, const std::string& cause, Decision& out);
  void close_group_if_over(GroupIndex group, Decision& out);
  void look_at_blocked_groups(Decision& out);
  void fail_fast(GroupIndex group, Instant at, Decision& out);

  // Of the stages of a two-phase task.
  void begin_loading(TaskIndex task, Decision& out);
  void wait_for_device(Running& running, Instant at, Decision& out);
  void train(std::uint32_t lane, const GpuSet& gpus, Instant at, Decision& out);
  void trained(Running& running, Instant at, Decision& out);
  void ran_out_of_memory(Running& running, const std::string& message, Instant at, Decision& out);
  void say_last(Running& running, LastWord word, Instant at, Decision& out);
  void misspoke(Running& running, std::string what, Instant at, Decision& out);
  void leave_room(Running& running, Decision& out);
  void set_ahead(Running& running, bool ahead);

  // Of tasks.
  void start(std::uint32_t lane, const GpuSet& gpus, Instant at, Decision& out);
  [[nodiscard]] std::optional<Blocked> train_what_fits(Instant at, Decision& out);
  void block(Round& round, const Blocked& blocked) const;
  void keep_room_in(Round& round, const Blocked& oldest) const;
  void take_room_in(Round& round, const Candidate& started);
  void end_for(Running& running, StopCause cause, Instant at, Decision& out);
  void stop(Running& running, StopCause cause, Instant at, Decision& out);
  [[nodiscard]] bool wants_a_signal(const Running& running) const;
  void signal_early(Running& running, Instant at, Decision& out);
  void terminate(Running& running, Instant at, Decision& out);
  void set_deadline(Running& running, std::optional<Instant> at);
  void enter(TaskIndex task, Status status, Decision& out);
  void conclude_attempt(Running& running, const AttemptEnded& event, Instant at, Decision& out);
  void conclude(TaskIndex task, Status status, Ending ending, Decision& out);
  void conclude_waiting(TaskIndex task, Verdict verdict, const std::string& message, Decision& out,
                        Failure failure = Failure::Killed);
  [[nodiscard]] bool may_try_again(TaskIndex task, Stage stage) const;
  [[nodiscard]] std::string tries_text(const Running& running) const;
  [[nodiscard]] bool somebody_waits(ShapeIndex shape) const;
  void send_back(const Running& running, const std::string& why, const std::string& with,
                 Decision& out);
  void retry(const Running& running, const Usage& usage, const Ending& ending, Decision& out);

  [[nodiscard]] Bytes grown_request(const Running& running, Bytes peak) const;

  // Of GPUs.
  [[nodiscard]] Request gpu_request_of(TaskIndex task) const;
  [[nodiscard]] Request within_gpus(Request request, ShapeIndex shape) const;
  void learn_from_running();
  void end_those_over_their_limit(Instant at, Decision& out);
  void watch_memory(Instant at, Decision& out);
  [[nodiscard]] Running* to_be_preempted();
  /// What the kernel shall give a task at most that is promised so much; 0: no limit.
  [[nodiscard]] Bytes memory_max_of(TaskIndex task, Bytes promised) const;
  [[nodiscard]] Bytes learned_memory(Bytes asked, ShapeIndex shape) const;
  [[nodiscard]] Bytes learned_gpu_memory(Bytes asked, ShapeIndex shape) const;
  [[nodiscard]] Bytes grown_gpu_request(const Running& running, Bytes peak) const;
  [[nodiscard]] bool gpus_have_room_for_more(const Running& running, Bytes each) const;
  [[nodiscard]] Cause lack_of_gpus(Instant at) const;
  void give_up_on_gpus(Instant at, Decision& out);
  void give_up_waiting(TaskIndex task, Instant at, Decision& out);

  // Of the order.
  void put_in_order();
  void order_by_size();
  void follow(const std::vector<TaskIndex>& open, const std::vector<Prospect>& prospects);

  // Of starting.
  [[nodiscard]] Request request_to_start(TaskIndex task, Bytes memory) const;
  [[nodiscard]] bool waits_in_a_room(ShapeIndex shape) const;
  [[nodiscard]] Request request_of(const WaitingRoom::Lane& lane) const;
  [[nodiscard]] Candidate candidate_of(const WaitingRoom::Lane& lane, const GpuSet& gpus) const;
  [[nodiscard]] Cause obstacle(const WaitingRoom::Lane& lane, const Round& round,
                               GpuSet& gpus) const;
  [[nodiscard]] Cause obstacle_to_train(const WaitingRoom::Lane& lane, const Round& round,
                                        GpuSet& gpus) const;
  [[nodiscard]] bool may_load_ahead(const Shape& shape) const;
  [[nodiscard]] std::optional<Vacancy> vacancy_for(const Request& request, Instant at) const;
  void pass(TaskIndex task, Instant at);
  [[nodiscard]] bool passed_too_often(TaskIndex task, Instant at) const;
  [[nodiscard]] Duration passed_time_max(TaskIndex task) const;
  [[nodiscard]] std::optional<Duration> longest_expected(const Shape& shape) const;
  [[nodiscard]] std::optional<Instant> expected_end(const Running& running, Instant now) const;
  [[nodiscard]] bool others_use_the_cpus() const;
  [[nodiscard]] bool one_runs_on_the_cpus() const;
  [[nodiscard]] int processes_max() const;

  // Of reasons.
  void note_reason(const WaitingRoom::Lane& lane, Cause cause, Decision& out);
  void set_reason(ShapeIndex shape, Reason reason, Decision& out);
  void clear_reason(ShapeIndex shape, Decision& out);
  void note_queued(Decision& out);
  [[nodiscard]] Reason reason_for(const WaitingRoom::Lane& lane, Cause cause) const;
  [[nodiscard]] Headroom headroom_now() const;

  std::vector<Shape> shapes_;
  std::vector<std::pair<TaskIndex, TaskIndex>>
      members_;  ///< First and one past the last, by group.
  Limits limits_;
  Capacity capacity_;
  GroupBook groups_;
  Ledger ledger_;
  GpuLedger gpus_;
  GpuChooser chooser_;
  Estimates estimates_;
  WaitingRoom waiting_;  ///< To be started.
  WaitingRoom loaded_;   ///< Two-phase ones that have loaded, and wait to train.
  std::map<TaskIndex, Running> running_;
  int ahead_ = 0;                           ///< How many of them are started and do not train yet,
  int ahead_on_gpus_ = 0;                   ///< how many of these want GPUs,
  Cpus ahead_cpus_;                         ///< and the CPUs that the others will train on.
  std::map<TaskIndex, int> load_failures_;  ///< How often loading ran out of memory.
  std::map<TaskIndex, Bytes> grown_gpu_;    ///< What tasks that ran out of a GPU's ask for on each.
  std::map<TaskIndex, Passed> passed_;      ///< Waiting tasks that were passed.
  std::vector<Durations> durations_;        ///< By group,
  Durations all_durations_;                 ///< and of all.
  std::vector<Reason> reasons_;             ///< By shape: what was last told,
  int told_ = 0;                            ///< and of how many it is that they wait.
  Headroom headroom_;                       ///< That was last told.
  std::vector<std::uint32_t> noted_in_;     ///< By shape: in which pass.
  std::uint32_t pass_ = 0;
  int short_of_memory_ = 0;             ///< In how many readings, one after the other.
  std::map<TaskIndex, int> preempted_;  ///< How often tasks were interrupted for want of memory.
  int ahead_max_ = kAheadMax;           ///< How many tasks that want GPUs are loaded ahead.
  bool out_of_order_ = true;            ///< A group was opened.
  bool fresh_lanes_ = false;  ///< A group was opened, or a task came back, since the last pass.
  int interrupts_ = 0;
};

}  // namespace trainyard
