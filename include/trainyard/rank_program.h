// The other side of a RankExecutor: a program that becomes a rank when it was started as one.
//
//   int main() {
//     trainyard::ComponentRegistry registry;
//     registry.add<Trainer>("trainer");
//     if (const auto code = trainyard::run_as_rank(registry)) return *code;
//     ...                                     // here it is the program that a person has started
//     trainyard::RankExecutor trainer({.ranks = 4, .executor = "trainer", ...}, registry);
//   }
#pragma once

#include <optional>

#include "trainyard/component_registry.h"

namespace trainyard {

/// Nothing when this process was not started as a rank. Else it connects, makes its components,
/// executes what it is told, and returns the exit code of the process when that is over. Call it
/// first thing, before other threads; components are made and execute on this thread.
///
/// RANK, LOCAL_RANK and WORLD_SIZE are in the environment from then on, whoever the launcher was.
/// When the parent is gone the process ends within some seconds, whatever it does.
std::optional<int> run_as_rank(const ComponentRegistry& registry);

}  // namespace trainyard
