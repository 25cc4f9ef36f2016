// A job file made from a command on the command line, `run -- python3 train.py`, and from the words
// before the two dashes: keys of its task, a matrix, or a file with a command a line.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_request.h"
#include "base/result.h"
#include "job/task_keys.h"

namespace trainyard::cli {

struct CommandWords {
  std::vector<std::string> command;  ///< Behind `--`; one word is for the shell.
  std::string each_line;  ///< A file with a command a line, "-": standard input; or empty.
  std::string name;       ///< Empty: the program's.
  std::vector<std::string> matrix;  ///< "lr=1e-3,3e-4"
  /// Values of keys, by TaskKey; none: the key was not typed.
  std::array<std::vector<std::string>, job::kTaskKeys> keys;
  bool submits = false;  ///< Words of `submit`, which has no --dry-run.

  /// Whether there is a command and no job file.
  [[nodiscard]] bool is_command() const { return !command.empty() || !each_line.empty(); }
  /// The parts of the command that checks of the other words need.
  [[nodiscard]] app::TypedCommand typed() const;
  /// "'--dry-run' after '--' belongs to the command; write it before '--'" for options of `run` that
  /// other programs seldom have, and "'{lr}' stays as typed: there is no '--matrix lr=...'" for the
  /// first placeholder in the value of an option, as in "--lr {lr}" and "--lr={lr}", and a --matrix
  /// with a value that looks like another key: "lr=1e-3,seed=1".
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// "to run on the CPUs, leave out --gpus and --gpu-memory", with the options that were typed;
  /// empty if none was. Without a command, it names the keys of a job file.
  [[nodiscard]] std::string cpus_advice() const;
  /// The command as typed: "python3 fit.py --lr 0.1", or "each line of commands.txt".
  [[nodiscard]] std::string shown() const;
};

/// The name of the job file for a command, in the directory where it was typed. There is no such
/// file.
inline constexpr std::string_view kCommandFile = "command.yaml";

struct CommandJob {
  std::string name;
  std::string text;  ///< A job file.
  /// The source of each line of the text, for mistakes: "--memory", "the command".
  std::vector<std::string> line_names;
};

/// `directory` is the default directory of its tasks, absolute. Values of keys are checked where
/// the text is read.
Result<CommandJob> job_of_command(const CommandWords& words, const std::string& directory);

/// The directory of the tasks of such a job file; nothing where the text is of another kind.
std::optional<std::string> directory_of_command(const std::string& text);

}  // namespace trainyard::cli
