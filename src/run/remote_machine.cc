#include "run/remote_machine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "sys/clock.h"

namespace trainyard::run {
namespace {

/// Maximum of what a shell may print before the agent speaks.
constexpr std::size_t kGreetingMax = std::size_t{256} << 10;
/// Time limit of one try to reach it.
constexpr Duration kReachMax{30'000};
/// The agent answers each pulse.
constexpr int kPulsesOfASilence = 3;
constexpr Duration kAgainMax{15'000};

std::string all_lines(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text.empty() ? "no output" : std::string(text);
}

/// The last line that says something: ssh's own, or the shell's there.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t before = text.rfind('\n');
  return std::string(before == std::string_view::npos ? text : text.substr(before + 1));
}

}  // namespace

RemoteMachine::RemoteMachine(sys::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), reach_after_(options_.again_after) {
  if (!options_.unshared) return;
  files_ = std::make_unique<UnsharedFiles>(loop_, *options_.unshared,
                                           [this](const std::string& text) { note(text); });
}

RemoteMachine::~RemoteMachine() {
  if (pulse_timer_) loop_.cancel(*pulse_timer_);
  if (reach_timer_) loop_.cancel(*reach_timer_);
}

void RemoteMachine::connect() { reach(); }

void RemoteMachine::reach() {
  reach_timer_.reset();
  spoken_ = false;
  greeting_ = 0;
  heard_at_ = sys::EventLoop::now();
  Result<sys::StreamProgram> program = sys::StreamProgram::start(options_.command);
  if (!program) return stream_ended(program.error().message);
  program_.emplace(std::move(*program));
  stream_ = std::make_unique<sys::LineStream>(
      loop_, program_->take_stream(),
      sys::LineStream::Options{.line_max = wire::kAgentLineMax,
                               .on_line = [this](std::string_view line) { hear(line); },
                               .on_end = [this](const std::string& why) { stream_ended(why); }});
  say_at_once(wire::AgentOpen{.protocol = wire::kAgentProtocol,
                              .program = options_.program,
                              .lease = options_.lease,
                              .until = clock_ + options_.lease,
                              .received = written_});
  plan_pulse();
}

/// Before the agent speaks its shell may greet: what it says then is no JSON.
void RemoteMachine::hear(std::string_view line) {
  if (phase_ == Phase::Left) return;
  if (!spoken_ && !wire::is_agents_first(line)) return hear_greeting(line);
  spoken_ = true;
  heard_at_ = sys::EventLoop::now();
  Result<wire::AgentSays> said = wire::agent_says(line);
  if (!said) return stream_ended(said.error().message);
  if (said->number != 0) {
    if (said->number <= heard_) return;
    if (said->number != heard_ + 1) return stream_ended("a message of the agent is missing");
    ++heard_;
  }
  line_ = said->number;
  if (line_ != 0 && line_ <= of_others_ && !outlasts_its_yard(said->what)) return;
  std::visit([this](auto& it) { take(std::move(it)); }, said->what);
}

void RemoteMachine::hear_greeting(std::string_view line) {
  greeting_ += line.size();
  if (greeting_ > kGreetingMax) stream_ended("the output is not that of an agent");
}

/// The clock of its events runs from the moment of the hello: earlier events are not older than
/// they seem.
void RemoteMachine::take(wire::AgentHello hello) {
  if (hello.protocol != wire::kAgentProtocol) {
    return fail(fmt::format("{} there and {} are incompatible: install the same version on both",
                            hello.program, options_.program));
  }
  const bool knew_one = greeted_;
  const bool is_same = knew_one && hello_.instance == hello.instance;
  // The attempts of this agent have been reported as lost, so it has nothing more to report.
  if (is_same && phase_ == Phase::Lost) return turn_away("its agent starts over");
  // The previous agent's attempts cannot be seen from the new place: its lease ends them.
  const bool is_elsewhere = joined_ && hello.place != hello_.place;
  if (is_elsewhere) {
    note("another machine answers, or it was rebooted: tasks that ran there keep their lease");
    return turn_away("another machine answers");
  }
  clock_ = hello.clock;
  // The agent reads its clock when it sends, and the message arrives at once.
  clock_ahead_ = Duration{hello.unix_ms - sys::unix_milliseconds()};
  agents_time_ = sys::EventLoop::now() - hello.at.since_start;
  if (is_same) lease_heard_ = sys::EventLoop::now();
  reach_after_ = options_.again_after;
  hello_ = std::move(hello);
  if (files_) files_->know_home(hello_.home);
  greeted_ = true;
  if (is_same) return answers_again();
  if (knew_one) return another_answers();
  gpus_ = hello_.capacity.gpus;
  phase_ = Phase::Open;
  heard_ = written_ = hello_.acknowledged;
  of_others_ = hello_.said;
  if (unheard_.lines().empty()) unheard_.go_on_after(hello_.received);
  for (const std::string& line : unheard_.lines()) stream_->send(line);
}

/// Ends the connection to an agent without reading what it sends, so that the next one is tried.
void RemoteMachine::turn_away(const std::string& why) {
  say_at_once(wire::AgentBye{});
  stream_ended(why);
}

/// Everything continues from the point where it was cut.
void RemoteMachine::answers_again() {
  phase_ = Phase::Open;
  unheard_.acknowledge(hello_.received);
  for (const std::string& line : unheard_.lines()) stream_->send(line);
  tell_until_when();
  if (!ready_ || !std::exchange(silent_, false)) return;
  note("answers again");
  ears_.tell(model::KeeperSilent{.silent = false, .machine = machine_});
}

/// The former agent is gone. Its attempts may be about to end: the new one waits for that before it
/// is ready, and nothing is started in their place before that.
void RemoteMachine::another_answers() {
  phase_ = Phase::Open;
  heard_ = written_ = hello_.acknowledged;
  of_others_ = hello_.said;
  unheard_ = {};
  unheard_.go_on_after(hello_.received);
  ready_ = false;
  early_.clear();
  found_.clear();
  gpus_ = hello_.capacity.gpus;
  if (begin_) say(*begin_);
}

void RemoteMachine::take(wire::AgentSeen seen) { seen_ = std::move(seen); }

void RemoteMachine::take(wire::AgentReady ready) {
  ready_ = true;
  if (files_ && ready.found && !in_run_) files_->found_something();
  if (begin_) begin_->after = options_.key;
  if (!in_run_) {
    found_ = std::move(ready.runs);
    return look_whether_to_join();
  }
  lose("its agent is gone");
  phase_ = Phase::Open;
  refused_ = false;
  note("is there again");
  tell_that_it_joins();
}

void RemoteMachine::tell_that_it_joins() {
  joined_ = true;
  lease_heard_ = sys::EventLoop::now();
  // Its events are checked as if it were the only machine: in its own reports it is.
  check_ = {};
  static_cast<void>(check_.fault_of(
      {.at = {},
       .what = model::MachineJoined{.machine = {}, .name = {}, .capacity = hello_.capacity}},
      {}));
  model::MachineJoined joined{
      .machine = machine_, .name = options_.name, .capacity = hello_.capacity};
  if (options_.until) joined.until = ears_.now() + (*options_.until - sys::EventLoop::now());
  ears_.tell(std::move(joined));
}

void RemoteMachine::take(const wire::AgentRefuses& refuses) {
  // Something that concerns this stream alone may be over with the next one.
  if (is_waited_for() && ready_) return stream_ended(refuses.why);
  fail(refuses.why);
}

void RemoteMachine::take(const wire::AgentNote& it) { note(it.text); }

void RemoteMachine::take(const wire::AgentHeard& heard) {
  unheard_.acknowledge(heard.up_to);
  clock_ = heard.clock;
  if (ready_) lease_heard_ = sys::EventLoop::now();
}

void RemoteMachine::look(wire::AgentLook look) {
  seen_.reset();
  say(std::move(look));
}

void RemoteMachine::begin(wire::AgentBegin begin) {
  begin.key = options_.key;
  if (files_) files_->begin(begin);
  begin_ = std::move(begin);
  say(*begin_);
}

void RemoteMachine::join(model::MachineIndex machine, Ears ears) {
  machine_ = machine;
  in_run_ = true;
  ears_ = std::move(ears);
  tell_that_it_joins();
  take_early(/*of_attempts=*/false);
  if (phase_ == Phase::Cut) tell_silence();
}

void RemoteMachine::join_when_ready(std::function<model::MachineIndex()> next, Ears ears) {
  next_ = std::move(next);
  ears_ = std::move(ears);
  look_whether_to_join();
}

void RemoteMachine::look_whether_to_join() {
  const bool goes_on = !found_.empty() && ready_;
  if (!next_ || !(is_ready() || goes_on) || !has_been_looked_at()) return;
  join(std::exchange(next_, nullptr)(), std::move(ears_));
}

/// The agent that is started now ends what the previous one left.
void RemoteMachine::lead_by(Options options) {
  options_ = std::move(options);
  reach_after_ = options_.again_after;
  rests_ = false;
  if (begin_) begin_->key = options_.key;
  if (!greeted_) unheard_ = {};
  if (!greeted_ && begin_) say(*begin_);
  stream_.reset();
  program_.reset();
  if (reach_timer_) loop_.cancel(*reach_timer_);
  reach();
}

void RemoteMachine::rest() {
  rests_ = true;
  if (reach_timer_) loop_.cancel(*reach_timer_);
  reach_timer_.reset();
  stream_.reset();
  program_.reset();
  if (phase_ == Phase::Open) phase_ = Phase::Cut;
  tell_silence();
}

void RemoteMachine::leave() {
  if (!is_of_another_execution()) say_at_once(wire::AgentBye{.forgets = forgets_});
  phase_ = Phase::Left;
  ears_ = {};
  if (!spoken_ || is_of_another_execution()) stream_.reset();
}

/// Nothing there is ours yet: another yard may resume the run.
bool RemoteMachine::is_of_another_execution() const { return greeted_ && hello_.begun && !in_run_; }

void RemoteMachine::stream_ended(const std::string& why) {
  const std::string said = why_it_ended(why);
  stream_.reset();
  program_.reset();
  if (phase_ == Phase::Failed || phase_ == Phase::Left) return;
  if (!is_waited_for()) return fail(said);
  if (next_ && !std::exchange(refused_, true)) note(fmt::format("is not reached yet: {}", said));
  if (phase_ == Phase::Open) {
    phase_ = Phase::Cut;
    fall_silent(said);
  }
  plan_reach();
}

bool RemoteMachine::tell_silence() {
  if (!joined_ || std::exchange(silent_, true)) return false;
  ears_.tell(model::KeeperSilent{.silent = true, .machine = machine_});
  return true;
}

void RemoteMachine::fall_silent(const std::string& why) {
  if (!tell_silence()) return;
  note(
      fmt::format("is unreachable ({}): its tasks run for another {}, and no new tasks start there",
                  why, trainyard::to_text(options_.lease)));
}

void RemoteMachine::say_what_is_waited_for() const {
  if (!silent_ || attempts_.empty()) return;
  const Duration gone = sys::EventLoop::now() - lease_heard_;
  const Duration most = std::max(options_.lease + options_.end_max - gone, Duration{0});
  note(fmt::format("is unreachable: its tasks end by themselves; waiting for at most {}",
                   trainyard::to_text(most)));
}

/// The output of the program that connects is nearer to the cause than the closed stream.
std::string RemoteMachine::why_it_ended(const std::string& why) {
  if (!program_) return why;
  // The program closes its descriptors a moment before it has exited.
  constexpr Duration kEnding{100};
  const int code = program_->exit_code(kEnding).value_or(0);
  const std::string errors = program_->last_errors();
  std::string said = last_line(errors);
  if (code == kSetupFailed) return fmt::format("its setup failed: {}", all_lines(errors));
  constexpr int kNotFound = 127;
  const bool is_ours = said.starts_with(fmt::format("cannot run '{}'", options_.command.front()));
  if (code == kNotFound && !is_ours) {
    return fmt::format(
        "{}: install trainyard there, set 'agent.program' to its path, or set "
        "'agent.copy' to copy it there",
        said.empty() ? "no such command" : said);
  }
  if (!said.empty()) return said;
  return code == 0 ? why : fmt::format("the connection exited with code {}", code);
}

void RemoteMachine::fail(std::string why) {
  if (!is_of_another_execution()) say_at_once(wire::AgentBye{});
  stream_.reset();
  program_.reset();
  if (!is_waited_for()) {
    phase_ = Phase::Failed;
    failure_ = std::move(why);
    return;
  }
  // Attempts on that machine keep their lease, whatever the agent reports that has started in its
  // place.
  if (!std::exchange(refused_, true)) note(fmt::format("cannot be used: {}", why));
  if (phase_ == Phase::Open) phase_ = Phase::Cut;
  fall_silent(why);
  plan_reach();
}

void RemoteMachine::lose(const std::string& why) {
  phase_ = Phase::Lost;
  if (!joined_) return;
  tell_silence();
  joined_ = silent_ = false;
  untold_ends_.clear();
  if (files_) files_->forget();
  not_started_.clear();
  for (const model::AttemptKey key : std::exchange(attempts_, {})) {
    ears_.tell(model::AttemptEnded{
        .key = key, .end = model::Vanished{fmt::format("{}: {}", options_.name, why)}});
  }
  ears_.tell(model::MachineGone{.machine = machine_, .why = why});
  note(fmt::format("is gone: {}", why));
}

Duration RemoteMachine::silence_max() const {
  constexpr Duration kLeast{500};
  return std::min(std::max(options_.lease / 2, kLeast), options_.silence_max);
}

void RemoteMachine::plan_pulse() {
  if (pulse_timer_) loop_.cancel(*pulse_timer_);
  const Duration every = std::min(silence_max(), options_.lease / 2) / kPulsesOfASilence;
  pulse_timer_ = loop_.after(std::max(every, Duration{50}), [this] {
    pulse_timer_.reset();
    pulse();
  });
}

void RemoteMachine::plan_reach() {
  plan_pulse();
  if (reach_timer_ || rests_) return;
  reach_timer_ = loop_.after(reach_after_, [this] { reach(); });
  reach_after_ = std::min(reach_after_ * 2, kAgainMax);
}

/// Counted from the time that its clock showed in its last message: by then it was received, and a
/// late message gives no more time than a punctual one.
void RemoteMachine::tell_until_when() {
  if (!in_run_) is_written();
  say_at_once(wire::AgentHeard{.up_to = written_, .clock = clock_ + options_.lease});
}

void RemoteMachine::pulse() {
  const Duration now = sys::EventLoop::now();
  const bool is_there = phase_ == Phase::Open && ready_;
  if (joined_ && !is_there && now - lease_heard_ > options_.lease + options_.end_max) {
    lose(fmt::format("no response for {}", trainyard::to_text(now - lease_heard_)));
  }
  if (stream_ && spoken_) tell_until_when();
  // Output that is not read would block the program some day. The last of it is kept.
  if (program_) static_cast<void>(program_->last_errors());
  const bool unheard = now - heard_at_ > (spoken_ ? silence_max() : kReachMax);
  if (stream_ && (unheard || stream_->unsent() > kUnsentMax)) {
    stream_ended(spoken_ ? "no response" : "connecting takes too long");
  }
  if (phase_ != Phase::Failed && phase_ != Phase::Left) plan_pulse();
}

void RemoteMachine::say(decltype(wire::YardSays::what) what) {
  const std::string& line = unheard_.keep(
      wire::to_line(wire::YardSays{.number = unheard_.next(), .what = std::move(what)}));
  if (stream_ && spoken_) stream_->send(line);
}

void RemoteMachine::say_at_once(decltype(wire::YardSays::what) what) {
  if (stream_) stream_->send(wire::to_line(wire::YardSays{.what = std::move(what)}));
}

void RemoteMachine::note(const std::string& text) const {
  if (ears_.note) ears_.note(fmt::format("{}: {}", options_.name, text));
}

}  // namespace trainyard::run
