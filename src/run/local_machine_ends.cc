// The part of the local machine that hears how attempts have ended, and what has become of whoever
// watches them.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/keeper.h"
#include "process/left_behind.h"
#include "process/memory_group.h"
#include "run/local_machine.h"
#include "wire/last_words.h"
#include "wire/memory_text.h"
#include "wire/result_text.h"

namespace trainyard::run {
namespace {

/// What the task left for us, if anything. A bad result is a warning, not a failure.
void read_result(const process::LeftBehind& left, model::AttemptEnded& ended) {
  ended.warning = left.trouble;
  if (!left.result) return;
  wire::ParsedResult parsed = wire::parse_result(*left.result);
  ended.result = std::move(parsed.object);
  ended.warning = std::move(parsed.warning);
}

/// What ended badly may have said that it ran out of memory, or that what it shares its GPU through
/// is gone.
void read_errors(const std::string& errors, bool on_gpus, model::AttemptEnded& ended) {
  ended.last_words = wire::last_words(errors);
  const std::optional<std::string> line = wire::out_of_memory_line(errors);
  const auto* const killed = std::get_if<model::KilledBy>(&ended.end);
  if (line) {
    ended.out_of_memory = *line;
    ended.of_gpu = wire::is_of_gpu(*line);
  } else if (killed != nullptr && killed->signal == SIGBUS) {
    ended.out_of_memory = "killed by signal 7 (SIGBUS), as by a full /dev/shm";
  } else if (on_gpus && wire::is_of_mps(errors)) {
    ended.end = model::Vanished{"the MPS service that it shared its GPU through has gone: " +
                                ended.last_words};
  }
}

}  // namespace

void LocalMachine::hear_end(const process::ProcessEnded& news) {
  const auto found = running_.find(news.key.task);
  if (found == running_.end() || found->second.key != news.key) return;
  model::AttemptEnded ended{.key = news.key, .end = news.end, .usage = news.usage};
  if (news.at) ended.ended = Instant{clock_offset_ + *news.at};
  if (!std::holds_alternative<model::NotStarted>(news.end)) {
    read_result(news.left, ended);
    if (news.end != model::End(model::ExitedWith{0})) {
      const bool on_gpus = found->second.on_gpus && options_.gpus != nullptr;
      read_errors(news.left.errors, on_gpus, ended);
    }
  }
  ended.ranks = news.ranks;
  add_peak(found->second, news, ended.usage);
  conclude(std::move(running_.extract(found).mapped()), std::move(ended));
}

/// Tells of the end of an attempt that has just been taken out, with what was seen of it here.
void LocalMachine::conclude(Attempt attempt, model::AttemptEnded ended) {
  const bool on_gpus = attempt.on_gpus && options_.gpus != nullptr;
  if (on_gpus) look_at_gpus_soon();
  owners_.ended(ended.key.task);
  ended.usage.cpu_time = std::max(ended.usage.cpu_time, attempt.cpu_time);
  if (const auto& peaks = attempt.rank_peaks; peaks.size() > 1) {
    const auto largest = std::ranges::max_element(peaks);
    ended.ranks.largest = static_cast<int>(largest - peaks.begin());
    ended.ranks.largest_memory = *largest;
  }
  fresh_.remove(ended.key.task);
  if (tasks_) tasks_->forget(ended.key);
  tell_progress(attempt);
  const bool ended_well = ended.end == model::End(model::ExitedWith{0});
  if (on_gpus && !ended_well && !attempt.lost) return hold(std::move(ended));
  tell(std::move(ended));
}

/// What it had started is being ended, and is told of when that is done. What is started from now
/// on waits for the next one.
void LocalMachine::lose_keeper() {
  keeper_silent_ = true;
  for (auto& [task, attempt] : running_) attempt.lost = true;
  tell(model::KeeperSilent{.silent = true});
}

void LocalMachine::take_another(const process::KeeperReplaced& keeper) {
  std::vector<Attempt> lost;
  std::erase_if(running_, [&lost](auto& it) {
    if (!it.second.lost) return false;
    lost.push_back(std::move(it.second));
    return true;
  });
  const std::size_t count = lost.size();
  for (Attempt& attempt : lost) {
    if (!attempt.memory_group.empty()) process::remove_group(attempt.memory_group);
    const model::AttemptKey key = attempt.key;
    model::AttemptEnded ended{.key = key, .end = model::Vanished{keeper.why}, .usage = {}};
    // Nobody saw its end: what the samples saw is all that is known of it.
    add_peak(attempt, {.key = key}, ended.usage);
    conclude(std::move(attempt), std::move(ended));
  }
  keeper_silent_ = false;
  tell(model::KeeperSilent{.silent = false, .another = keeper.pid});
  if (!options_.on_note) return;
  options_.on_note(fmt::format(
      "{}: process {} takes its place{}", keeper.why, keeper.pid,
      count == 0 ? std::string()
                 : fmt::format("; {} {} lost with it, and tried again", count,
                               count == 1 ? "task that ran is" : "tasks that ran are")));
}

void LocalMachine::hear_silence(bool silent) {
  keeper_silent_ = silent;
  inbox_.push_back({.at = now(), .what = model::KeeperSilent{.silent = silent}});
  if (!options_.on_note) return;
  options_.on_note(
      silent ? fmt::format("the keeper of the task processes (process {}) has not answered for {} "
                           "s: nothing new is started until it does",
                           keeper_.pid(), keeper_.silence_max().count() / 1000)
             : std::string("the keeper of the task processes answers again"));
}

void LocalMachine::lose_everything(const std::string& why) {
  keeper_gone_ = true;
  release_held();
  // First of all, so that nothing more is started in the place of what was lost: the rest is left
  // for a resumed run.
  inbox_.push_back({.at = now(), .what = model::InterruptAsked{.why = why}});
  // When it was ended so that they end, nobody wonders what became of them.
  const model::End end = keeper_killed_ ? model::End(model::KilledBy{.signal = SIGKILL})
                                        : model::End(model::Vanished{why});
  for (const auto& [task, attempt] : running_) {
    inbox_.push_back({.at = now(), .what = model::AttemptEnded{.key = attempt.key, .end = end}});
  }
  running_.clear();
}

}  // namespace trainyard::run
