// Keys of a job file that belong to another part of it, with the message for each.
#pragma once

#include <array>
#include <string_view>

#include "text/key_reader.h"

namespace trainyard::job {

/// The cure for an unknown key of a job, a group or a task.
constexpr std::string_view kRemove = "remove it";
/// The cure where the key has the values of a parameter, or a placeholder names it.
constexpr std::string_view kAsParameter =
    "to use it as a parameter, write it under 'matrix' of the group";

/// Words of other tools that are unknown keys of a job, a group or a task.
struct OtherToolKeys {
  std::string_view words;  ///< Separated by blanks, with '-' for '_'.
  std::string_view cure;
};
constexpr std::array<OtherToolKeys, 9> kOtherToolKeys{{
    {.words = "venv virtualenv conda modules",
     .cure = "activate it in the command, as in '. .venv/bin/activate && python3 train.py'"},
    {.words = "stdout stderr output log",
     .cure = "'trainyard logs' shows the output of a task; remove this key"},
    {.words = "seeds", .cure = "write it in a group, as in 'matrix: {seed: [0, 1, 2]}'"},
    {.words = "args arguments", .cure = "write arguments in 'command', as in 'train.py --lr 0.1'"},
    {.words = "account qos", .cure = "remove it; 'trainyard run --slurm' takes options of Slurm"},
    {.words = "mail email", .cure = "remove it; the settings under 'smtp' send mail"},
    {.words = "description", .cure = "write it as a comment, after '#'"},
    {.words = "resources", .cure = "write 'cpus', 'memory' and 'gpus' as keys of the group"},
    {.words = "gpu-type gpu-name gpu-model", .cure = "write it as in 'where: {gpu: H100}'"},
}};

/// A file of another tool, which has some of these keys at its top level and no 'groups'.
struct OtherToolFile {
  std::string_view name;
  std::string_view keys;  ///< Separated by blanks, with '-' for '_'.
  int keys_min;           ///< Number of the keys that it has at least.
  std::string_view cure;
};
constexpr std::array<OtherToolFile, 4> kOtherToolFiles{{
    {.name = "a W&B sweep",
     .keys = "program method metric parameters early-terminate",
     .keys_min = 2,
     .cure = "in a group, write its parameters as 'matrix: {lr: [0.1, 0.01]}', and its program as "
             "'tasks: [{command: \"python3 train.py --lr {lr}\"}]'"},
    {.name = "an Optuna study",
     .keys = "study-name direction directions sampler pruner n-trials search-space",
     .keys_min = 2,
     .cure = "trainyard does not search: list the values to try in a group, as in 'matrix: {lr: "
             "[0.1, 0.01]}'"},
    {.name = "a Hydra configuration",
     .keys = "hydra defaults",
     .keys_min = 1,
     .cure = "run its program: trainyard run --matrix lr=0.1,0.01 -- python3 train.py 'lr={lr}'"},
    {.name = "a Kubernetes manifest",
     .keys = "apiVersion kind metadata spec",
     .keys_min = 2,
     .cure = "in a group, write the command of its container as 'tasks: [{command: \"python3 "
             "train.py\"}]'"},
}};

/// Without the keys of groups.
constexpr std::array<text::Elsewhere, 2> kNotOfJob{{
    {.key = "command", .message = "'command' belongs to a task, under 'tasks' of a group"},
    {.key = "defaults",
     .message =
         "unknown key 'defaults'; write its keys in each group, where they apply to all its tasks"},
}};
/// For groups and tasks.
constexpr text::Elsewhere kMatch{
    .key = "match", .message = "'match' belongs to 'needs', as in [{group: GROUP, match: matrix}]"};
constexpr text::Elsewhere kMachine{
    .key = "machine", .message = "unknown key 'machine'; write it as in 'where: {machine: lab1}'"};
constexpr text::Elsewhere kHost{
    .key = "host", .message = "unknown key 'host'; write it as in 'where: {machine: lab1}'"};
constexpr std::array<text::Elsewhere, 5> kNotOfGroup{{
    {.key = "command", .message = "'command' belongs to a task, under 'tasks'"},
    {.key = "id", .message = "'id' belongs to a task, under 'tasks'; a group has a 'name'"},
    kMatch,
    kMachine,
    kHost,
}};
constexpr std::array<text::Elsewhere, 11> kNotOfTask{{
    {.key = "name", .message = "unknown key 'name' (did you mean 'id'?)"},
    {.key = "matrix", .message = "'matrix' belongs to the group and applies to all its tasks"},
    {.key = "needs",
     .message =
         "'needs' belongs to a group: put this task into a group of its own after the group "
         "that it needs ('needs: [{group: GROUP, match: matrix}]' there pairs tasks with the "
         "same matrix values)"},
    kMatch,
    kMachine,
    kHost,
    {.key = "max-parallel", .message = "'max-parallel' belongs to the group"},
    {.key = "fail-fast", .message = "'fail-fast' belongs to the group"},
    {.key = "try-first", .message = "'try-first' belongs to the group, or to the job"},
    {.key = "keep", .message = "'keep' belongs to the group"},
    {.key = "preload", .message = "'preload' belongs to the group"},
}};

}  // namespace trainyard::job
