#include "trainyard/rank_executor.h"

#include <chrono>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/path_name.h"
#include "model/rank_environment.h"
#include "ranks/context_access.h"
#include "ranks/log_end.h"
#include "ranks/python_client.h"
#include "ranks/rank_executor_state.h"
#include "ranks/reduce.h"
#include "sys/files.h"
#include "sys/this_process.h"
#include "text/text_file.h"

namespace trainyard {
namespace {

constexpr std::size_t kFailureLogLines = 20;
/// Number of times that a group is launched for one task if it dies before the task has begun.
constexpr int kLaunchesMax = 3;

std::vector<std::pair<std::string_view, std::chrono::milliseconds>> named(const RankLimits& all) {
  return {{"launch", all.launch},
          {"initialise", all.initialise},
          {"execute", all.execute.value_or(std::chrono::milliseconds(0))},
          {"event", all.event},
          {"stop", all.stop},
          {"close", all.close}};
}

}  // namespace

void RankExecutor::State::note(const std::string& what) const {
  if (options.note) return options.note(what);
  std::cerr << "trainyard: " << what << '\n' << std::flush;
}

class RankExecutor::State::NotBusy {
 public:
  explicit NotBusy(State& state) : state_(state) {}
  NotBusy(NotBusy&&) = delete;
  NotBusy& operator=(NotBusy&&) = delete;
  ~NotBusy() { state_.busy = false; }

 private:
  State& state_;
};

/// An activity that ends when its caller's token or abort() requests it.
class RankExecutor::State::Abortable {
 public:
  Abortable(State& state, const std::stop_token& stop)
      : state_(state), link_(stop, Stop{&source_}) {
    const std::scoped_lock lock(state_.mutex);
    state_.abortables.push_back(this);
  }
  Abortable(Abortable&&) = delete;
  Abortable& operator=(Abortable&&) = delete;
  ~Abortable() {
    const std::scoped_lock lock(state_.mutex);
    std::erase(state_.abortables, this);
  }

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  /// Gives the reason to who was stopped for it.
  void explain(Shareable& reply) const {
    const std::scoped_lock lock(state_.mutex);
    if (reply.code() != ReturnCode::TaskAborted || reason_.empty()) return;
    reply.set_outcome(reply.code(), reason_, reply.traceback());
  }
  /// With the executor's lock; the source is stopped without it.
  std::stop_source abort(const std::string& reason) {
    reason_ = reason;
    return source_;
  }

