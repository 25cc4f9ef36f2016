// How fast calls of a pool are answered:
//
//   pool_core pipelined|alone|all|buffer <calls> [<children>] [threads]
//
// Prints microseconds for all of them, made one after the other (alone), all at once (pipelined),
// by all children together (all), or with a buffer of 8 MiB each way (buffer).
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/pool.h"

namespace {

using namespace std::chrono_literals;
using trainyard::Buffer;
using trainyard::DType;

constexpr auto kLong = 60s;
constexpr std::int64_t kNumbers = std::int64_t{2} << 20;

class Counter {
 public:
  explicit Counter(int /*index*/) : answer_(DType::Float32, {kNumbers}) {}
  int add(int n) { return sum_ += n; }
  Buffer swap(const Buffer& given) {
    sum_ += static_cast<int>(given.count());
    return answer_;
  }

 private:
  int sum_ = 0;
  Buffer answer_;
};
using Counters = trainyard::Pool<Counter, &Counter::add, &Counter::swap>;

bool call(Counters& pool, std::string_view what, int calls) {
  bool good = true;
  if (what == "alone") {
    for (int i = 0; i < calls; ++i) {
      good = pool.call<&Counter::add>(i % pool.count(), 1).get(kLong).has_value() && good;
    }
  } else if (what == "all") {
    for (int i = 0; i < calls; ++i) {
      for (const auto& each : pool.all<&Counter::add>(1).get(kLong)) good = each && good;
    }
  } else if (what == "buffer") {
    const Buffer given = pool.alloc(DType::Float32, {kNumbers}).value();
    for (int i = 0; i < calls; ++i) {
      good = pool.call<&Counter::swap>(i % pool.count(), given).get(kLong).has_value() && good;
    }
  } else {
    std::vector<trainyard::PoolFuture<int>> open;
    for (int i = 0; i < calls; ++i) open.push_back(pool.call<&Counter::add>(i % pool.count(), 1));
    for (auto& each : open) good = each.get(kLong).has_value() && good;
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (argc < 3) return EXIT_FAILURE;
  const std::string_view what = arguments[1];
  const int calls = std::stoi(arguments[2]);
  const bool threads = argc > 4 && std::string_view(arguments[4]) == "threads";
  auto pool =
      Counters::start({.count = argc > 3 ? std::stoi(arguments[3]) : 3,
                       .in = threads ? trainyard::PoolIn::Threads : trainyard::PoolIn::Processes,
                       .open_max = static_cast<std::size_t>(calls) + 1},
                      [](int index) { return Counter(index); });
  if (!pool) return EXIT_FAILURE;
  // The first calls wait for the children, and make the arenas.
  if (!call(*pool, what, 2 * pool->count())) return EXIT_FAILURE;
  const auto begin = std::chrono::steady_clock::now();
  if (!call(*pool, what, calls)) return EXIT_FAILURE;
  std::cout << (std::chrono::steady_clock::now() - begin) / 1us << '\n';
  return EXIT_SUCCESS;
}
