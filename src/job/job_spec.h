// A job file as it was read and before it is multiplied: groups with their matrix, and tasks whose
// texts still have placeholders. Small and immutable: this, and not its product, is what a job
// keeps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/job_files.h"
#include "job/keep.h"
#include "job/matrix.h"
#include "job/task_keys.h"
#include "text/condition.h"
#include "text/placeholder.h"
#include "text/plain_values.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Slots of the placeholders that every task has: the indices of kOwnPlaceholders.
constexpr std::size_t kTaskDirSlot = 0;
constexpr std::size_t kRunDirSlot = 1;
constexpr std::size_t kTaskIdSlot = 2;
constexpr std::size_t kGroupSlot = 3;
/// The first slot of the matrix; after the matrix come the slot of the round, then needs_values.
constexpr std::size_t kMatrixSlots = 4;

struct Text {
  text::Template text;
  text::Place place;
};

/// Keys that both a group and a task may have; the task's value counts.
struct Wants {
  std::vector<std::pair<TaskKey, Text>> said;  ///< Few of the keys, each once; `env` is below.
  std::vector<std::pair<std::string, Text>> environment;

  /// Nothing where the key is not said.
  [[nodiscard]] const Text* find(TaskKey key) const {
    const auto found = std::ranges::find(said, key, &std::pair<TaskKey, Text>::first);
    return found == said.end() ? nullptr : &found->second;
  }
};

struct TaskSpec {
  text::Place place;
  std::optional<Text> id;
  bool in_shell = false;  ///< The command is one text for a shell.
  bool in_sh = false;     ///< That shell is /bin/sh, not bash.
  /// One text for the shell, or the program and its arguments.
  std::vector<text::Template> arguments;
  /// A place of the command in which bash evaluates what variables say.
  std::optional<text::EvaluatingPlace> evaluates = std::nullopt;
  text::Place command_place;
  Wants wants;
};

/// A need of a group, as configured.
struct Need {
  std::string group;
  text::Place place;
  /// The keys of the matrix by which its tasks are matched with those of that group: each needs the
  /// tasks of its own cell. Nothing: all of the group is needed.
  std::optional<std::vector<std::string>> match;
};

/// The value of a placeholder about a needed task, or about a task in the round before: see
/// job/needs_values.h.
struct NeedsValue {
  enum class Kind : std::uint8_t {
    Directory,    ///< The directory of the one task that is meant.
    Directories,  ///< The directories of all tasks that are meant.
    Result,       ///< The one task's result under `key`.
  };
  Kind kind = Kind::Directory;
  std::string group;
  std::string key;
  bool of_round_before = false;

  friend bool operator==(const NeedsValue&, const NeedsValue&) = default;
};

struct GroupSpec {
  text::Place place;
  std::string name;
  text::Place name_place;  ///< The place of the group if it has no name.
  Matrix matrix;
  bool has_matrix = false;
  std::optional<std::uint32_t> round;  ///< The number of the round; nothing: it is in no repeat.
  std::vector<std::string> matrix_warnings;
  bool matrix_broken = false;  ///< It had a mistake: the group cannot be multiplied.
  Wants wants;
  std::vector<TaskSpec> tasks;
  std::optional<std::vector<Need>> needs;  ///< Nothing: the one before.
  std::vector<NeedsValue> needs_values;    ///< By slot, behind those of the matrix and the round.
  int parallel_max = 0;
  bool fail_fast = false;
  std::optional<bool> try_first;     ///< Nothing: as the job says.
  std::optional<Keep> keep;          ///< Nothing: all that its tasks leave stays.
  std::vector<std::string> preload;  ///< Modules that its tasks, all in Python, find imported.
};

/// The recipients of news about the run.
struct TellingSpec {
  std::vector<std::string> notify;  ///< Addresses, and variables that hold one: "$SLACK_WEBHOOK".
  std::string on_finish;            ///< For the shell; empty: nothing.
};

/// The condition that ends a repeat before its last round: it compares a result of the one task of
/// a group.
struct Until {
  std::string text;  ///< As configured: "server.result.acc >= 0.97".
  text::Place place;
  std::string group;
  std::string key;
  text::Condition::Is is = text::Condition::Is::Equal;
  double value = 0;
};

/// The substitute for the round before in round 0.
struct InitialSpec {
  text::Place place;
  NeedsValue of;      ///< A value of a group of the repeat; Directory is all of it with `group`.
  std::string text;   ///< The text for the value, as configured.
  std::string group;  ///< A group before the repeat that stands for one of the repeat; empty:
                      ///< `text` does.
};

/// Groups that run round after round, each round a batch of the run.
struct RepeatSpec {
  text::Place place;
  std::uint32_t rounds_max = 1;
  std::optional<Until> until;
  std::vector<InitialSpec> initial;
};

struct JobSpec {
  std::string name;           ///< Empty: not said.
  std::string run_directory;  ///< As configured; empty: not set.
  bool try_first = false;     ///< For groups that do not set it.
  TellingSpec telling;
  /// All of the file, with round 0 of the repeat; for a later round only its groups.
  std::vector<GroupSpec> groups;
  std::vector<GroupSpec> before;  ///< For a later round: the groups that are not repeated.
  std::optional<RepeatSpec> repeat;
  JobFiles files;  ///< The files that it names, with their contents as they were read.
};

}  // namespace trainyard::job
