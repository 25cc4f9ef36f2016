// The run as seen by a reader of every event and every decision and nothing else: the status of
// each task, its promise, and how often it was passed. Written anew from the rules in the
// documentation, so that a mistake in schedule/ is not made twice.
#pragma once

#include <algorithm>
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
#include "sim/outside_gpus.h"

namespace trainyard::sim {

/// The reason why an attempt was ended.
enum class StopReason : std::uint8_t {
  None,
  TimeLimit,
  KillAsked,
  Interrupt,
  FailFast,
  OutOfMemory,  ///< It said so itself, and cannot go on as it is.
  NoGpu,        ///< None is left that it could train on.
  MemoryLimit,  ///< It takes more than its hard limit.
  GpuLimit,     ///< The same of a GPU.
  Preempted,    ///< The machine's memory runs short.
  Crowds,       ///< It has too much of its GPU for those beside it.
  Leaving       ///< It said its last word, or nonsense, and is still there.
};

struct SeenTask {
  model::ShapeIndex shape;
  model::GroupIndex group;
  Status status = Status::Init;
  model::Verdict verdict = model::Verdict::None;
  model::Failure failure = model::Failure::None;
  std::uint32_t attempt = 0;       ///< The last one; 0 before the first.
  std::uint32_t next_attempt = 1;  ///< The expected number of the next one.
  int train_failures = 0;          ///< For lack of memory.
  int load_failures = 0;           ///< For lack of memory.
  int failures = 0;                ///< Failures of its own.
  int lost = 0;                    ///< Losses, also with a GPU that did not answer.
  int preempted = 0;
  int crowded = 0;                   ///< Lacks of memory for which others were to blame.
  bool again = false;                ///< It may be started once more.
  bool goes_on = false;              ///< It had been tried before the run was resumed.
  bool on_hold = false;              ///< A user keeps it from starting.
  int priority = 0;                  ///< As it was said last.
  std::optional<Instant> begins_at;  ///< It is to start no earlier.
  std::optional<Instant> back_at;    ///< It waits until then for another try.
  model::Request request;            ///< The request of its next attempt when it starts,
  model::Request gpu_request;        ///< and of GPUs, when it starts or when it trains.
  /// The most that it has asked for on each GPU since it ran out there; 0: it has not.
  Bytes gpu_memory_most;
  void asked_of_gpus(Bytes before, Bytes now) {
    gpu_memory_most = std::max({gpu_memory_most, before, now});
  }
  /// Its starts that its machine has refused since it was last started: the first of them, how long
  /// it waits alone for the next one, and how long it has done so in all.
  std::optional<Instant> refused_since;
  Duration refusal_delay{0};
  Duration refusal_delays{0};
  int refusals = 0;  ///< In the present pause.
  int passed = 0;    ///< Younger ones started while it was the oldest without room.
  Instant passed_since;
};

struct SeenAttempt {
  model::AttemptKey key;
  model::Request promise;
  Bytes measured;  ///< At the last reading.
  Bytes peak;      ///< The maximum of all readings.
  Instant granted;
  std::optional<Instant> started;  ///< The time of the news of its start.
  std::optional<Instant> trains_since;
  /// The time of the next step: TERM at its time limit or after its last word, or the signal that
  /// it wants before.
  std::optional<Instant> end_by;
  std::optional<Duration> left;  ///< The rest of its time limit, while it waits for a device.
  Stage stage = Stage::Train;
  bool ahead = false;               ///< Started, and not training yet.
  std::optional<model::Said> word;  ///< The last.
  bool end_tells = false;           ///< It said so, when it began to train.
  StopReason stop = StopReason::None;
  bool signalled = false;          ///< It got the signal that it wants before TERM.
  std::optional<Instant> stopped;  ///< TERM.
  std::optional<Instant> found;    ///< The time when `stop` was first found.
  bool killed = false;
  bool out_of_gpu = false;                  ///< The lacking memory was that of a GPU of its own.
  bool out_of_other_gpu = false;            ///< The same of one that it was not given.
  bool crowded = false;                     ///< Others had too much of it then.
  bool taken_off = false;                   ///< It has to end, as it has too much of a GPU.
  Bytes cap;                                ///< Its cap on a GPU.
  bool keeps_to_cap = false;                ///< It said so.
  bool at_limit = false;                    ///< It ran out of all that its hard limit lets it have.
  std::optional<model::GpuIndex> gpu_died;  ///< The one of its GPUs for which it failed.
  bool for_good = false;                    ///< Its end was requested, whatever it did itself.
  std::vector<std::uint64_t> requests;      ///< Kill requests that wait for an answer.

  [[nodiscard]] Bytes holds() const { return std::max(promise.memory, measured); }
};

/// The measured usage of tasks of one shape.
struct SeenPeaks {
  std::vector<Bytes> of_finished;  ///< Oldest first.
  Bytes of_running;