 private:
  struct Stop {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };
  State& state_;
  std::stop_source source_;
  std::string reason_;
  std::stop_callback<Stop> link_;
};

std::optional<std::string> RankExecutor::State::why_not_here() {
  std::int64_t first = 0;
  const std::int64_t here = sys::own_pid();
  if (owner.compare_exchange_strong(first, here) || first == here) return std::nullopt;
  return fmt::format(
      "the ranks of this RankExecutor are those of process {}, from which this one was forked: "
      "here "
      "it needs another RankExecutor",
      first);
}

bool RankExecutor::State::is_copy() const {
  const std::int64_t first = owner;
  return first != 0 && first != sys::own_pid();
}

// --- checking ---

Result<ranks::CheckedComponents> RankExecutor::State::check() const {
  std::vector<std::string> mistakes;
  if (options.ranks < 1 || options.ranks > model::kRanksMax) {
    mistakes.push_back(
        fmt::format("ranks: there can be 1 to {}, not {}", model::kRanksMax, options.ranks));
  }
  if (options.restarts < 0) {
    mistakes.push_back(fmt::format("restarts: there cannot be {}", options.restarts));
  }
  for (const auto& [name, limit] : named(options.limits)) {
    if (limit.count() < 0) {
      mistakes.push_back(fmt::format("limits.{}: {} ms is less than nothing", name, limit.count()));
    }
  }
  if (!options.launcher.arguments.empty()) {
    const ranks::RankPlan plan{.ranks = options.ranks, .port = 0, .command = {"rank"}};
    const auto line = ranks::launch_line(options.launcher, plan);
    if (!line) mistakes.push_back(line.error().message);
  }
  auto components = check_components_of_options();
  if (!components) mistakes.push_back(components.error().message);
  if (mistakes.empty()) return components;
  return std::unexpected(Error{fmt::format("{}", fmt::join(mistakes, "\n"))});
}

Result<ranks::CheckedComponents> RankExecutor::State::check_components_of_options() const {
  if (options.components_file.empty()) {
    return ranks::check_components(options.components, "components", options.executor, registry);
  }
  const auto text = text::read_text_file(options.components_file);
  if (!text) return std::unexpected(Error(text.error()).in(options.components_file));
  return ranks::check_components(*text, options.components_file, options.executor, registry);
}

Result<ranks::RankCommand> RankExecutor::State::command(const ranks::CheckedComponents& checked) {
  ranks::RankCommand rank;
  rank.line = options.program;
  if (!rank.line.empty()) return rank;
  if (checked.in_python) {
    return ranks::python_rank(checked.json, options.executor, directory, options.environment);
  }
  return rank;
}

Result<void> RankExecutor::State::make_group() {
  auto checked = check();
  if (!checked) return std::unexpected(std::move(checked.error()));
  if (directory.empty()) {
    own_directory = options.log_directory.empty();
    Result<std::string> made = options.log_directory;
    if (own_directory) {
      made = sys::make_private_directory("trainyard-ranks-");
    } else if (Result<void> there = sys::make_directories(*made); !there) {
      made = std::unexpected(std::move(there.error()));
    }
    if (!made) return std::unexpected(std::move(made.error()));
    directory = absolute_path(*made, sys::current_directory().value_or("/"));
  }
  auto run = command(*checked);
  if (!run) {
    std::error_code ignored;
    if (std::exchange(own_directory, false)) {
      std::filesystem::remove_all(std::exchange(directory, {}), ignored);
    }
    return std::unexpected(std::move(run.error()));
  }
  group = std::make_shared<ranks::RankGroup>(ranks::RankGroup::Options{
      .group = {.ranks = options.ranks,
                .own_processes = options.launcher.arguments.empty(),
                .limits = options.limits,
                .restarts = options.restarts},
      .launcher = options.launcher,
      .command = *std::move(run),
      .environment = options.environment,
      .directory = directory,
      .components = std::move(checked->json),
      .executor = options.executor,
      .arenas = arenas,
      .all_buffers = options.result != RankResult::First,
      .on_event = [this](int rank, const wire::EventWord& word) { return heard(rank, word); },
      .note = [this](const std::string& what) { note(what); },
      .alive = one_more_group()});
  return {};
}

/// With the lock.
std::shared_ptr<const void> RankExecutor::State::one_more_group() {
  ++groups;
  return {nullptr, [this](const void*) {
            const std::scoped_lock lock(mutex);
            --groups;
            over.notify_all();
          }};
}

// --- up ---

RankExecutor::State::Up RankExecutor::State::bring_up(RankContext& context,
                                                      const std::stop_token& stop) {
  // One at a time; the other one then finds it up.
  const std::scoped_lock one(launching);
  std::shared_ptr<ranks::RankGroup> to;
  {
    const std::scoped_lock lock(mutex);
    if (finalized) {
      return {.reply = Shareable::reply(
                  ReturnCode::LaunchFailed,
                  "this RankExecutor has been finalized: make another one for more tasks")};
    }
    if (group == nullptr) {
      if (Result<void> made = make_group(); !made) {
        return {.reply = Shareable::reply(ReturnCode::BadConfig, made.error().message)};
      }
      run_context = context.sibling();
    }
    to = group;
  }
  if (to->is_up()) return {.group = to};
  Up up{.reply = launch(*to, context, stop), .group = to};
  if (up.reply.code() != ReturnCode::Ok) {
    const std::scoped_lock lock(mutex);
    failed = true;
  }
  return up;
}

Shareable RankExecutor::State::launch(ranks::RankGroup& to, RankContext& context,
                                      const std::stop_token& stop) {
  has_started = false;
  const ranks::RankGroup::Launched launched = to.launch(context, stop);
  if (launched.verdict.code != ReturnCode::Ok) {
    return reply_of(launched.verdict, launched.traceback);
  }
  const ranks::RankGroup::Heard heard =
      to.fire({.name = std::string(kStartRun)}, context, std::nullopt, stop);
  take_in(context, heard.changes);
  for (const std::string& error : heard.errors) note(fmt::format("{}: {}", kStartRun, error));
  if (heard.verdict.code == ReturnCode::Ok) {
    has_started = true;
    return {};
  }
  // Ranks that have not heard it are none that can be asked.
  to.close();
  return Shareable::reply(heard.verdict.code, heard.verdict.why);
}

Shareable RankExecutor::State::reply_of(const ranks::Verdict& verdict,
                                        const std::string& traceback) const {
  Shareable reply;
  std::string more = traceback;
  if (more.empty() && verdict.code != ReturnCode::TaskAborted) {
    // Before it has connected, a rank that others start has no log of its own.
    const bool has_log =
        options.launcher.arguments.empty() || verdict.code != ReturnCode::LaunchFailed;
    const std::optional<int> rank = has_log ? verdict.rank : std::nullopt;
    more =
        ranks::end_of_log(rank ? ranks::log_of_rank(directory, *rank) : directory + "/launcher.log",
                          kFailureLogLines);
  }
  reply.set_outcome(verdict.code, verdict.why, more);
  return reply;
}

// --- executing ---

std::vector<Shareable> RankExecutor::State::execute(std::string_view task, const Shareable& input,
                                                    RankContext& context,
                                                    const std::stop_token& stop) {
  const auto all = [this](const Shareable& reply) {
    return std::vector<Shareable>(static_cast<std::size_t>(options.ranks), reply);
  };
  if (const auto why = why_not_here()) return all(Shareable::reply(ReturnCode::LaunchFailed, *why));
  if (stop.stop_requested()) {
    return all(Shareable::reply(ReturnCode::TaskAborted, "it was told to stop before it began"));
  }
  if (busy.exchange(true)) {
    return all(Shareable::reply(ReturnCode::Busy, "another task is being executed"));
  }
  const NotBusy not_busy(*this);
  const Abortable abortable(*this, stop);
  const std::uint64_t id = ++last_task;
  std::vector<Shareable> replies;
  int launches = 0;
  while (replies.empty()) {
    const Up up = bring_up(context, abortable.token());
    if (up.reply.code() != ReturnCode::Ok) {
      replies = all(up.reply);
      break;
    }
    ranks::RankGroup::Execution done =
        up.group->execute(id, task, input, context, abortable.token());
    if (done.not_begun && ++launches < kLaunchesMax) continue;
    if (done.again) {
      // The ranks that are started now write their logs anew.
      const std::string log = reply_of(done.verdict, {}).traceback();
      note(fmt::format("task '{}' is retried: {}{}{}", task, done.verdict.why,
                       log.empty() ? "" : "\n", log));
      continue;
    }
    take_in(context, done.changes);
    replies = replies_of(std::move(done));
  }
  for (Shareable& each : replies) abortable.explain(each);
  const std::scoped_lock lock(mutex);
  failed = failed || replies.front().code() != ReturnCode::Ok;
  return replies;
}

void RankExecutor::State::take_in(RankContext& context, const std::string& changes) {
  for (const std::string& refused : ContextAccess::merge(context, changes)) {
    note("of what rank 0 has changed in its context: " + refused);
  }
}

/// One for each rank. If the verdict is not Ok, the first reply has it, and so has that of each
/// rank that did not reply.
std::vector<Shareable> RankExecutor::State::replies_of(ranks::RankGroup::Execution done) {
  const bool well = done.verdict.code == ReturnCode::Ok;
  const Shareable why = well ? Shareable() : reply_of(done.verdict, done.traceback);
  std::vector<Shareable> replies;
  replies.reserve(done.replies.size());
  for (std::optional<Shareable>& reply : done.replies) {
    replies.push_back(reply ? *std::move(reply) : why);
  }
  replies.resize(static_cast<std::size_t>(options.ranks), why);
  if (!well) replies.front().set_outcome(why.code(), why.message(), why.traceback());
  return replies;
}

// --- down ---

void RankExecutor::State::finalize() {
  if (is_copy()) return;
  std::shared_ptr<ranks::RankGroup> ending;
  {
    const std::scoped_lock lock(mutex);
    finalized = true;
    ending = group;
  }
  if (ending == nullptr) return;
  if (ending->is_up() && !busy) {
    RankContext context = run_context.sibling();
    const EventOutcome heard = fire(kEndRun, Json(), context);
    for (const std::string& error : heard.errors) note(fmt::format("{}: {}", kEndRun, error));
    if (heard.code != ReturnCode::Ok) note(fmt::format("{}: {}", kEndRun, heard.message));
  }
  ending->close();
  {
    const std::scoped_lock lock(mutex);
    if (group != ending) return;  // Another one has done so.
    group.reset();
  }
  ending.reset();
  std::unique_lock lock(mutex);
  if (!std::exchange(own_directory, false)) return;
  const std::string printed = std::exchange(directory, {});
  const bool kept = failed;
  // The receiver of the note may call this object.
  lock.unlock();
  if (kept) return note(fmt::format("what the ranks have printed is in {}", printed));
  std::error_code ignored;
  std::filesystem::remove_all(printed, ignored);
}

void RankExecutor::State::wait_for_the_rest() {
  std::unique_lock lock(mutex);
  over.wait(lock, [this] { return handling == 0 && groups == 0; });
}

// --- what is public ---

RankExecutor::RankExecutor(RankExecutorOptions options, ComponentRegistry registry)
    : state_(std::make_unique<State>(std::move(options), std::move(registry))) {}

RankExecutor::~RankExecutor() {
  if (state_->is_copy()) {
    // Its members would wait for threads that this process does not have.
    static_cast<void>(state_.release());
    return;
  }
  state_->finalize();
  state_->wait_for_the_rest();
}

Result<void> RankExecutor::validate() const {
  auto checked = state_->check();
  if (!checked) return std::unexpected(std::move(checked.error()));
  return {};
}

Shareable RankExecutor::start(RankContext& context, const std::stop_token& stop) {
  if (const auto why = state_->why_not_here()) {
    return Shareable::reply(ReturnCode::LaunchFailed, *why);
  }
  const State::Abortable abortable(*state_, stop);
  Shareable reply = state_->bring_up(context, abortable.token()).reply;
  abortable.explain(reply);
  return reply;
}

std::vector<Shareable> RankExecutor::execute_all(std::string_view task, const Shareable& input,
                                                 RankContext& context,
                                                 const std::stop_token& stop) {
  return state_->execute(task, input, context, stop);
}

Shareable RankExecutor::execute(std::string_view task, const Shareable& input, RankContext& context,
                                std::stop_token stop) {
  std::vector<Shareable> replies = state_->execute(task, input, context, stop);
  const RankResult how = state_->options.result;
  const bool reduces = how == RankResult::Sum || how == RankResult::Mean;
  if (!reduces || replies.front().code() != ReturnCode::Ok) return std::move(replies.front());
  auto reduced = ranks::reduce(
      replies, how == RankResult::Sum ? ranks::Reduction::Sum : ranks::Reduction::Mean,
      [this](DType type, Dimensions shape) -> Result<Buffer> {
        auto placed = alloc(type, shape);
        if (!placed) return Buffer(type, std::move(shape));
        return placed;
      });
  if (!reduced) {
    return Shareable::reply(ReturnCode::ExecutionResultError, reduced.error().message);
  }
  return *std::move(reduced);
}

EventOutcome RankExecutor::fire(std::string_view event, const Json& data, RankContext& context) {
  return state_->fire_from_outside(event, data, context);
}

void RankExecutor::handle_event(const RankEvent& event, RankContext& context) {
  if (event.name == kStartRun) {
    const Shareable started = start(context);
    if (started.code() != ReturnCode::Ok) throw std::runtime_error(started.message());
  } else if (event.name == kEndRun) {
    finalize();
  } else {
    const EventOutcome heard = fire(event.name, event.data, context);
    if (heard.code != ReturnCode::Ok) {
      state_->note(fmt::format("event '{}': {}", event.name, heard.message));
    }
    for (const std::string& error : heard.errors) {
      state_->note(fmt::format("event '{}': {}", event.name, error));
    }
  }
}

void RankExecutor::on_event(Handler handler) { state_->handlers.push_back(std::move(handler)); }

Result<Buffer> RankExecutor::alloc(DType type, Dimensions shape) {
  if (auto why = state_->why_not_here()) return std::unexpected(Error{*std::move(why)});
  return state_->arenas->alloc(type, std::move(shape));
}

void RankExecutor::abort(const std::string& reason) {
  if (state_->is_copy()) return;
  std::vector<std::stop_source> sources;
  {
    const std::scoped_lock lock(state_->mutex);
    for (State::Abortable* const each : state_->abortables) sources.push_back(each->abort(reason));
  }
  for (std::stop_source& each : sources) each.request_stop();
}

void RankExecutor::finalize() { state_->finalize(); }

std::string RankExecutor::log_directory() const {
  if (state_->is_copy()) return {};
  const std::scoped_lock lock(state_->mutex);
  return state_->directory;
}

}  // namespace trainyard
