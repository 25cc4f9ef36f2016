// Ranks on the two nodes of a Slurm that somebody has started (tests/slurm.py does), as a program:
// says what was wrong, and exits with 1 then.
#include <cstddef>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "ranks/test_components.h"
#include "ranks/test_options.h"
#include "trainyard/launcher.h"
#include "trainyard/rank_context.h"
#include "trainyard/rank_executor.h"
#include "trainyard/rank_program.h"
#include "trainyard/return_code.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

int fail(std::string_view what, const Shareable& reply) {
  std::cerr << what << ": " << to_text(reply.code()) << ": " << reply.message() << '\n'
            << reply.traceback() << reply.values() << '\n';
  return 1;
}

int check() {
  RankExecutorOptions options = test_options(4);
  options.launcher = Launcher::srun({"-N", "2"});
  options.result = RankResult::All;
  options.note = [](std::string_view what) { std::cerr << what << '\n'; };
  RankExecutor executor(options, test_registry());
  RankContext context;
  Shareable task;
  task.set("names", {"RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURMD_NODENAME"});
  const std::vector<Shareable> replies = executor.execute_all("environment", task, context);
  std::set<std::string> nodes;
  for (std::size_t rank = 0; rank < replies.size(); ++rank) {
    const Json& value = replies[rank].get("value");
    if (replies[rank].code() != ReturnCode::Ok || value.at("RANK") != std::to_string(rank) ||
        value.at("WORLD_SIZE") != "4") {
      return fail("environment", replies[rank]);
    }
    nodes.insert(value.at("SLURMD_NODENAME").get<std::string>());
  }
  if (nodes.size() != 2) return fail("not on two nodes", replies[0]);
  Shareable fatal;
  fatal.set("rank", 3);
  fatal.set("others_wait", true);
  const Shareable died = executor.execute("kill", fatal, context);
  if (died.code() != ReturnCode::RankDied || died.traceback() != "last words\n") {
    return fail("a death", died);
  }
  const Shareable again = executor.execute("get", {}, context);
  if (again.code() != ReturnCode::Ok) return fail("launched again", again);
  std::cout << "4 ranks on " << nodes.size() << " nodes: ok\n";
  return 0;
}

}  // namespace
}  // namespace trainyard::ranks

int main() {
  if (const auto code = trainyard::run_as_rank(trainyard::ranks::test_registry())) return *code;
  return trainyard::ranks::check();
}