  /// The value that 95 % do not exceed; 0: there is none.
  [[nodiscard]] Bytes usual() const;
  [[nodiscard]] Bytes seen() const { return std::max(usual(), of_running); }
  /// With a margin.
  [[nodiscard]] Bytes needed() const;
  /// The middle one, of two the larger, with a margin.
  [[nodiscard]] Bytes half_need() const;
};

/// The machine has refused a start. Nothing starts for a while, and then one task is tried.
struct SeenPause {
  Instant since;  ///< The first refusal.
  Duration length{1'000};
  Instant tries_at;
  std::optional<model::AttemptKey> tried;  ///< No news of it yet.
};

struct SeenGroup {
  model::GroupPhase phase = model::GroupPhase::Blocked;
  Instant since;           ///< The time of its batch, or of the start of the run.
  std::uint32_t open = 0;  ///< Tasks without a verdict.
  int running = 0;
  bool after_failure = false;  ///< Some of what it needs had ended badly when it began.
  bool tripped = false;        ///< It fails fast, and one of its tasks has failed.
  std::optional<model::TaskIndex> tried_first;  ///< While the others wait for it.
  bool first_failed = false;                    ///< That one has failed, by itself.
  std::int64_t ended_well = 0;
  Duration durations{0};
  Duration longest{0};
};

/// The expected time of the room of an older task, and the room for others beside it then.
struct Opening {
  std::optional<Instant> at;
  Bytes memory_beside;
  model::Cpus cpus_beside;
  std::vector<SeenGpu> gpus_beside;
};

struct Outside {
  Outside(const model::Policy& the_limits, const model::Capacity& the_capacity);

  void add(const model::Plan& batch, Instant since);
  /// A task as it is before its first attempt, which will have this number.
  [[nodiscard]] SeenTask begun(model::ShapeIndex index, std::uint32_t attempt) const;
  [[nodiscard]] Duration time_limit_of(model::TaskIndex index) const;
  /// The number of tries in all before a lack of memory is the end of a task.
  [[nodiscard]] int tries_for_memory(const SeenTask& task, Stage stage) const;

  Instant latest;    ///< The time of the last event.
  model::Plan plan;  ///< All batches so far.
  const model::Policy& policy;
  model::Capacity capacity;
  Bytes kept_free;
  std::vector<SeenTask> tasks;
  std::vector<SeenGroup> groups;
  std::vector<model::Reason> reasons;     ///< By shape.
  bool room_known = false;                ///< The numbers of reasons have been told.
  std::vector<std::uint32_t> waiting_in;  ///< By shape: tasks that do not run and have no verdict.
  std::map<model::TaskIndex, SeenAttempt> running;
  std::map<model::TaskIndex, Duration> time_limits;  ///< Other limits that were requested.
  std::set<model::TaskIndex> waiting;                ///< In running groups that try no task first.
  /// Tasks of such groups that need tasks which have not ended, or are on hold.
  std::set<model::TaskIndex> aside;
  /// The tasks that each needs itself, and the task in whose place it goes.
  std::map<model::TaskIndex, std::vector<model::TaskIndex>> needed;
  std::map<model::TaskIndex, model::TaskIndex> steads;
  std::set<model::TaskIndex> loaded;   ///< Tasks that wait for a device.
  std::set<model::TaskIndex> started;  ///< After this event, oldest first.
  /// After this event: those that had room when they were looked at, and wait for another to
  /// settle.
  std::set<model::TaskIndex> settling;
  /// The same of those that wait for disk alone, or for an older one that does.
  std::set<model::TaskIndex> without_disk;
  Bytes available;  ///< At the last reading, plus what those had then that have ended.
  std::optional<Bytes> disk_at_reading;
  Bytes disk_of_ended;  ///< The promises of those that have ended since.
  double cpu_of_others = 0;
  bool keeper_silent = false;
  std::optional<SeenPause> pause;
  Instant last_start;                               ///< The last reported start of a task.
  std::map<model::ShapeIndex, int> shape_refusals;  ///< In the present pause.
  OutsideGpus gpus;
  int interrupts = 0;
  int low_readings = 0;  ///< In a row, of the machine's memory.
  /// By shape: the maximum number of its tasks on a GPU by the reported price of sharing it; 0: any
  /// number.
  std::vector<int> told_per_gpu_max;
  std::vector<SeenPeaks> memory_peaks;      ///< By shape.
  std::vector<SeenPeaks> gpu_memory_peaks;  ///< By shape.
  /// By group: what its tasks took of a GPU for each thousand bytes that were written for them.
  std::vector<SeenPeaks> gpu_ratios;

