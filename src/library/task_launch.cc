#include "library/task_launch.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hardware/mps.h"
#include "job/gpu_variables.h"
#include "job/task_environment.h"
#include "library/task_state.h"
#include "model/terms.h"
#include "sys/environment.h"

namespace trainyard::library {

model::Launch launch_of(const Launched& what, std::uint32_t attempt) {
  const model::Terms& terms = what.shape.terms;
  model::Launch launch;
  job::set_files(launch, what.task_directory, attempt);
  launch.run_directory = what.run_directory;
  launch.working_directory = launch.task_directory;
  launch.two_phase = true;
  launch.forked = true;
  launch.ranks = terms.ranks;
  if (launch.ranks > 0) {
    launch.own_ranks =
        model::OwnRanks{.gpus = 0, .log_paths = job::logs_of_ranks(launch, launch.ranks, attempt)};
  }
  const auto add = [&launch](const job::Variables& variables) {
    for (const auto& [name, value] : variables) {
      launch.environment.push_back(fmt::format("{}={}", name, value));
    }
  };
  add(job::own_variables({.group = what.group.name(), .id = what.task.id(), .attempt = attempt},
                         launch, what.run_directory));
  for (const auto& variable : job::thread_variables(terms.request, model::processes_of(terms))) {
    if (!sys::variable(variable.first.c_str())) add({variable});
  }
  // The GPUs of an attempt are told when it trains: it sees all of them.
  const TaskOptions& own = TaskAccess::state(what.task).options;
  job::Variables said = own.environment;
  std::ranges::copy(what.group.defaults().environment, std::back_inserter(said));
  const std::string pipes = sys::variable(hardware::kMpsPipes).value_or(hardware::kMpsDirectory);
  const bool is_renumbered = !what.gpus_answer || hardware::find_mps(pipes).has_value();
  add(job::gpu_variables(what.capacity.gpus, what.shape, {},
                         job::naming_of_gpus(said, is_renumbered)));
  // The last word of a name counts.
  const std::size_t first = launch.environment.size();
  for (const TaskOptions* const options : std::array{&what.group.defaults(), &own}) {
    add(options->environment);
  }
  std::ranges::copy(launch.environment | std::views::drop(first),
                    std::back_inserter(launch.user_variables));
  return launch;
}

}  // namespace trainyard::library
