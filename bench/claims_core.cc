// What it costs a yard that others on the machine see what it promises: eight of them, each with
// tasks on four cards, on real files. Prints one JSON object: how long a turn takes longer in which
// something is claimed, and a look at the others.
//
//   claims_core <directory> <turns>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ratio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "process/promise_board.h"
#include "run/neighbours.h"
#include "run/shared_ledger.h"
#include "sys/clock.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kCards = 4;
constexpr int kNeighbours = 7;

model::Capacity machine() {
  model::Capacity capacity{.memory = gb(512), .cpus = model::cpus(128)};
  for (std::uint32_t i = 0; i < kCards; ++i) {
    capacity.gpus.push_back({.number = static_cast<int>(i),
                             .uuid = fmt::format("GPU-8a56c1d2-0000-4000-8000-{:012}", i),
                             .memory = gb(80)});
  }
  return capacity;
}

model::Promises of_a_neighbour(const process::PromiseBoard& board) {
  model::Promises its{.ticket = board.ticket(), .run = 7, .name = "sweep"};
  its.held = {.memory = gb(40), .unused = gb(10), .cpus = model::cpus(8), .tasks = 8};
  for (const model::Gpu& gpu : machine().gpus) {
    its.held.cards.push_back({.uuid = gpu.uuid, .memory = gb(8), .unused = gb(1), .tasks = 2});
  }
  return its;
}

model::Turn one_event(model::What what) {
  model::Turn turn;
  turn.events.push_back({.at = {}, .what = std::move(what)});
  turn.decisions.emplace_back();
  return turn;
}

int measure(const std::string& directory, int turns) {
  std::vector<process::PromiseBoard> others;
  for (int i = 0; i < kNeighbours; ++i) {
    Result<process::PromiseBoard> other = process::PromiseBoard::open({directory});
    if (!other) return 1;
    other->write(of_a_neighbour(*other));
    others.push_back(std::move(*other));
  }
  Result<process::PromiseBoard> board = process::PromiseBoard::open({directory});
  if (!board) return 1;
  run::SharedLedger ledger(
      {.write = [&](const model::Promises& promises) { board->write(promises); },
       .read = [&] { return run::named(board->read(), {}); },
       .pause = [] { process::PromiseBoard::let_others_go_on(); },
       .unix_s = [] { return sys::unix_milliseconds() / 1'000; },
       .note = [](const std::string&) {}},
      machine(), {.ticket = board->ticket(), .run = 46, .name = "mine"});
  model::Headroom left{.memory_free = gb(100), .cpus_free = model::cpus(50)};
  for (const model::Gpu& gpu : machine().gpus) {
    left.gpus.push_back({.label = gpu.label(), .free = gb(20), .uuid = gpu.uuid});
  }
  if (auto seen = ledger.look({.thorough = true})) left.neighbours = seen->neighbours;
  if (left.neighbours.size() != kNeighbours) return 1;
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  for (int i = 0; i < turns; ++i) {
    const model::AttemptKey key{.task = {0}, .attempt = static_cast<std::uint32_t>(i + 1)};
    const model::Decision start{
        .commands = {model::StartAttempt{
            .key = key,
            .promise = {.memory = gb(1), .cpus = model::cpus(1), .gpus = 1, .gpu_memory = gb(2)},
            .site = {.machine = {}, .gpus = {{static_cast<std::uint32_t>(i) % kCards}}}}}};
    if (ledger.claim({.decided = start, .left = [&] { return left; }, .at = {}})) return 1;
    ledger.see(one_event(model::AttemptEnded{.key = key}));
  }
  const auto claimed = Clock::now();
  for (int i = 0; i < turns; ++i) static_cast<void>(ledger.look({.thorough = false}));
  const auto looked = Clock::now();
  const auto each = [turns](auto lasted) {
    return std::chrono::duration<double, std::micro>(lasted).count() / turns;
  };
  fmt::print("{{\"yards\": {}, \"turn_us\": {:.2f}, \"look_us\": {:.2f}}}\n", kNeighbours + 1,
             each(claimed - began), each(looked - claimed));
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return trainyard::measure(argv[1], std::atoi(argv[2]));
}
