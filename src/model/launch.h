// Everything that is needed to start the process of one attempt. Made when it starts, from the job
// file and the device that was chosen, and not kept: ten thousand waiting tasks hold none of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/path_name.h"
#include "model/resources.h"

namespace trainyard::model {

/// Where the directories of a run are on a machine that has no disk in common with its yard's.
struct Elsewhere {
  /// A directory by its two names, both absolute: where the yard is, and there.
  struct Place {
    std::string here;
    std::string there;

    friend bool operator==(const Place&, const Place&) = default;
  };
  Place run;   ///< Of the run.
  Place work;  ///< Of its job file; of a command, where that was typed.

  /// The same place there, of an absolute path; what lies in neither has the same name there.
  [[nodiscard]] std::string place_of(const std::string& here) const {
    for (const Place* const place : {&run, &work}) {
      if (!place->here.empty() && lies_in(here, place->here)) {
        return place->there + here.substr(place->here.size());
      }
    }
    return here;
  }

  friend bool operator==(const Elsewhere&, const Elsewhere&) = default;
};

/// The modules that are imported before a Python task starts: it is a fork of a process that has
/// imported them.
struct Preload {
  std::vector<std::string> modules;  ///< In the order of their import; empty: none.
  /// How many of the launch's arguments are the interpreter and its options, not the script's.
  std::size_t interpreter = 0;
  std::string path;  ///< Where imports look first: the directory of the script.
  /// The environment of the importing process: the variables that all its tasks have in common.
  std::vector<std::string> environment;
  std::string log_path;  ///< Where that process prints; added to.

  friend bool operator==(const Preload&, const Preload&) = default;
};

/// The settings of each rank of an attempt, where the keeper starts them.
struct OwnRanks {
  /// How many GPUs they see, all of them the same ones: each has its share (model/rank_environment.h).
  int gpus = 0;
  /// Where the ranks from 1 on print, in their order; rank 0 prints where the launch says. Made
  /// anew.
  std::vector<std::string> log_paths;

  friend bool operator==(const OwnRanks&, const OwnRanks&) = default;
};

/// How much of a region of GPU memory the processes of a control group may take together.
struct RegionLimit {
  std::string region;  ///< As the kernel calls it: "drm/0000:03:00.0/vram0".
  Bytes most;

  friend bool operator==(const RegionLimit&, const RegionLimit&) = default;
};

/// The resources that an attempt is assigned where it starts.
struct Grant {
  std::vector<Gpu> gpus;
  Bytes memory_max;  ///< The most that it may take of each; 0: no limit is set.
  /// All GPUs that tasks may have of that machine, as they are known by now.
  std::vector<Gpu> of_machine;
  std::string program = {};  ///< Where trainyard is there; empty: as here.
  bool gpus_answer = true;   ///< All of of_machine answered when they were last sampled.
  /// Where its directories are there, on a machine that does not have those of the yard.
  Elsewhere elsewhere = {};
};

struct Launch {
  /// Why it cannot be started after all, for people; empty: it can.
  std::string cannot_start;
  /// The program and its arguments, for exec. A command that is a string is {"/bin/bash", "-c",
  /// text}. The program is looked up on PATH when it has no slash.
  std::vector<std::string> arguments;
  /// Variables added to the environment of the yard, as NAME=value. A name that the yard has too is
  /// replaced; a name alone is taken out.
  std::vector<std::string> environment;
  /// In the place of what the yard was started with: what was submitted brings the environment of
  /// who submitted it, as NAME=value. Empty: as the yard.
  std::vector<std::string> inherited;
  /// Those of `environment` that the user has set for the task, with the user's values. A run that
  /// the task starts finds them, too; all others it does not find (model/set_variables.h).
  std::vector<std::string> user_variables;
  /// This path and those below are absolute.
  std::string working_directory;
  std::string task_directory;  ///< Made, with its parents, before the process starts.
  std::string run_directory;   ///< Empty: the directory above the task's.
  /// In the task's directory, and made with it; what it saves there its next attempts find. Empty:
  /// there is none.
  std::string checkpoint_directory;
  /// Both made anew, and they may be the same. Empty: as the keeper's own, which are nothing unless
  /// its options say otherwise.
  std::string stdout_path;
  std::string stderr_path;
  /// It passes SIGTERM on to the processes that it has started: the signal goes to its process
  /// group alone.
  bool passes_term_on = false;
  /// TERM goes to all of its processes at once, and not to those first that handle it.
  bool term_to_all = false;
  bool two_phase = false;  ///< It talks to the yard, and is told where and as whom.
  /// How many ranks the task is, whoever starts them; 0: it is one process, and no rank.
  int ranks = 0;
  /// The ranks that the keeper starts, each with the same command. Nothing: the command is one
  /// process, which may start ranks itself.
  std::optional<OwnRanks> own_ranks;
  /// Instead of a command: the program itself goes on in a fork of the keeper, which calls the body
  /// that it was made with (process/keeper.h). Its current directory is the task's.
  bool forked = false;
  Preload preload;
  /// The control group that is made for this attempt alone, and how much memory its processes may
  /// take together. Empty: none. Not for one that is `forked`.
  std::string memory_group;
  Bytes memory_max;  ///< 0: any amount.
  /// And how much of the memory of its GPUs.
  std::vector<RegionLimit> region_limits;
  /// The framework that enforces its GPU limit by a variable, for users: "torch 2.10.0". Empty: no
  /// framework does.
  std::string capped_by;
  std::string result_path;  ///< Where the task may leave a JSON object; removed before it starts.
  /// Where a copy of it is put once it has been read, which is of the last attempt therefore, and
  /// removed before the next one starts. Empty: nowhere.
  std::string result_copy_path;
  /// By which its end is known to whoever goes on with the run, should the yard be gone by then:
  /// its task's number in the journal. Nothing: there is none.
  std::optional<std::uint32_t> journal_number = std::nullopt;
  /// The directories of other tasks that its command names; for the yard alone.
  std::vector<std::string> needed_directories = {};

  /// The directory that is made before the process starts, with its parents.
  [[nodiscard]] const std::string& directory_to_make() const {
    return checkpoint_directory.empty() ? task_directory : checkpoint_directory;
  }

  /// The directory up to which symbolic links are followed; a link from there to the task's
  /// directory is refused, as a task may have put it there. Links above the run directory may be
  /// right, as that of a home on another machine.
  [[nodiscard]] std::string_view followed_directory() const {
    const std::string_view own = task_directory;
    const bool is_below = !run_directory.empty() && own.starts_with(run_directory + "/");
    return own.substr(0, is_below ? run_directory.size() : own.rfind('/'));
  }

  friend bool operator==(const Launch&, const Launch&) = default;
};

}  // namespace trainyard::model
