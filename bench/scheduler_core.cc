// How long the yard itself takes over a great many tasks, without any process: the real scheduler
// and the real loop on a machine where tasks end when their made-up time is over. Rows of the
// journal and reasons are produced as in a real run; with a path they are written to a journal too.
//
// usage: scheduler_core TASKS SHAPES [MACHINES [JOURNAL]]
// Prints one JSON object: tasks, seconds, events, rows, row_bytes, reasons, turns, memory_max (of
// this process, in bytes), simulated_seconds.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <fmt/format.h>

#include "base/result.h"
#include "bench/simulate_many.h"
#include "journal/journal.h"
#include "model/ids.h"
#include "model/plan.h"

namespace trainyard {
namespace {

Result<std::unique_ptr<journal::Journal>> make_journal(const std::string& path,
                                                       const model::Plan& plan) {
  const journal::Batch batch{
      .plan = std::make_shared<model::Plan>(plan),
      .names = {.task_id = [](model::TaskIndex task) { return fmt::format("i={}", task.value); },
                .matrix_values =
                    [](model::TaskIndex task) {
                      return std::vector<std::pair<std::string, std::string>>{
                          {"i", std::to_string(task.value)}};
                    },
                .fingerprint = [](model::TaskIndex task) { return std::uint64_t{task.value}; }},
      .source = {}};
  return journal::Journal::create(path, "bench", batch,
                                  journal::Execution{.command_line = "scheduler_core"});
}

struct Size {
  std::size_t tasks = 0;
  std::size_t shapes = 0;
  std::uint32_t machines = 1;
};

Result<void> measure(const Size& size, const char* journal_path) {
  const auto began = std::chrono::steady_clock::now();
  const model::Plan plan = bench::make_many(size.tasks, size.shapes);
  std::unique_ptr<journal::Journal> journal;
  if (journal_path != nullptr) {
    auto made = make_journal(journal_path, plan);
    if (!made) return std::unexpected(std::move(made.error()));
    journal = std::move(*made);
  }
  const Result<bench::ManyCounts> counts = bench::simulate_many(plan, size.machines, journal.get());
  if (!counts) return std::unexpected(counts.error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  fmt::print(R"({{"tasks": {}, "seconds": {:.4f}, "events": {}, "rows": {}, "row_bytes": {}, )"
             R"("reasons": {}, "turns": {}, "memory_max": {}, "simulated_seconds": {}}})"
             "\n",
             counts->finished, took.count(), counts->events, counts->rows, counts->row_bytes,
             counts->reasons, counts->turns, used.ru_maxrss * 1024,
             counts->ended.since_start.count() / 1000);
  return {};
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    std::fputs("usage: scheduler_core TASKS SHAPES [MACHINES [JOURNAL]]\n", stderr);
    return 2;
  }
  const auto number = [argv](int place) { return std::strtoull(argv[place], nullptr, 10); };
  const trainyard::Size size{.tasks = number(1),
                             .shapes = number(2),
                             .machines = argc > 3 ? static_cast<std::uint32_t>(number(3)) : 1};
  if (size.tasks == 0 || size.shapes == 0 || size.shapes > size.tasks || size.machines == 0) {
    std::fputs("scheduler_core: at least one task for each shape, and a machine\n", stderr);
    return 2;
  }
  const auto measured = trainyard::measure(size, argc == 5 ? argv[4] : nullptr);
  if (measured) return 0;
  fmt::print(stderr, "scheduler_core: {}\n", measured.error().message);
  return 1;
}
