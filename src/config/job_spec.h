// A job file as it was read and before it is multiplied: groups with their matrix, and tasks whose
// texts still have placeholders. Small and immutable: this, and not its product, is what a job
// keeps.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/matrix.h"
#include "config/placeholder.h"
#include "config/yaml_reader.h"
#include "model/plan.h"

namespace trainyard {

/// Slots of the placeholders that every task has: the indices of kOwnPlaceholders.
constexpr std::size_t kTaskDirSlot = 0;
constexpr std::size_t kRunDirSlot = 1;
constexpr std::size_t kTaskIdSlot = 2;
constexpr std::size_t kGroupSlot = 3;
constexpr std::size_t kMatrixSlots = 4;  ///< Where those of the matrix start.

struct Text {
  Template text;
  Place place;
};

/// What both a group and a task may say; the task's word counts.
struct Wants {
  std::optional<Text> memory;
  std::optional<Text> gpu_memory;
  std::optional<Text> gpus;
  std::optional<Text> device;
  std::optional<Text> cpus;
  std::optional<Text> duration;
  std::optional<Text> time_limit;
  std::optional<Text> working_directory;
  std::optional<Text> ranks;            ///< How many processes the command is; nothing: it is one.
  std::optional<std::string> launcher;  ///< As parse_launcher() reads it.
  std::optional<bool> two_phase;
  std::optional<bool> memory_hard;  ///< memory-limit: hard
  std::optional<bool> preempt;
  std::optional<EarlySignal> early_signal;
  std::vector<std::pair<std::string, Text>> environment;
};

struct TaskSpec {
  Place place;
  std::optional<Text> id;
  bool in_shell = false;            ///< The command is one text for sh -c.
  std::vector<Template> arguments;  ///< One text for sh -c, or the program and its arguments.
  Place command_place;
  Wants wants;
};

struct GroupSpec {
  Place place;
  std::string name;
  Place name_place;  ///< Of the group, where it has no name.
  Matrix matrix;
  bool has_matrix = false;
  bool matrix_broken = false;  ///< It had a mistake: the group cannot be multiplied.
  Wants wants;
  std::vector<TaskSpec> tasks;
  std::optional<std::vector<std::pair<std::string, Place>>> needs;  ///< Nothing: the one before.
  int parallel_max = 0;
  bool fail_fast = false;
  std::vector<std::string> preload;  ///< Modules that its tasks, all in Python, find imported.
};

struct JobSpec {
  std::string name;           ///< Empty: not said.
  std::string run_directory;  ///< As written; empty: not said.
  std::vector<GroupSpec> groups;
};

}  // namespace trainyard