  void read(const model::Sampled& reading);
  void read(Instant at, const model::GpusSampled& reading);
  /// After every reading.
  void learn_from_running();
  /// The state that tasks of a resumed run had reached before.
  void go_on_with(const model::Plan& batch, std::uint32_t first);
  /// Learns from a task that has finished; `written` is its request on each GPU.
  void learn(model::TaskIndex index, Bytes memory, Bytes gpu_memory, Bytes written);
  void learn(model::TaskIndex index, Bytes memory, Bytes gpu_memory);
  /// Learns from a task that still runs, too.
  void learn_ratio(model::TaskIndex index, Bytes gpu_memory, Bytes written);

  /// The group runs: all of its tasks wait from now on, or the one that is tried first.
  void open(model::GroupIndex group);
  /// A task of a running group waits for room, or for the time of its start, from now on.
  void begin_to_wait(model::TaskIndex index);
  /// The prospect of a task without a verdict, by the needs of it and its group.
  enum class Fate : std::uint8_t { Open, Runs, Skipped, NotNeeded };
  [[nodiscard]] Fate fate_of(model::TaskIndex index) const;
  [[nodiscard]] bool needs_a_bad_group(model::GroupIndex index) const;
  [[nodiscard]] bool needs_open_tasks(model::TaskIndex index) const;
  /// Whether some of the group run after a failure, too.
  [[nodiscard]] bool is_patient(model::GroupIndex group) const;
  /// Tasks that no longer have a reason to stand aside wait from now on.
  void let_in();
  void put_on_hold(model::TaskIndex index);
  void release_from_hold(model::TaskIndex index);
  void add_needs(const model::Plan& batch, std::uint32_t first);
  /// Before the order of the job file: what has been begun is brought to its end.
  [[nodiscard]] std::pair<model::TaskIndex, model::TaskIndex> place(model::TaskIndex index) const;
  /// The others wait for room now.
  void end_trial(model::GroupIndex group);
  /// It has its verdict for the deeds of others: another one is tried, if a task still waits.
  void leave_trial(model::TaskIndex index);
  /// Whether it waits for the one that is tried first.
  [[nodiscard]] bool is_held(model::TaskIndex index) const;
  [[nodiscard]] std::vector<model::TaskIndex> open_tasks_of(model::GroupIndex group) const;
  /// Since when it trains, and is left alone.
  [[nodiscard]] std::optional<Instant> lives_since(model::TaskIndex index) const;
  /// The task that has to be interrupted after a reading of the host, if there is one.
  [[nodiscard]] std::optional<model::TaskIndex> to_be_interrupted() const;
  /// The same after a reading of the GPUs, for this one.
  [[nodiscard]] std::optional<model::TaskIndex> to_be_taken_off(model::GpuIndex gpu) const;
  void grant(const model::StartAttempt& command, Instant at);
  void wait_for_device(model::TaskIndex index, Instant at);
  void stop_waiting_for_device(model::TaskIndex index);
  void train(const model::GrantDevice& command, Instant at);
  /// Takes an attempt out; returns it as it was.
  SeenAttempt release(model::TaskIndex index, Instant at);

  /// The cap of one that runs on its GPUs, with this room left on each.
  [[nodiscard]] Bytes cap_for(model::TaskIndex index, const std::vector<SeenGpu>& left) const;
  /// Whether it had about all of its cap.
  [[nodiscard]] static bool was_at_its_cap(const SeenAttempt& attempt, Bytes peak);
  /// Whether its promise on a GPU is a hard limit.
  [[nodiscard]] bool has_hard_gpu_limit(model::TaskIndex index) const;

  /// The most that one has been promised on a GPU where it has just begun; 0: none has.
  [[nodiscard]] Bytes beginning_on(model::GpuIndex gpu, Instant at) const;

