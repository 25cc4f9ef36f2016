// The part of the local machine that receives the ends of attempts, and the ends of the processes
// that watch them.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "hardware/mps.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/end_notes.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "process/keeper.h"
#include "process/memory_group.h"
#include "run/attempt_end.h"
#include "run/local_machine.h"
#include "run/noted_ends.h"

namespace trainyard::run {
namespace {

/// Whether a note says how the attempt ended by itself. A keeper that has lost its guard tells
/// everything to end: such an end says nothing, except of a task that left its result.
bool is_own_end(const process::EndNote& note) {
  if (!note.ended.told_to_end) return true;
  return note.ended.end == model::End(model::ExitedWith{0}) && note.ended.left.result &&
         !note.attempt.two_phase;
}

}  // namespace

void LocalMachine::hear_end(const process::ProcessEnded& news) {
  hear_last_words(news.key);
  const auto found = running_.find(news.key.task);
  if (found == running_.end() || found->second.key != news.key) return;
  const std::optional<hardware::MpsService>& mps = found->second.mps;
  const EndedWhere where{.clock_offset = clock_offset_,
                         .lived_at = found->second.lived_at,
                         .on_gpus = found->second.on_gpus && options_.gpus != nullptr,
                         .mps_gone = mps && hardware::is_gone(*mps)};
  model::AttemptEnded ended = attempt_ended_from(news, where);
  add_peak(found->second, news, ended.usage);
  conclude(std::move(running_.extract(found).mapped()), std::move(ended));
}

/// Takes the ends that a dead keeper noted and could not report, before the rest counts as lost.
void LocalMachine::hear_noted_ends() {
  std::map<std::uint32_t, model::AttemptKey> by_number;
  for (const auto& [task, attempt] : running_) {
    if (attempt.journal_number) by_number.emplace(*attempt.journal_number, attempt.key);
  }
  if (by_number.empty() || options_.notes.path.empty()) return;
  for (process::EndNote& note : notes_of(options_.notes)) {
    const auto found = by_number.find(note.attempt.journal_number);
    const bool runs = found != by_number.end() && found->second.attempt == note.ended.key.attempt;
    if (!runs || !is_own_end(note)) continue;
    running_.at(found->second.task).lost = false;
    note.ended.key = found->second;
    hear_end(note.ended);
    by_number.erase(found);
  }
}

/// Takes the ends of attempts that had exited and that a dead keeper could not report. They exited
/// no later than `at`, a time of sys::EventLoop::now(), if that is known.
void LocalMachine::hear_exits(const std::vector<process::UnreportedExit>& exits,
                              std::optional<Duration> at) {
  for (const process::UnreportedExit& it : exits) {
    const auto found = running_.find(it.key.task);
    if (found == running_.end() || found->second.key != it.key) continue;
    Attempt& attempt = found->second;
    attempt.lost = false;
    attempt.lived_at.reset();  // A sample of the same millisecond would move the exit behind `at`.
    model::End end = std::visit([](const auto& exit) { return model::End(exit); }, it.exit);
    if (end == model::End(model::ExitedWith{0})) attempt.files.errors_path.clear();
    hear_end({.key = it.key,
              .end = std::move(end),
              .usage = {},
              .left = process::EndReader::read(attempt.files).left,
              .at = at,
              .told_to_end = it.was_signalled});
  }
}

/// Reads the messages of the task that are still unread, while the attempt is known here.
void LocalMachine::hear_last_words(model::AttemptKey key) {
  if (tasks_) tasks_->forget(key);
}

/// Tells of the end of an attempt that has just been taken out, with what was seen of it here.
void LocalMachine::conclude(Attempt attempt, model::AttemptEnded ended) {
  const bool on_gpus = attempt.on_gpus && options_.gpus != nullptr;
  if (on_gpus) look_at_gpus_soon();
  owners_.ended(ended.key.task);
  ended.usage.cpu_time = std::max(ended.usage.cpu_time, attempt.cpu_time);
  if (const auto& peaks = attempt.rank_peaks; peaks.size() > 1) {
    // A rank that exited before any sample has the kernel's figure, which counts shared memory in
    // full.
    const std::optional<int> by_kernel = ended.ranks.largest;
    const bool unsampled = by_kernel && peaks.at(static_cast<std::size_t>(*by_kernel)) == Bytes{};
    const auto largest = std::ranges::max_element(peaks);
    if (!unsampled || *largest > ended.ranks.largest_memory) {
      ended.ranks.largest = static_cast<int>(largest - peaks.begin());
      ended.ranks.largest_memory = *largest;
    }
  }
  fresh_.remove(ended.key.task);
  attempt.printed.finish();
  // Checks the logs once more, for the output since the last check.
  log_bounds_.look(attempt.logs, options_.on_note);
  tell_progress(attempt);
  // The last metrics of the task are its result if it left no other, or one that was discarded. A
  // pattern says that what it finds is to be among the results, also next to those that the program
  // knows of.
  if (ended.result.empty()) {
    ended.result = attempt.printed.last().values_with(attempt.values);
  } else if (attempt.printed.has_pattern()) {
    ended.result = attempt.printed.last().added_to(ended.result);
  }
  if (ended.warning.empty()) ended.warning = attempt.printed.last().warning_of(ended.result);
  const bool ended_well = ended.end == model::End(model::ExitedWith{0});
  if (const std::string lost = attempt.printed.warning(ended_well); !lost.empty()) {
    ended.warning += (ended.warning.empty() ? "" : "; ") + lost;
  }
  if (on_gpus && !ended_well && !attempt.lost) return hold(std::move(ended));
  tell(std::move(ended));
}

/// The processes of the dead keeper are being killed, and their end is reported when that is done.
/// New attempts wait for the next keeper.
void LocalMachine::lose_keeper() {
  keeper_silent_ = true;
  for (auto& [task, attempt] : running_) attempt.lost = true;
  tell(model::KeeperSilent{.silent = true});
}

void LocalMachine::take_another(const process::KeeperReplaced& keeper) {
  hear_noted_ends();
  hear_exits(keeper.exits, std::nullopt);
  std::vector<model::AttemptKey> keys;
  for (const auto& [task, attempt] : running_) {
    if (attempt.lost) keys.push_back(attempt.key);
  }
  for (const model::AttemptKey key : keys) hear_last_words(key);
  std::vector<Attempt> lost;
  for (auto it = running_.begin(); it != running_.end();) {
    const auto each = it++;
    if (each->second.lost) lost.push_back(std::move(running_.extract(each).mapped()));
  }
  const std::size_t count = lost.size();
  for (Attempt& attempt : lost) {
    if (!attempt.memory_group.empty()) process::remove_group(attempt.memory_group);
    const model::AttemptKey key = attempt.key;
    model::AttemptEnded ended{.key = key, .end = model::Vanished{keeper.why}, .usage = {}};
    // Nobody saw its end: the samples are all that is known of it.
    add_peak(attempt, {.key = key}, ended.usage);
    conclude(std::move(attempt), std::move(ended));
  }
  keeper_silent_ = false;
  tell(model::KeeperSilent{.silent = false, .another = keeper.pid});
  if (!options_.on_note) return;
  options_.on_note(fmt::format(
      "{}: process {} replaces it{}", keeper.why, keeper.pid,
      count == 0 ? std::string()
                 : fmt::format("; {} {} lost with it and retried", count,
                               count == 1 ? "running task was" : "running tasks were")));
}

void LocalMachine::hear_silence(bool silent) {
  keeper_silent_ = silent;
  inbox_.push_back({.at = now(), .what = model::KeeperSilent{.silent = silent}});
  if (!options_.on_note) return;
  options_.on_note(silent ? fmt::format("the keeper (process {}, which starts the tasks) has not "
                                        "responded for {}: no tasks start until it does",
                                        keeper_.pid(), to_text(keeper_.silence_max()))
                          : std::string("the keeper responds again"));
}

void LocalMachine::lose_everything(const process::KeeperGone& gone) {
  const std::string& why = gone.why;
  keeper_gone_ = true;
  release_held();
  // The exits came before the interrupt, and are not its result.
  const Duration exited_at = sys::EventLoop::now() - Duration{1};
  // First of all, so that nothing more is started in the place of what was lost: the rest is left
  // for a resumed run.
  inbox_.push_back({.at = now(), .what = model::InterruptAsked{.why = why}});
  hear_noted_ends();
  hear_exits(gone.exits, exited_at);
  // If we killed the keeper, so that its attempts end, their end is known.
  const model::End end = keeper_killed_ ? model::End(model::KilledBy{.signal = SIGKILL})
                                        : model::End(model::Vanished{why});
  for (const auto& [task, attempt] : running_) {
    inbox_.push_back({.at = now(), .what = model::AttemptEnded{.key = attempt.key, .end = end}});
  }
  running_.clear();
}

}  // namespace trainyard::run
