#include "job/task_environment.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "job/job_needs.h"
#include "run/run_directory.h"
#include "text/placeholder.h"

namespace trainyard::job {

std::optional<std::string_view> why_not_to_set(std::string_view name) {
  if (!text::is_identifier(name) || name.contains('-')) return "is not a valid variable name";
  if (name.starts_with("TRAINYARD_")) return "is set by trainyard; choose another name";
  return std::nullopt;
}

void set_files(model::Launch& launch, std::string task_directory, std::uint32_t attempt) {
  launch.task_directory = std::move(task_directory);
  const std::string own = launch.task_directory + "/";
  launch.checkpoint_directory = own + std::string(run::kCheckpoints);
  launch.stdout_path = own + run::log_name("stdout", attempt);
  launch.stderr_path = own + run::log_name("stderr", attempt);
  launch.result_path = own + run::result_name(attempt);
  launch.result_copy_path = own + std::string(run::kResult);
}

std::vector<std::string> logs_of_ranks(const model::Launch& launch, int ranks,
                                       std::uint32_t attempt) {
  std::vector<std::string> paths;
  for (int rank = 1; rank < ranks; ++rank) {
    paths.push_back(launch.task_directory + "/" +
                    run::log_name(fmt::format("rank-{}", rank), attempt));
  }
  return paths;
}

const std::string* find_variable(const Variables& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, [](const auto& one) { return one.first; });
  return found == variables.end() ? nullptr : &found->second;
}

std::uint32_t task_seed(std::string_view group, std::string_view id, std::uint32_t attempt) {
  Fingerprint print;
  print.add(group);
  print.add(id);
  print.add(std::int64_t{attempt});
  // FNV leaves what comes last in the low bits, and generators look at all of them.
  std::uint64_t mixed = print.value();
  mixed = (mixed ^ (mixed >> 33U)) * 0xff51afd7ed558ccdU;
  return static_cast<std::uint32_t>(mixed >> 32U);
}

Variables own_variables(const TaskName& name, const model::Launch& launch,
                        const std::string& run_directory) {
  // Each round has its own seeds.
  const std::string seeded = name.round ? name_in_round(name.group, *name.round) : name.group;
  Variables variables{{"TRAINYARD_TASK_ID", name.id},
                      {"TRAINYARD_GROUP", name.group},
                      {"TRAINYARD_RUN_DIR", run_directory},
                      {"TRAINYARD_TASK_DIR", launch.task_directory},
                      {"TRAINYARD_CHECKPOINT_DIR", launch.checkpoint_directory},
                      {"TRAINYARD_RESULT", launch.result_path},
                      {"TRAINYARD_ATTEMPT", fmt::to_string(name.attempt)},
                      {"TRAINYARD_SEED", fmt::to_string(task_seed(seeded, name.id, name.attempt))}};
  if (name.round) variables.emplace_back("TRAINYARD_ROUND", fmt::to_string(*name.round));
  return variables;
}

Variables thread_variables(const model::Request& request, int processes) {
  const std::int64_t cpus_of_each = request.cpus.milli / 1000 / processes;
  const std::string threads = fmt::to_string(std::max<std::int64_t>(1, cpus_of_each));
  return {{"OMP_NUM_THREADS", threads},
          {"OPENBLAS_NUM_THREADS", threads},
          {"MKL_NUM_THREADS", threads}};
}

}  // namespace trainyard::job
