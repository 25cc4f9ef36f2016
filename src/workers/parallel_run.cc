#include "workers/parallel_run.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "model/event.h"
#include "ranks/group.h"
#include "ranks/log_end.h"
#include "sys/files.h"
#include "sys/this_process.h"
#include "sys/token.h"
#include "sys/waker.h"
#include "wire/field_reader.h"
#include "wire/frame.h"
#include "wire/last_words.h"
#include "wire/parallel_record.h"
#include "workers/place.h"
#include "workers/roll.h"

namespace trainyard::workers {
namespace {

/// How much longer than a write takes the next one waits.
constexpr int kTimes = 50;

}  // namespace

RecordFile::RecordFile(sys::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {
  write();
  write_after(Duration(0));
}

RecordFile::~RecordFile() {
  if (timer_) loop_.cancel(*timer_);
}

void RecordFile::write_after(Duration delay) {
  timer_ = loop_.after(delay, [this] {
    timer_.reset();
    const Duration before = sys::EventLoop::now();
    write();
    write_after(std::max(kEvery, (sys::EventLoop::now() - before) * kTimes));
  });
}

void RecordFile::write() { written_ = sys::replace_file(options_.path, options_.text()); }

Result<void> RecordFile::write_last() {
  const auto timer = std::exchange(timer_, std::nullopt);
  if (timer) loop_.cancel(*timer);
  write();
  return written_;
}

namespace {

constexpr Duration kLongestDelay{30'000};
constexpr Duration kShowEvery{100};
constexpr std::size_t kErrorLines = 20;
constexpr std::uint32_t kLivesMax = 0xFFFF;

}  // namespace

ParallelRun::ParallelRun(const ParallelOptions& options, std::vector<WorkerPlan> plan,
                         Periods periods)
    : options_(options), periods_(periods), waits_(sys::EventLoop::now()) {
  for (WorkerPlan& each : plan) {
    waits_.add(each.node, each.roles);
    Life& life = lives_.emplace_back();
    life.index = static_cast<int>(lives_.size()) - 1;
    life.plan = std::move(each);
  }
}

ParallelRun::~ParallelRun() {
  router_.reset();
  machines_.reset();
  server_.reset();
  home_.reset();
}

void ParallelRun::note(const std::string& what) const {
  if (options_.note) return options_.note(what);
  std::cerr << "trainyard: " << what << '\n' << std::flush;
}

void ParallelRun::note_stranger(std::string_view what) {
  // Whoever may connect can do so as often as he likes.
  if (++strangers_ > kStrangerNotesMax) return;
  note(fmt::format("{}{}", what,
                   strangers_ == kStrangerNotesMax ? "; more of these are not reported" : ""));
}

Result<void> ParallelRun::prepare(Work work) {
  work_ = std::move(work);
  if (Result<void> taken = take_logs(); !taken) return taken;
  auto home = ChildHome::make(
      {.directory = logs_ ? logs_->directory() : std::string(),
       .lock = logs_ ? logs_->lock_descriptor() : -1,
       .name_prefix = "trainyard-workers-",
       .stop_grace = Duration(options_.stop_grace.count()),
       .children = lives_.size()},
      [function = work_.function](model::AttemptKey, const model::Launch&) { return function(); });
  if (!home) return std::unexpected(std::move(home.error()));
  home_ = *std::move(home);
  if (!logs_) {
    logs_ = std::make_unique<const RunLogs>(RunLogs::in_private(home_->directory()));
  }
  home_->keeper().listen(loop_, [this](std::span<const process::KeeperNews> news) {
    for (const process::KeeperNews& each : news) take_news(each);
  });
  auto server = home_->listen(loop_, "trainyard parallel",
                              [this](std::string_view what) { note_stranger(what); });
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  open_doors();
  return {};
}

Result<void> ParallelRun::take_logs() {
  if (options_.directory.empty()) return {};
  const auto directory = ChildHome::make_directory(options_.directory);
  if (!directory) return std::unexpected(directory.error());
  auto logs = RunLogs::take(*directory);
  if (!logs) return std::unexpected(std::move(logs.error()));
  logs_ = std::make_unique<const RunLogs>(*std::move(logs));
  return {};
}

void ParallelRun::open_doors() {
  server_->open_door(
      wire::Role::Worker,
      {.takes = wire::FrameKind::Report,
       .may_be_silent = true,
       .admit = [this](link::ConnectionId connection,
                       const wire::Hello& hello) { return admit(connection, hello); },
       // Before it has been taken over it has nothing to say.
       .on_frame = [this](link::ConnectionId connection,
                          const wire::Frame&) { server_->end(connection, "too early"); },
       .on_gone = [](link::ConnectionId) {}});
  // A person's command that asks how it stands.
  server_->open_door(
      wire::Role::Control,
      {.admit = [](link::ConnectionId, const wire::Hello&) -> Result<void> { return {}; },
       .on_frame =
           [this](link::ConnectionId connection, const wire::Frame& frame) {
             server_->send(
                 connection,
                 {.kind = wire::FrameKind::Reply, .sequence = frame.sequence, .fields = status()});
           },
       .on_gone = [](link::ConnectionId) {}});
}

std::string ParallelRun::status() const {
  // One that joins has no router before it is let in.
  nlohmann::json known = router_ ? nlohmann::json::parse(router_->status())
                                 : nlohmann::json{{"topology", to_text(options_.topology)},
                                                  {"open", false},
                                                  {"workers", nlohmann::json::array()},
                                                  {"machines", nlohmann::json::array()},
                                                  {"barriers", nlohmann::json::array()}};
  for (nlohmann::json& worker : known["workers"]) {
    const auto life = std::ranges::find(lives_, worker["node"].get<int>(),
                                        [](const Life& it) { return it.plan.node; });
    if (life != lives_.end() && life->process != 0) worker["process"] = life->process;
  }
  return wire::fields_text({{"parallel", known},
                            {"process", sys::own_pid()},
                            {"command", work_.command},
                            {"run", options_.run},
                            {"logs", home_->is_private() ? "" : home_->directory()},
                            {"retries", result_.retries}});
}

ParallelResult ParallelRun::run(Work work, const std::stop_token& stop) {
  if (const Result<void> ready = prepare(std::move(work)); !ready) {
    result_.error = ready.error().message;
    return std::move(result_);
  }
  const auto stop_all = [this] {
    // The other machines end for another reason already, and may have exited: the run has one
    // outcome on all of them.
    if (ending_ && machines_) return;
    result_.stopped = true;
    end_all("the run is stopped");
  };
  const sys::StopWatch watch(loop_, stop, stop_all);
  if (!work_.stop_signals.empty()) {
    loop_.watch_signals(work_.stop_signals, [this, stop_all](int signal) {
      // Asked once more: at once.
      if (result_.stopped || stop_signal_ != 0) {
        gave_up_on_others_ = true;
        return signal_those_that_run(SIGKILL);
      }
      stop_signal_ = signal;
      stop_all();
      if (machines_ && router_)
        note("stopping the run on all machines; Ctrl-C again kills at once");
    });
  }
  if (const Result<void> there = attach(); !there) {
    if (!result_.stopped) result_.error = there.error().message;
    return std::move(result_);
  }
  join_others();
  limit_the_wait_for_others();
  if (!ending_) {
    keep_record();
    for (Life& life : lives_) start(life);
  }
  if (home_->is_private() || options_.show) show_printed();
  while (!is_over()) loop_.run_once(std::nullopt);
  leave_others();
  write_record();
  if (home_->is_private() || options_.show) show_printed();
  if (!broken_.empty()) {
    result_.error = broken_;
  } else if (!cut_off_.empty()) {
    result_.error = cut_off_;
  }
  return std::move(result_);
}

bool ParallelRun::is_over() const {
  if (!broken_.empty()) return true;
  return is_empty() && !waits_for_others();
}

bool ParallelRun::is_empty() const {
  return std::ranges::none_of(
      lives_, [](const Life& life) { return life.running || life.timer.has_value(); });
}

// --- lives ---

std::string ParallelRun::log_of(const Life& life) const {
  return logs_->path_of(life.plan.node, life.number);
}

model::Launch ParallelRun::launch_of(const Life& life) const {
  const Place place{.socket = server_->path(),
                    .node = life.plan.node,
                    .index = life.index + (welcome_ ? welcome_->index : 0),
                    .count = welcome_
                                 ? welcome_->count
                                 : static_cast<int>(lives_.size()) + options_.workers_elsewhere,
                    .port = life.plan.port,
                    .life = life.number,
                    .labels = options_.labels,
                    .roles = life.plan.roles};
  return {.arguments = work_.command,
          .environment = {fmt::format("{}={}", kPlaceVariable, place_text(place)),
                          fmt::format("{}={}", kTokenVariable, life.token)},
          .working_directory = sys::current_directory().value_or("/"),
          .task_directory = home_->directory(),
          .stdout_path = home_->is_private() ? std::string() : log_of(life),
          .stderr_path = log_of(life),
          .forked = work_.command.empty()};
}

void ParallelRun::start(Life& life) {
  ++life.number;
  life.token = sys::random_token();
  life.running = true;
  life.listens = false;
  life.refused.clear();
  life.in_pipeline = false;
  life.finish.reset();
  life.printed.reset();  // Until it has begun there may be the log of another run.
  waits_.begins(life.plan.node, life.number, sys::EventLoop::now());
  home_->keeper().start(
      {.task = model::TaskIndex(static_cast<std::uint32_t>(life.index)), .attempt = life.number},
      launch_of(life));
}

void ParallelRun::keep_record() {
  if (home_->is_private()) return;
  record_ = std::make_unique<RecordFile>(
      loop_,
      RecordFile::Options{.path = fmt::format("{}/{}", home_->directory(), wire::kRecordName),
                          .text = [this] { return record_text(); }});
}

std::string ParallelRun::record_text() const {
  Waits waits = waits_;
  // Waits that still last are part of the record, as in a run that hangs.
  if (router_) {
    for (const auto& [node, wait] : router_->open_waits()) waits.waited(node, wait);
  }
  const bool has_begun = lives_.front().number > 0;
  return to_text(waits.record(sys::EventLoop::now(), has_begun && is_over()));
}

void ParallelRun::write_record() {
  if (!record_) return;
  if (const Result<void> written = record_->write_last(); !written) note(written.error().message);
}

ParallelRun::Life* ParallelRun::find(const model::AttemptKey& key) {
  if (key.task.value >= lives_.size()) return nullptr;
  Life& life = lives_[key.task.value];
  return life.number == key.attempt ? &life : nullptr;
}

ParallelRun::Life* ParallelRun::life_of_node(int node) {
  const auto found =
      std::ranges::find(lives_, node, [](const Life& life) { return life.plan.node; });
  return found == lives_.end() ? nullptr : &*found;
}

Result<void> ParallelRun::admit(link::ConnectionId connection, const wire::Hello& hello) {
  const auto life = std::ranges::find_if(lives_, [&](const Life& it) {
    return !it.token.empty() && sys::same_token(it.token, hello.token);
  });
  if (life == lives_.end() || !life->running) {
    return std::unexpected(Error{"it has no token of this run, or that has been used"});
  }
  if (hello.rank != life->plan.node) {
    return std::unexpected(
        Error{fmt::format("it has the token of worker {}, and another rank", life->plan.node)});
  }
  life->token.clear();
  life->arriving = connection;
  loop_.post([this, &arrived = *life] { take_over(arrived); });
  return {};
}

void ParallelRun::take_over(Life& life) {
  const auto connection = std::exchange(life.arriving, std::nullopt);
  if (!connection) return;
  auto socket = server_->hand_over(*connection);
  if (!socket) return note(fmt::format("worker {}: {}", life.plan.node, socket.error().message));
  waits_.comes(life.plan.node, sys::EventLoop::now());
  life.listens = true;
  router_->admit(life.plan.node, life.number, std::move(*socket));
}

void ParallelRun::take_news(const process::KeeperNews& news) {
  match(
      news,
      [this](const process::ProcessStarted& it) {
        result_.started = true;
        Life* const life = find(it.key);
        if (life == nullptr) return;
        if (life->running) life->process = it.pid;
        life->printed = std::make_unique<sys::Tail>(log_of(*life));
      },
      [](const process::RankFailed&) {}, [](const process::KeeperHeard&) {},
      [](const process::KeeperDied&) {}, [this](const process::KeeperNote& it) { note(it.text); },
      [this](const process::ProcessEnded& it) {
        if (Life* const life = find(it.key)) has_ended(*life, it.end);
      },
      // All that it had started is gone.
      [this](const process::KeeperReplaced& it) { broken_ = it.why; },
      [this](const process::KeeperGone& it) { broken_ = it.why; });
}

bool ParallelRun::comes_again(const Life& life) const {
  return options_.auto_recover && !ending_ && life.number < kLivesMax &&
         static_cast<int>(life.number) <= options_.max_retries;
}

void ParallelRun::has_ended(Life& life, const model::End& end) {
  life.running = false;
  life.process = 0;
  // Its last words are in its socket. A process may exit before the router has them.
  take_over(life);
  router_->catch_up(life.plan.node);
  const auto* const exit = std::get_if<model::ExitedWith>(&end);
  const bool is_zero = exit != nullptr && exit->code == 0;
  // A step that calls exit(0) ends nothing well.
  const bool well = is_zero && !life.in_pipeline;
  const auto* const not_started = std::get_if<model::NotStarted>(&end);
  const std::string how = is_zero                  ? "ended while its pipeline ran"
                          : not_started != nullptr ? not_started->why
                                                   : ranks::end_text(end);
  const wire::FinishWord finish = life.finish.value_or(
      wire::FinishWord{.outcome = well ? "finished" : "failed", .why = well ? "" : how});
  const bool was_told = result_.stopped || !result_.failures.empty() || !cut_off_.empty();
  if (!life.refused.empty() && !was_told) {
    return has_failed(life, "it was cut off: " + life.refused);
  }
  if (well || (ending_ && was_told)) {
    has_lived(life, well ? "finished" : "ended");
    // A crash is reported as failed, also while all workers are ending.
    if (!well) {
      return router_->has_ended(life.plan.node, Presence::Failed, "failed",
                                life.finish ? finish.why : how);
    }
    return router_->has_ended(life.plan.node, Presence::Finished, finish.outcome, finish.why);
  }
  const auto* const killed = std::get_if<model::KilledBy>(&end);
  const int signal = killed != nullptr ? killed->signal : 0;
  const bool says_why = life.finish && finish.outcome == "failed" && !finish.why.empty();
  if (!says_why) {
    // Where all is shown, the result is one line for each failure, without the end of the log.
    const std::string printed =
        options_.show && not_started == nullptr
            ? wire::last_words_of_output(ranks::end_of_log(log_of(life), kErrorLines))
            : std::string();
    return has_failed(life, printed.empty() ? how : fmt::format("{}, {}", how, printed), signal);
  }
  // A program that throws what its pipeline failed with is aborted for it.
  has_failed(life,
             exit != nullptr ? finish.why : fmt::format("{} (the process {})", finish.why, how),
             signal);
}

void ParallelRun::has_lived(const Life& life, const std::string& outcome) {
  waits_.ends(life.plan.node, outcome, sys::EventLoop::now());
}

void ParallelRun::has_failed(Life& life, const std::string& what, int signal) {
  const std::string errors = ranks::end_of_log(log_of(life), kErrorLines);
  if (!comes_again(life)) {
    has_lived(life, "failed");
    result_.failures.push_back(
        {.node = life.plan.node, .what = what, .stderr_end = errors, .signal = signal});
    // First, so that whoever waits at a barrier for it ends as all do, and not by that.
    end_all(fmt::format("worker {} failed: {}", life.plan.node, what));
    return router_->has_ended(life.plan.node, Presence::Failed, "failed", what);
  }
  has_lived(life, "lost");
  ++result_.retries;
  const auto doublings = std::min<std::uint32_t>(life.number - 1, 16);
  const Duration delay =
      std::min(kLongestDelay, Duration(options_.retry_delay.count()) * (1U << doublings));
  note(fmt::format("worker {} failed, and restarts in {} ms: {}", life.plan.node, delay.count(),
                   what));
  router_->has_ended(life.plan.node, Presence::Awaited, "failed", what);
  life.timer = loop_.after(delay, [this, &life] {
    life.timer.reset();
    start(life);
  });
}

void ParallelRun::end_all(const std::string& why) {
  if (std::exchange(ending_, true)) return;
  for (Life& life : lives_) {
    const auto timer = std::exchange(life.timer, std::nullopt);
    if (timer) loop_.cancel(*timer);
  }
  end_others(why);
  if (router_) router_->end_all({.why = why, .stopped = result_.stopped});
  // Those that listen have half of the time to end after their iteration; the others get only a
  // signal.
  for (const Life& life : lives_) {
    if (!life.listens) signal_life(life, SIGTERM);
  }
  const Duration grace(options_.stop_grace.count());
  loop_.after(grace / 2, [this] { signal_those_that_run(SIGTERM); });
  loop_.after(grace, [this] { signal_those_that_run(SIGKILL); });
  // Those of other machines have the same time, and some to say so.
  loop_.after(grace + periods_.others_within, [this] { gave_up_on_others_ = true; });
  loop_.after(periods_.others_within, [this] { give_up_on_silent_others(); });
}

void ParallelRun::signal_life(const Life& life, int signal) {
  if (!life.running) return;
  home_->keeper().signal(
      {.task = model::TaskIndex(static_cast<std::uint32_t>(life.index)), .attempt = life.number},
      signal, Duration(options_.stop_grace.count()) / 2);
}

void ParallelRun::signal_those_that_run(int signal) {
  for (const Life& life : lives_) signal_life(life, signal);
}

void ParallelRun::cut_off_worker(int node, const std::string& why) {
  Life* const life = life_of_node(node);
  if (life == nullptr) return;
  note(fmt::format("worker {} is cut off: {}", node, why));
  if (life->refused.empty()) life->refused = why;
  if (!life->running) {
    // It had ended well, but what it sent last was nothing.
    result_.failures.push_back({.node = node, .what = "it was cut off: " + why});
    loop_.post(
        [this, what = fmt::format("worker {} was cut off: {}", node, why)] { end_all(what); });
    return;
  }
  const auto signal_later = [this, node, number = life->number](Duration delay, int signal) {
    loop_.after(delay, [this, node, number, signal] {
      const Life* const still = life_of_node(node);
      if (still != nullptr && still->number == number) signal_life(*still, signal);
    });
  };
  const Duration grace(options_.stop_grace.count());
  signal_later(grace / 2, SIGTERM);
  signal_later(grace, SIGKILL);
}

void ParallelRun::show_printed() {
  for (Life& life : lives_) {
    if (life.printed == nullptr) continue;
    for (auto more = life.printed->read_more(); more && !more->empty();
         more = life.printed->read_more()) {
      show(life, *more);
    }
  }
  if (!is_over()) {
    loop_.after(kShowEvery, [this] { show_printed(); });
    return;
  }
  for (Life& life : lives_) {
    if (!life.line.empty()) show(life, "\n");
  }
}

void ParallelRun::show(Life& life, const std::string& text) {
  if (!options_.show) {
    std::cerr << text << std::flush;
    return;
  }
  life.line += text;
  std::size_t at = 0;
  for (std::size_t end = life.line.find('\n'); end != std::string::npos;
       end = life.line.find('\n', at)) {
    std::cerr << '[' << life.plan.node << "] "
              << std::string_view(life.line).substr(at, end + 1 - at);
    at = end + 1;
  }
  std::cerr << std::flush;
  life.line.erase(0, at);
}

}  // namespace trainyard::workers
