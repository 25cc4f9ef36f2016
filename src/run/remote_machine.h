// A machine of the run with an agent, as its yard sees it: commands go to the agent, and its
// reports become events of that machine.
//
//                 hello, ready                        stream ends, or is silent
//   Connecting ───────────────▶ Open ◀───────────────────────────────────▶ Cut
//       │                        ▲            the same agent answers        │
//       ▼                        │ another answers                          │ lease and grace over,
//     Failed                     └───────────────── Lost ◀──────────────────┘ or another answers
//
// While it is cut its tasks run on, and it is reported to be silent: nothing is started there.
// Nothing can run there any more when the agent's lease is over, or when another agent has begun in
// its place, which ends the rest. Then its attempts are reported to have vanished and the machine
// to be gone. It goes on trying to reach it, and when it answers it joins again.
//
// Messages of an attempt that was reported to have vanished are dropped: results count with the
// number of their attempt. Belongs to the thread of its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"
#include "run/event_check.h"
#include "run/unshared_files.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "sys/stream_program.h"
#include "wire/agent.h"
#include "wire/unheard_lines.h"

namespace trainyard::run {

class RemoteMachine {
 public:
  /// Bytes that may wait to be sent before the stream of a machine that does not listen is cut.
  static constexpr std::size_t kUnsentMax = std::size_t{64} << 20;
  /// Time that attempts there may take to end when the lease is over: the keeper's grace, and the
  /// time to kill.
  static constexpr Duration kEndMax{25'000};
  /// Silence after which it counts as not answering, unless half of the lease is less.
  static constexpr Duration kSilenceMax{12'000};

  /// Exit code of the command that leads there if its setup there has failed.
  static constexpr int kSetupFailed = 97;

  struct Options {
    std::string name;  ///< Its name for users: "lab1".
    /// Key of the machine's agent: that of an earlier execution if this one resumes with its
    /// agents, else a new key for each machine.
    std::string key;
    std::vector<std::string> command;  ///< The command that leads there: {"ssh", "lab1", ...}.
    std::string program;               ///< The name of our program: "trainyard 0.1.0".
    Duration lease{60'000};            ///< Time that its tasks run on without word from us.
    Duration end_max = kEndMax;
    Duration silence_max = kSilenceMax;
    /// The time when it is taken away, on the clock of sys::EventLoop::now(); nothing: unknown.
    std::optional<Duration> until = std::nullopt;
    /// Delay between two tries to reach it again, at first; twice as long each time, up to 15 s.
    Duration again_after{200};
    /// Set if it shares no disk with us. Nothing: the run's directory is the same there.
    std::optional<UnsharedFiles::Options> unshared = std::nullopt;
  };

  RemoteMachine(sys::EventLoop& loop, Options options);
  RemoteMachine(RemoteMachine&&) = delete;
  RemoteMachine& operator=(RemoteMachine&&) = delete;
  /// The stream is closed, whatever runs there.
  ~RemoteMachine();

  /// Call once. The next three functions show the result, while the loop runs.
  void connect();
  /// The agent's report about the machine, once it has answered; null before.
  [[nodiscard]] const wire::AgentHello* hello() const { return greeted_ ? &hello_ : nullptr; }
  /// Whether it can start tasks, since begin().
  [[nodiscard]] bool is_ready() const { return phase_ == Phase::Open && ready_; }
  /// Whether it has been looked at as well, so that it can start tasks as soon as it joins.
  [[nodiscard]] bool has_been_looked_at() const;
  /// Why it cannot be reached, or refuses, for people; empty: it may yet.
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// Before begin(), also before its hello: seen() has the result, once it has answered.
  void look(wire::AgentLook look);
  /// Null: it has not answered, or was not asked.
  [[nodiscard]] const wire::AgentSeen* seen() const { return seen_ ? &*seen_ : nullptr; }
  /// Time by which its wall clock is ahead of ours, to some tenths of a second: since its hello.
  [[nodiscard]] Duration clock_ahead() const { return clock_ahead_; }

  /// Tells it the run: after its hello. The key is that of the machine.
  void begin(wire::AgentBegin begin);
  /// Once it is ready: attempts that an earlier execution, whose yard has died, has started there,
  /// and that were not reported to have ended.
  [[nodiscard]] const std::vector<wire::AgentRun>& found() const { return found_; }
  /// Keeps these of the attempts that were found. The agent kills the others before it is ready.
  void keep(const std::set<model::AttemptKey>& goes_on);

  struct Ears {
    std::function<void(model::What)> tell;
    std::function<void(const std::string&)> note;
    std::function<Instant()> now;  ///< On the clock of the run.
  };
  /// It is ready, and joins the run as this machine.
  void join(model::MachineIndex machine, Ears ears);
  /// The run is active, and it joins as soon as it is ready: `next` returns its index. Until then
  /// it is tried to be reached.
  void join_when_ready(std::function<model::MachineIndex()> next, Ears ears);

  /// After the batches have been added: reports the attempts that it has kept, `more_follow` with
  /// the last one. And then, when that was done for all machines, their outcomes.
  void tell_what_goes_on(bool more_follow);
  void tell_what_became_of_it();
  /// Whether this start is that of a kept attempt, which has run, and may have ended.
  [[nodiscard]] bool has_started_before(model::AttemptKey key);
  /// All its reports are committed: its agent need not keep them any more.
  void is_written();

  /// From now on another command leads to it, and to another agent: at the start of a resumed run,
  /// or after rest().
  void lead_by(Options options);
  /// Nothing leads there at present, and it is not tried to be reached.
  void rest();
  /// It is certain that nothing runs there any more, though it could not be reached: its attempts
  /// are reported to have vanished, and nothing is started in its place before that.
  void lose(const std::string& why);

  /// The running attempts are to end: notes how long that may take if it cannot be told to.
  void say_what_is_waited_for() const;

  /// Files of ours that the attempt needs are brought there first, if these are not the same.
  void start(const model::StartAttempt& command, model::Launch launch);
  [[nodiscard]] bool runs(model::AttemptKey key) const { return attempts_.contains(key); }
  /// Sends the agent a command about an attempt that runs there.
  void carry_out(const model::Command& command);
  /// Before leave(), if nothing runs there any more: files that are not here are brought.
  void bring_the_rest();
  /// Leaves the files that are not here on the machine.
  void leave_the_rest();
  /// Why files that are not here are left there; empty: none that is needed.
  [[nodiscard]] const std::string& left() const { return left_; }
  /// Whether the files for bring_the_rest() are still in flight.
  [[nodiscard]] bool is_bringing() const { return brings_ && phase_ == Phase::Open; }
  /// The run is over: attempts that still run there are ended, and then the agent exits. Nothing
  /// more is reported about it.
  void leave();
  [[nodiscard]] bool has_left() const { return phase_ == Phase::Left && stream_ == nullptr; }

  [[nodiscard]] const std::string& name() const { return options_.name; }
  /// Key of the machine's agent.
  [[nodiscard]] const std::string& key() const { return options_.key; }
  /// It shares no disk with us.
  [[nodiscard]] bool has_own_directories() const { return files_ != nullptr; }
  /// Index of the machine in the run; nothing while it is not part of the run.
  [[nodiscard]] std::optional<model::MachineIndex> index() const {
    return joined_ ? std::optional(machine_) : std::nullopt;
  }
  /// The time when it is taken away, on the clock of sys::EventLoop::now(); nothing: unknown.
  [[nodiscard]] const std::optional<Duration>& until() const { return options_.until; }
  /// The grant of an attempt there, except its GPUs: all of these, as they are known by now.
  [[nodiscard]] model::Grant grant() const;

 private:
  enum class Phase : std::uint8_t { Connecting, Open, Cut, Lost, Failed, Left };

  void reach();
  void hear(std::string_view line);
  void hear_greeting(std::string_view line);
  void take(wire::AgentHello hello);
  void take(wire::AgentSeen seen);
  void take(wire::AgentReady ready);
  void take(const wire::AgentRefuses& refuses);
  void take(wire::AgentTells tells);
  void take(const wire::AgentNote& it);
  void take(const wire::AgentLog& log);
  void take(const wire::AgentHeard& heard);
  void turn_away(const std::string& why);
  void answers_again();
  void another_answers();
  void stream_ended(const std::string& why);
  void fall_silent(const std::string& why);
  bool tell_silence();
  void tell_that_it_joins();
  void look_whether_to_join();
  /// An obstacle to it may pass.
  [[nodiscard]] bool is_waited_for() const { return in_run_ || next_; }
  void fail(std::string why);
  void pulse();
  void tell_until_when();
  [[nodiscard]] std::uint64_t settled() const;
  [[nodiscard]] bool is_of_another_execution() const;
  [[nodiscard]] static bool is_of_attempt(const model::What& what);
  [[nodiscard]] static bool outlasts_its_yard(const decltype(wire::AgentSays::what)& what);
  void take_early(bool of_attempts);
  void plan_pulse();
  void plan_reach();
  void say(decltype(wire::YardSays::what) what);
  void say_at_once(decltype(wire::YardSays::what) what);
  [[nodiscard]] bool take_in(model::What& what);
  void tell(model::What what);
  void tell_when_files_are_here(model::AttemptEnded ended);
  void tell_what_is_left(const std::string& why) const;
  void start_with_files(const wire::AgentStart& start, const Result<void>& brought);
  void end_before_start(model::AttemptKey key, std::string why);
  [[nodiscard]] std::string why_it_ended(const std::string& why);
  void note(const std::string& text) const;
  [[nodiscard]] Duration silence_max() const;

  sys::EventLoop& loop_;
  Options options_;
  std::string failure_;

  std::optional<sys::StreamProgram> program_;
  std::unique_ptr<sys::LineStream> stream_;
  std::size_t greeting_ = 0;  ///< Bytes that came before the agent spoke.
  std::optional<sys::EventLoop::TimerId> pulse_timer_;
  std::optional<sys::EventLoop::TimerId> reach_timer_;
  Duration reach_after_;

  wire::AgentHello hello_;  ///< The last one.
  Duration clock_ahead_{0};
  std::optional<wire::AgentSeen> seen_;
  std::optional<wire::AgentBegin> begin_;
  Ears ears_;
  struct Early {
    std::uint64_t line = 0;
    wire::AgentTells tells;
  };
  std::vector<Early> early_;  ///< Reports from before it joined, or before the kept attempts were
                              ///< reported.
  std::vector<wire::AgentRun> found_;
  std::set<model::AttemptKey> started_before_;  ///< Kept attempts, until their starts are asked
                                                ///< for.
  EventCheck check_;
  std::vector<model::Gpu> gpus_;
  bool gpus_answer_ = true;               ///< All of them, when they were last sampled.
  std::set<model::AttemptKey> attempts_;  ///< Known to run there.
  std::unique_ptr<UnsharedFiles> files_;  ///< Set if files are not the same there.
  /// Commands for attempts whose files are still on the way there.
  std::map<model::AttemptKey, std::vector<model::Command>> not_started_;

  wire::UnheardLines unheard_;
  std::uint64_t heard_ = 0;
  std::uint64_t line_ = 0;       ///< The one that is being taken in.
  std::uint64_t of_others_ = 0;  ///< Up to this line they were for an earlier yard.
  std::uint64_t written_ = 0;    ///< Up to this line all is committed.
  std::map<model::AttemptKey, std::uint64_t> untold_ends_;  ///< In these lines; files are awaited.
  Duration heard_at_{0};                                    ///< The time of the last message.
  Duration clock_{0};        ///< A lower bound of its clock, by its last message.
  Duration lease_heard_{0};  ///< The last time that the agent of its attempts reported it.
  Duration agents_time_{0};  ///< From the clock of its events to that of sys::EventLoop::now().

  std::function<model::MachineIndex()> next_;  ///< Set if it is to join when it is ready.
  model::MachineIndex machine_;                ///< Since join().
  Phase phase_ = Phase::Connecting;
  bool spoken_ = false;   ///< The agent has sent something over this stream.
  bool greeted_ = false;  ///< There was a hello.
  bool ready_ = false;
  bool in_run_ = false;   ///< Since join().
  bool joined_ = false;   ///< It has joined, and has not gone since.
  bool silent_ = false;   ///< As reported.
  bool refused_ = false;  ///< And that was reported, too.
  bool rests_ = false;
  bool brings_ = false;   ///< The rest of the files.
  std::string left_;      ///< Why some of them did not come; empty: all of them have.
  bool forgets_ = false;  ///< All files are here, and not needed there.
};

}  // namespace trainyard::run
