// A notice about a run for a webhook: a title, a text, and the JSON that has both and fields for
// programs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"

namespace trainyard::tell {

/// How many bytes of a reason or of a failure's message are told.
constexpr std::size_t kMessageMax = 1000;

/// The run, as people call it.
struct RunName {
  std::string job;
  std::optional<std::uint32_t> number;
  std::string directory;  ///< Absolute.
  std::string host;
};

/// Its tasks now.
struct Counts {
  int tasks = 0;  ///< Without those that it began without.
  int finished = 0;
  int failed = 0;
  int skipped = 0;
  int stopped = 0;
  int running = 0;

  [[nodiscard]] int waiting() const {
    return tasks - finished - failed - skipped - stopped - running;
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// The first task of this execution that has failed.
struct FirstFailure {
  std::string task;     ///< "train/lr=1"
  std::string how;      ///< "EXIT 3"
  std::string end;      ///< "exit": model::TaskEnd::id.
  std::string message;  ///< For people; may be empty.

  friend bool operator==(const FirstFailure&, const FirstFailure&) = default;
};

/// No task has a process, and some wait.
struct NothingRuns {
  Duration since{0};
  std::string cause;   ///< "memory": why one of them waits; empty if that is unknown.
  std::string reason;  ///< The same for people.

  friend bool operator==(const NothingRuns&, const NothingRuns&) = default;
};

/// How an execution of a run has ended, and the word for it in JSON and variables.
enum class Outcome : std::uint8_t {
  Finished,     ///< "finished": all tasks have finished.
  Failed,       ///< "failed": some failed or were skipped.
  Interrupted,  ///< "interrupted"
  NotDone,      ///< "not-done": something other than a task is to blame.
  Died,         ///< "died": nobody wrote down an end.
};
std::string_view word_of(Outcome outcome);

struct Ended {
  Outcome outcome = Outcome::Finished;
  std::optional<int> exit_code;  ///< Of `trainyard run`; nothing of one that died.

  friend bool operator==(const Ended&, const Ended&) = default;
};

/// A submission that was refused when it began, or skipped: it never became a run.
struct NotStarted {
  std::string reason;

  friend bool operator==(const NotStarted&, const NotStarted&) = default;
};

using Occasion = std::variant<FirstFailure, NothingRuns, Ended, NotStarted>;

struct Notice {
  RunName run;
  Occasion occasion;
  std::optional<Counts> counts;  ///< Nothing where nobody knows.
};

/// "digits (run 46): train/lr=1 failed".
std::string title_of(const Notice& notice);
/// One or a few lines for people, which call nobody by name in a chat.
std::string text_of(const Notice& notice);
/// {"text": ..., "title": ..., "event": "first-failure", ...}: docs/telling.md has its fields.
std::string json_of(const Notice& notice);

}  // namespace trainyard::tell