  /// Whether the first of two waiting tasks goes before the other: of two-phase tasks on GPUs the
  /// smaller does.
  [[nodiscard]] bool starts_before(model::TaskIndex one, model::TaskIndex other) const;
  /// The tasks that wait to be started, in that order.
  [[nodiscard]] std::vector<model::TaskIndex> waiting_in_order() const;
  /// Whether the first of two loaded tasks goes before the other: the one that needs more of a GPU
  /// does.
  [[nodiscard]] bool trains_before(model::TaskIndex one, model::TaskIndex other) const;
  /// The tasks that have loaded, in that order.
  [[nodiscard]] std::vector<model::TaskIndex> loaded_in_order() const;
  [[nodiscard]] const SeenTask& task(model::TaskIndex index) const { return tasks[index.value]; }
  [[nodiscard]] SeenTask& task(model::TaskIndex index) { return tasks[index.value]; }
  [[nodiscard]] const model::Shape& shape_of(model::TaskIndex index) const {
    return plan.shapes[task(index).shape.value];
  }
  [[nodiscard]] bool two_phase(model::TaskIndex index) const {
    return shape_of(index).terms.two_phase;
  }
  /// Whether there are few enough that load, or have loaded and wait, for this one: when it was
  /// looked at, that is, before younger ones were started.
  [[nodiscard]] bool may_load_ahead(model::TaskIndex index) const;
  /// The promise that an attempt must get now (one that has loaded: beyond its present one): its
  /// request; but the part that a retry added beyond its shape is at most the room that there would
  /// be with none of our other tasks.
  [[nodiscard]] model::Request due(model::TaskIndex index) const;
  [[nodiscard]] model::Cpus cpus_free() const;
  /// By the promises and what was measured beyond them.
  [[nodiscard]] Bytes memory_free_by_ledger() const;
  /// By the last reading, less what was promised and not taken then.
  [[nodiscard]] Bytes memory_free_by_reading() const;
  /// By the last reading, less all that was promised to those that run or have ended since.
  [[nodiscard]] Bytes disk_free() const;
  [[nodiscard]] bool has_room_for(const model::Request& request) const;
  [[nodiscard]] int processes_max() const;
  [[nodiscard]] bool group_has_room(model::GroupIndex group) const;
  /// Whether it had when this task was looked at, before younger ones were started.
  [[nodiscard]] bool had_group_room(model::TaskIndex index) const;
  /// Whether others use so little of the CPUs that the limit lets this one start: on GPUs it does
  /// always, and where none runs on the CPUs.
  [[nodiscard]] bool may_use_cpus(model::TaskIndex index) const;
  /// The machine could not start this one. False: it has failed by itself, as others were started
  /// again and again meanwhile.
  bool refuse(model::AttemptKey key, Instant at);
  void started_after_all(model::TaskIndex index, Instant at);
  void end_pause();
  [[nodiscard]] bool is_paused() const {
    return pause && (pause->tried || latest < pause->tries_at);
  }
  /// Whether anything at all may start now.
  [[nodiscard]] bool gate_open() const;

  /// The oldest waiting task that lacks nothing but memory or CPUs.
  [[nodiscard]] std::optional<model::TaskIndex> oldest_without_room() const;
  /// The oldest of those that have loaded and lack CPUs or GPUs.
  [[nodiscard]] std::optional<model::TaskIndex> oldest_loaded_without_device() const;
  /// Idle GPUs are taken first where the strategy says so, and no task of the run waits that could
  /// have a whole one.
  [[nodiscard]] IdleGpus idle_gpus() const;
  /// The CPUs, GPUs and memory of a task in the end.
  [[nodiscard]] model::Request whole(model::TaskIndex index) const;
  /// Whether it has been passed so often or for so long that what it needs is kept for it.
  [[nodiscard]] bool is_owed_its_room(model::TaskIndex index, Instant at) const;
  [[nodiscard]] std::optional<Opening> opening_for(model::TaskIndex index, Instant at) const;
  /// `gpus` are those that the other gets now; for a task that only loads they are unknown.
  [[nodiscard]] bool would_delay(const Opening& opening, model::TaskIndex other,
                                 const std::vector<model::GpuIndex>& on, Instant at) const;
  /// The other starts: what it takes beside is gone.
  void take_beside(Opening& opening, model::TaskIndex other,
                   const std::vector<model::GpuIndex>& on) const;

 private:
  void try_one_of(const std::vector<model::TaskIndex>& open);
  [[nodiscard]] Bytes learned_memory(Bytes asked, model::TaskIndex index) const;
  [[nodiscard]] Bytes learned_gpu_memory(Bytes asked, model::TaskIndex index) const;
  /// The GPUs that it has beside; nothing when it does not fit there.
  [[nodiscard]] std::optional<std::vector<model::GpuIndex>> place_beside(
      const Opening& opening, model::TaskIndex other, const std::vector<model::GpuIndex>& on) const;
  /// A task may have the GPUs on which it was lost where there are no others for it.
  [[nodiscard]] model::Request kept_off(model::Request request) const;
  /// Lowers what a retry requests beyond its shape to what there is.
  [[nodiscard]] model::Request within_gpus(model::Request request, model::TaskIndex index) const;
  /// Its part of the memory of the host and of all GPUs, in millionths.
  [[nodiscard]] std::int64_t part_of_machine(model::TaskIndex index) const;
  [[nodiscard]] std::optional<Instant> expected_end(const SeenAttempt& attempt, Instant at) const;
};

/// The request of a task after it ran out of memory: a fifth more, or its measured peak if that is
/// more, but at most `most`.
Bytes after_out_of_memory(Bytes had, Bytes peak, Bytes most);

}  // namespace trainyard::sim
