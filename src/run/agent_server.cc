#include "run/agent_server.h"

#include <algorithm>
#include <expected>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "link/control_socket.h"
#include "model/command.h"
#include "model/resources.h"
#include "process/process_table.h"
#include "run/machine_keys.h"
#include "run/machine_look.h"
#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/stream_program.h"
#include "sys/this_process.h"
#include "sys/token.h"

namespace trainyard::run {
namespace {

/// True for an event that a yard does not miss if it is late or lost: the next reading repeats it.
bool is_reading(const model::What& what) {
  return std::holds_alternative<model::Sampled>(what) ||
         std::holds_alternative<model::GpusSampled>(what) ||
         std::holds_alternative<model::Progressed>(what) ||
         std::holds_alternative<model::NeighboursSeen>(what);
}

/// True for an event that concerns the agent alone. The yard knows the machine as one that joins,
/// and for the end of its keeper the agent has the ends of all attempts.
bool is_for_nobody(const model::What& what) {
  return std::holds_alternative<model::MachineJoined>(what) ||
         std::holds_alternative<model::TimePassed>(what) ||
         std::holds_alternative<model::InterruptAsked>(what);
}

/// An error if the directory of the run is not the same here as on the host of the yard.
Result<void> see_directory(const wire::AgentBegin& begin) {
  const auto token = sys::read_plain_file(begin.proof, kib(1), sys::Links::Refuse);
  if (token && *token == begin.token) return {};
  return std::unexpected(
      Error{fmt::format("the run's directory {} is not the same on {}: it must be on a disk that "
                        "both machines share, under the same name",
                        begin.run_directory, sys::host_name())});
}

/// Makes the run's own directory here, which may exist from an earlier execution.
Result<void> make_own_directory(const wire::AgentBegin& begin) {
  std::error_code wrong;
  if (!std::filesystem::is_directory(begin.work_directory, wrong)) {
    return std::unexpected(
        Error{fmt::format("directory {} not found on {}", begin.work_directory, sys::host_name())});
  }
  std::filesystem::create_directories(begin.run_directory, wrong);
  if (!wrong) return {};
  return std::unexpected(sys::system_error(
      fmt::format("{}: cannot make '{}'", sys::host_name(), begin.run_directory), wrong.value()));
}

/// Proves, by writing a file, that the agent can write in the run directory, as all tasks must.
Result<void> write_in_directory(const wire::AgentBegin& begin) {
  const std::string path = fmt::format("{}.{}", begin.proof, begin.key);
  Result<void> written = sys::write_file_atomically(path, begin.token);
  if (!written) {
    return std::unexpected(
        std::move(written.error()).in(fmt::format("{}: the run's directory", sys::host_name())));
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return {};
}

}  // namespace

/// Has another process look at the machine of an agent, which answers its yard meanwhile: a disk
/// that hangs, or a Python that takes long to begin, holds up nothing but the look.
class AgentLooker {
 public:
  /// Called once with what was seen, or why nothing was. May destroy this.
  using Told = std::move_only_function<void(Result<wire::AgentSeen>)>;

  /// `program` is ours: with `agent --look` it answers one question on its standard input.
  AgentLooker(sys::EventLoop& loop, const std::string& program, const wire::AgentLook& look,
              Told told);
  AgentLooker(AgentLooker&&) = delete;
  AgentLooker& operator=(AgentLooker&&) = delete;
  /// Kills the process if it still looks.
  ~AgentLooker();

 private:
  void hear(std::string_view line);
  void tell(Result<wire::AgentSeen> seen);

