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

#include "job/matrix.h"
#include "job/task_keys.h"
#include "text/placeholder.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Slots of the placeholders that every task has: the indices of kOwnPlaceholders.
constexpr std::size_t kTaskDirSlot = 0;
constexpr std::size_t kRunDirSlot = 1;
constexpr std::size_t kTaskIdSlot = 2;
constexpr std::size_t kGroupSlot = 3;
constexpr std::size_t kMatrixSlots = 4;  ///< Where those of the matrix start; see needs_values.

struct Text {
  text::Template text;
  text::Place place;
};

/// What both a group and a task may say; the task's word counts.
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
  bool in_shell = false;                  ///< The command is one text for sh -c.
  std::vector<text::Template> arguments;  ///< One text for sh -c, or the program and its arguments.
  text::Place command_place;
  Wants wants;
};

/// What a group needs, as it is written.
struct Need {
  std::string group;
  text::Place place;
  /// By which keys of the matrix its tasks are matched with those of that group, each of which
  /// needs those of its own cell; nothing: all of the group is needed.
  std::optional<std::vector<std::string>> match;
};

/// What a placeholder stands for that is of a needed task: see job/needs_values.h.
struct NeedsValue {
  enum class Kind : std::uint8_t {
    Directory,    ///< Of the one task that is needed.
    Directories,  ///< Of all that are.
    Result,       ///< What the one task left under `key`.
  };
  Kind kind = Kind::Directory;
  std::string group;
  std::string key;

  friend bool operator==(const NeedsValue&, const NeedsValue&) = default;
};

struct GroupSpec {
  text::Place place;
  std::string name;
  text::Place name_place;  ///< Of the group, where it has no name.
  Matrix matrix;
  bool has_matrix = false;
  bool matrix_broken = false;  ///< It had a mistake: the group cannot be multiplied.
  Wants wants;
  std::vector<TaskSpec> tasks;
  std::optional<std::vector<Need>> needs;  ///< Nothing: the one before.
  std::vector<NeedsValue> needs_values;    ///< By slot, behind those of the matrix.
  int parallel_max = 0;
  bool fail_fast = false;
  std::optional<bool> try_first;     ///< Nothing: as the job says.
  std::vector<std::string> preload;  ///< Modules that its tasks, all in Python, find imported.
};

/// Who is told how the run goes.
struct TellingSpec {
  std::vector<std::string> notify;  ///< Addresses, and variables that hold one: "$SLACK_WEBHOOK".
  std::string on_finish;            ///< For the shell; empty: nothing.
};

struct JobSpec {
  std::string name;           ///< Empty: not said.
  std::string run_directory;  ///< As written; empty: not said.
  bool try_first = false;     ///< Of groups that do not say it.
  TellingSpec telling;
  std::vector<GroupSpec> groups;
};

}  // namespace trainyard::job
