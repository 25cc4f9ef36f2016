#include "report/task_state.h"

#include <algorithm>
#include <array>
#include <expected>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "base/utf8.h"

namespace trainyard::report {
namespace {

struct Word {
  std::string_view text;
  TaskState state;
};

constexpr std::array<Word, 22> kWords{{{.text = "waiting", .state = TaskState::Waiting},
                                       {.text = "on-hold", .state = TaskState::OnHold},
                                       {.text = "held", .state = TaskState::OnHold},
                                       {.text = "running", .state = TaskState::Running},
                                       {.text = "retrying", .state = TaskState::Retrying},
                                       {.text = "finished", .state = TaskState::Finished},
                                       {.text = "failed", .state = TaskState::Failed},
                                       {.text = "oom", .state = TaskState::OutOfMemory},
                                       {.text = "out-of-memory", .state = TaskState::OutOfMemory},
                                       {.text = "timeout", .state = TaskState::Timeout},
                                       {.text = "killed", .state = TaskState::Killed},
                                       {.text = "crashed", .state = TaskState::Crashed},
                                       {.text = "exit", .state = TaskState::Exit},
                                       {.text = "cannot-start", .state = TaskState::CannotStart},
                                       {.text = "lost", .state = TaskState::Lost},
                                       {.text = "error", .state = TaskState::Error},
                                       {.text = "skipped", .state = TaskState::Skipped},
                                       {.text = "stopped", .state = TaskState::Stopped},
                                       {.text = "not-selected", .state = TaskState::NotSelected},
                                       {.text = "not-needed", .state = TaskState::NotNeeded},
                                       {.text = "ended", .state = TaskState::Ended},
                                       {.text = "unfinished", .state = TaskState::Unfinished}}};

/// A task that ran when its run died is lost, although no failure of it was recorded.
bool has_failed(const model::Standing& standing) {
  return standing.verdict == model::Verdict::Failed ||
         (standing.verdict == model::Verdict::None && standing.failure == model::Failure::Lost);
}

/// Whether the task has ended, and the id of its end is a word of the state.
bool is_end(model::Standing standing, TaskState state) {
  if (has_failed(standing)) standing.verdict = model::Verdict::Failed;
  const model::TaskEnd* const end = model::end_of(standing);
  return end != nullptr && std::ranges::any_of(kWords, [&](const Word& it) {
           return it.state == state && it.text == end->id;
         });
}

}  // namespace

Result<TaskState> read_task_state(std::string_view word, std::string_view before) {
  std::string plain = in_small_letters(word);
  std::ranges::replace(plain, '_', '-');
  const auto found = std::ranges::find(kWords, std::string_view(plain), &Word::text);
  if (found != kWords.end()) return found->state;
  std::vector<std::string_view> words;
  words.reserve(kWords.size());
  std::ranges::transform(kWords, std::back_inserter(words), &Word::text);
  if (const std::optional<std::string_view> near = nearest(plain, words)) {
    return std::unexpected(
        Error{fmt::format("unknown state '{0}{1}' (did you mean '{0}{2}'?)", before, word, *near)});
  }
  return std::unexpected(Error{fmt::format("unknown state '{0}{1}'; use {0}{2}", before, word,
                                           fmt::join(words, fmt::format(", {}", before)))});
}

std::string_view task_state_word(TaskState state) {
  const auto found = std::ranges::find(kWords, state, &Word::state);
  return found == kWords.end() ? std::string_view("unknown") : found->text;
}

bool is_in(const model::Standing& standing, TaskState state) {
  const auto reads = [&standing](std::string_view word) {
    return model::word_for(standing) == word;
  };
  switch (state) {
    case TaskState::Waiting:
      return reads("WAITING");
    case TaskState::OnHold:
      return reads("ON_HOLD");
    case TaskState::Running:
      return reads("RUNNING");
    case TaskState::Retrying:
      return reads("RETRYING");
    case TaskState::Failed:
      return has_failed(standing);
    case TaskState::Ended:
      return standing.verdict != model::Verdict::None;
    case TaskState::Unfinished:
      return standing.verdict != model::Verdict::Finished;
    default:
      return is_end(standing, state);
  }
}

}  // namespace trainyard::report