  sys::EventLoop& loop_;
  Told told_;
  std::optional<sys::StreamProgram> program_;
  std::unique_ptr<sys::LineStream> stream_;
  std::optional<sys::EventLoop::TimerId> timer_;
};

AgentLooker::AgentLooker(sys::EventLoop& loop, const std::string& program,
                         const wire::AgentLook& look, Told told)
    : loop_(loop), told_(std::move(told)) {
  Result<sys::StreamProgram> started = sys::StreamProgram::start({program, "agent", "--look"});
  if (!started) {
    // Called later, as the owner does not have this object yet.
    timer_ = loop_.after({}, [this, why = std::move(started.error())]() mutable {
      timer_.reset();
      tell(std::unexpected(std::move(why)));
    });
    return;
  }
  program_.emplace(std::move(*started));
  stream_ = std::make_unique<sys::LineStream>(
      loop_, program_->take_stream(),
      sys::LineStream::Options{
          .line_max = wire::kAgentLineMax,
          .on_line = [this](std::string_view line) { hear(line); },
          .on_end =
              [this](const std::string& why) {
                tell(std::unexpected(
                    Error{"the process that checks the machine has exited: " + why}));
              }});
  stream_->send(wire::to_line(wire::YardSays{.what = look}));
  timer_ = loop_.after(kLookMax, [this] {
    timer_.reset();
    tell(std::unexpected(
        Error{"the check of the machine takes longer than " + trainyard::to_text(kLookMax)}));
  });
}

AgentLooker::~AgentLooker() {
  if (timer_) loop_.cancel(*timer_);
}

void AgentLooker::hear(std::string_view line) {
  Result<wire::AgentSays> said = wire::agent_says(line);
  auto* const seen = said ? std::get_if<wire::AgentSeen>(&said->what) : nullptr;
  tell(seen != nullptr
           ? Result<wire::AgentSeen>(std::move(*seen))
           : std::unexpected(Error{"the process that checks the machine sent an invalid answer"}));
}

void AgentLooker::tell(Result<wire::AgentSeen> seen) {
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  Told told = std::move(told_);
  told(std::move(seen));
}

AgentServer::AgentServer(Parts parts)
    : keeper_(std::move(parts.keeper)),
      machine_(std::move(parts.machine)),
      listener_(std::move(parts.listener)),
      program_(std::move(parts.program)),
      instance_(sys::random_token()),
      runs_until_(sys::boot_clock() + kIdleMax) {
  loop_.watch_readable(listener_.get(), [this] { accept(); });
}

AgentServer::~AgentServer() {
  stream_.reset();
  looker_.reset();
  local_.reset();
  tasks_.reset();
  if (logs_timer_) loop_.cancel(*logs_timer_);
  if (kill_timer_) loop_.cancel(*kill_timer_);
}

/// A new connection replaces the one before: that stream is dead, or about to be.
void AgentServer::accept() {
  sys::Descriptor socket = link::accept_from(listener_);
  if (!socket.is_open()) return;
  greeted_ = false;
  stream_ = std::make_unique<sys::LineStream>(
      loop_, std::move(socket),
      sys::LineStream::Options{.line_max = wire::kAgentLineMax,
                               .on_line = [this](std::string_view line) { hear(line); },
                               .on_end = [this](const std::string&) { stream_.reset(); }});
}

/// A line that is not valid ends the stream: the lines after it would not be valid either.
void AgentServer::hear(std::string_view line) {
  Result<wire::YardSays> said = wire::yard_says(line);
  if (!said) return refuse(said.error().message);
  if (said->number != 0) {
    if (said->number <= heard_) return;
    if (said->number != heard_ + 1) return refuse("something that was said is missing");
    ++heard_;
  }
  std::visit([this](auto& it) { take(std::move(it)); }, said->what);
}

void AgentServer::refuse(const std::string& why) {
  say_at_once(wire::AgentRefuses{.why = why});
  stream_.reset();
}

void AgentServer::take(const wire::AgentOpen& open) {
  if (open.protocol != wire::kAgentProtocol) {
    return refuse(fmt::format("{} and {} are incompatible: install the same version on both",
                              program_, open.program));
  }
  unheard_.acknowledge(open.received);
  forget_heard_runs();
  // Before a run has begun there is nothing that the last word has granted.
  if (!local_) runs_until_ = Duration{0};
  run_until(local_ ? open.until : sys::boot_clock() + std::min(open.lease, kIdleMax));
  say_at_once(wire::AgentHello{.protocol = wire::kAgentProtocol,
                               .program = program_,
                               .path = sys::own_program().value_or(""),
                               .home = sys::variable("HOME").value_or(""),
                               .host = sys::host_name(),
                               .instance = instance_,
                               .place = sys::name_of_this_boot(),
                               .capacity = machine_.reading.capacity,
                               .received = heard_,
                               .acknowledged = unheard_.acknowledged(),
                               .said = unheard_.next() - 1,
                               .begun = local_ != nullptr,
                               .clock = sys::boot_clock(),
                               .at = Instant{sys::EventLoop::now()},
                               .unix_ms = sys::unix_milliseconds()});
  greeted_ = true;
  for (const std::string& each : unheard_.lines()) stream_->send(each);
}

/// A second question takes the place of the first one, which is not answered any more.
void AgentServer::take(const wire::AgentLook& look) {
  const Result<std::string> program = sys::own_program();
  if (!program) return say(wire::AgentRefuses{.why = program.error().message});
  looker_ =
      std::make_unique<AgentLooker>(loop_, *program, look, [this](Result<wire::AgentSeen> seen) {
        looker_.reset();
        if (!seen) return say(wire::AgentRefuses{.why = seen.error().message});
        say(std::move(*seen));
      });
}

void AgentServer::take(const wire::AgentBegin& begins) {
  if (local_) {
    const Result<void> goes_on = go_on(begins);
    return goes_on ? say_what_runs() : say(wire::AgentRefuses{.why = goes_on.error().message});
  }
  const bool found = !begins.work_directory.empty() && sys::exists(begins.run_directory);
  const Result<void> begun = begin(begins);
  if (!begun) return say(wire::AgentRefuses{.why = begun.error().message});
  say(wire::AgentReady{.found = found});
}

Result<void> AgentServer::begin(const wire::AgentBegin& begin) {
  const bool is_own = !begin.work_directory.empty();
  const Result<void> there = is_own ? make_own_directory(begin) : see_directory(begin);
  if (!there) return there;
  if (Result<void> written = write_in_directory(begin); !written) return written;
  mark_ = mark_of_agent(begin.key);
  run_directory_ = begin.run_directory;
  if (is_own) own_directory_ = begin.run_directory;
  const Result<int> ended = process::end_processes(
      {.mark = begin.after.empty() ? mark_of(begin.run_directory) : mark_of_agent(begin.after),
       .user = process::user_of_run(begin.run_directory)},
      kLeftoverGrace);
  if (!ended) return std::unexpected(Error(ended.error()).in("what was left of the run"));
  Result<std::unique_ptr<link::FrameServer>> server = link::FrameServer::listen(
      loop_, {.program = program_,
              .parents = link::socket_parents(),
              .before_made = [this](const std::string& path) { keeper_.remove_at_end(path); },
              .on_trouble =
                  [this](std::string_view what) {
                    say(wire::AgentNote{.text = fmt::format("task socket: {}", what)});
                  }});
  if (!server) return std::unexpected(std::move(server.error()).in("the socket for tasks"));
  tasks_ = std::move(*server);
  for (const std::string& note : machine_.reading.notes) say(wire::AgentNote{.text = note});
  local_ = std::make_unique<LocalMachine>(
      loop_, keeper_,
      LocalMachine::Options{
          .begins = Instant{sys::EventLoop::now()},
          .sample_every = begin.sample_every,
          .joins =
              model::MachineJoined{
                  .machine = {}, .name = sys::host_name(), .capacity = machine_.reading.capacity},
          .launch = [this](
                        model::AttemptKey key,
                        const model::Grant&) { return std::move(launches_.extract(key).mapped()); },
          .frames = tasks_.get(),
          .on_note = [this](const std::string& text) { say(wire::AgentNote{.text = text}); },
          .gpus = machine_.gpus ? &*machine_.gpus : nullptr,
          .run_directory = begin.run_directory,
          .looks_at_disk = true,
          .log_max = begin.log_max});
  if (is_own) feed_logs();
  return {};
}

/// Answers a yard that follows on one that has died, and that knows the key of this agent.
Result<void> AgentServer::go_on(const wire::AgentBegin& begin) {
  const bool is_same = begin.run_directory == run_directory_ && mark_of_agent(begin.key) == mark_ &&
                       begin.work_directory.empty() == own_directory_.empty();
  if (!is_same) return std::unexpected(Error{"a run has begun here already"});
  if (own_directory_.empty()) {
    if (Result<void> seen = see_directory(begin); !seen) return seen;
  }
  if (begin.keeps) end_all_but(*begin.keeps);
  return {};
}

void AgentServer::end_all_but(const std::vector<model::AttemptKey>& kept) {
  std::erase_if(runs_, [&](const auto& it) {
    const auto& [key, run] = it;
    if (std::ranges::find(kept, key) != kept.end()) return false;
    if (run.known.ended) return true;
    ending_.insert(key);
    local_->carry_out(model::StopAttempt{.key = key});
    return false;
  });
  if (ending_.empty() || kill_timer_) return;
  kill_timer_ = loop_.after(kLeftoverGrace, [this] { kill_what_ends(); });
}

void AgentServer::kill_what_ends() {
  kill_timer_.reset();
  for (const model::AttemptKey key : ending_) {
    local_->carry_out(model::StopAttempt{.key = key, .kill = true});
  }
}

/// When nothing runs that is to end first.
void AgentServer::say_what_runs() {
  if (!ending_.empty()) return;
  wire::AgentReady ready{.found = true, .runs = {}};
  ready.runs.reserve(runs_.size());
  for (const auto& [key, run] : runs_) ready.runs.push_back(run.known);
  say(std::move(ready));
}

/// Notes an event of an attempt before it is sent.
void AgentServer::note_run(const model::What& what) {
  if (const auto* const started = std::get_if<model::AttemptStarted>(&what)) {
    const auto run = runs_.find(started->key);
    if (run != runs_.end()) run->second.known.started = *started;
  } else if (const auto* const ended = std::get_if<model::AttemptEnded>(&what)) {
    const auto run = runs_.find(ended->key);
    if (run == runs_.end()) return;
    run->second.known.ended = true;
    run->second.end_said_in = unheard_.next();
  }
}

void AgentServer::forget_heard_runs() {
  std::erase_if(runs_, [this](const auto& it) {
    return it.second.known.ended && it.second.end_said_in <= unheard_.acknowledged();
  });
}

/// Sends the new lines of logs once a second, as a user would look at them, while the yard reads
/// what was sent before.
void AgentServer::feed_logs() {
  constexpr std::size_t kUnheardMax = std::size_t{1} << 18;
  logs_.look([this] { return somebody_listens() && unheard_.bytes() < kUnheardMax; },
             [this](wire::AgentLog log) { say(std::move(log)); });
  constexpr Duration kEvery{1'000};
  logs_timer_ = loop_.after(kEvery, [this] { feed_logs(); });
}

/// Unless the job says what it sees.
void AgentServer::hide_gpus(std::vector<std::string>& environment) const {
  for (const std::string& variable : machine_.hiding) {
    const std::string_view begins = std::string_view(variable).substr(0, variable.find('=') + 1);
    const bool is_said = std::ranges::any_of(
        environment, [begins](const std::string& said) { return said.starts_with(begins); });
    if (!is_said) environment.push_back(variable);
  }
}

void AgentServer::take(wire::AgentStart start) {
  if (!local_) return refuse("no run has begun here");
  if (start.command.key.attempt == 0) return refuse("attempts count from 1");
  const std::size_t gpus = machine_.reading.capacity.gpus.size();
  for (const model::GpuIndex gpu : start.command.site.gpus) {
    if (gpu.value >= gpus) return refuse("it has fewer GPUs");
  }
  start.launch.environment.push_back(mark_);
  if (!start.launch.preload.modules.empty()) start.launch.preload.environment.push_back(mark_);
  hide_gpus(start.launch.environment);
  hide_gpus(start.launch.preload.environment);
  if (!own_directory_.empty()) logs_.add(start.command.key, logs_of(start.launch));
  const model::AttemptKey key = start.command.key;
  runs_.insert_or_assign(key, Run{.known = {.command = start.command,
                                            .journal_number = start.journal_number,
                                            .two_phase = start.launch.two_phase,
                                            .task_directory = start.launch.task_directory}});
  launches_.insert_or_assign(key, std::move(start.launch));
  local_->carry_out(start.command);
}

void AgentServer::take(const wire::AgentCommand& command) {
  if (!local_) return refuse("no run has begun here");
  const bool is_start = std::holds_alternative<model::StartAttempt>(command.command);
  if (is_start) return refuse("a start without what is to be started");
  local_->carry_out(command.command);
}

/// A word that has overtaken a later one takes nothing back.
void AgentServer::run_until(Duration moment) {
  if (moment <= runs_until_) return;
  runs_until_ = moment;
  keeper_.let_run_until(moment);
}

/// The time until which tasks may run was counted from a reading of this clock that was sent
/// before.
void AgentServer::take(const wire::AgentHeard& heard) {
  unheard_.acknowledge(heard.up_to);
  forget_heard_runs();
  run_until(heard.clock);
  say_at_once(wire::AgentHeard{.up_to = heard_, .clock = sys::boot_clock()});
}

void AgentServer::take(const wire::AgentBye& bye) {
  forgets_ = bye.forgets;
  finish();
}

void AgentServer::finish() {
  done_ = true;
  if (local_) local_->look_again();
}

/// Once, over this stream or the next ones, in order; after its greeting, which comes first.
void AgentServer::say(decltype(wire::AgentSays::what) what) {
  const std::string& line = unheard_.keep(
      wire::to_line(wire::AgentSays{.number = unheard_.next(), .what = std::move(what)}));
  if (somebody_listens()) stream_->send(line);
}

/// About this stream, and nothing after it.
void AgentServer::say_at_once(decltype(wire::AgentSays::what) what) {
  if (stream_) stream_->send(wire::to_line(wire::AgentSays{.what = std::move(what)}));
}

void AgentServer::tell(model::Event event) {
  if (is_for_nobody(event.what)) return;
  const auto* const ended = std::get_if<model::AttemptEnded>(&event.what);
  if (ended != nullptr) logs_.remove(ended->key);
  const bool waits = !somebody_listens() || unheard_.bytes() > kReadingsMax;
  if (waits && is_reading(event.what)) return;
  tell_of_the_lease(event.what);
  note_run(event.what);
  const bool was_to_end = ended != nullptr && ending_.erase(ended->key) > 0;
  if (was_to_end) runs_.erase(ended->key);
  say(wire::AgentTells{.at = event.at, .what = std::move(event.what)});
  if (was_to_end) say_what_runs();
}

/// An attempt that the keeper killed because the lease was over gets that as its cause.
void AgentServer::tell_of_the_lease(model::What& what) const {
  auto* const ended = std::get_if<model::AttemptEnded>(&what);
  if (ended == nullptr || sys::boot_clock() <= runs_until_) return;
  auto* const vanished = std::get_if<model::Vanished>(&ended->end);
  if (vanished != nullptr) vanished->why = "the run did not respond within the lease";
}

void AgentServer::look_whether_anybody_is_there() {
  if (!stream_ && sys::boot_clock() > runs_until_) finish();
}

void AgentServer::run() {
  constexpr Duration kLook{1'000};
  while (!done_) {
    if (!local_) {
      loop_.run_once(kLook);
    } else {
      for (model::Event& event : local_->wait(std::nullopt)) tell(std::move(event));
      if (local_->keeper_gone()) finish();
    }
    look_whether_anybody_is_there();
  }
  // The last words go as far as they do.
  loop_.run_once(Duration{0});
  stream_.reset();
}

}  // namespace trainyard::run
