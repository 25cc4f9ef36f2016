// What ranks cost: a program with a RankExecutor, as a user writes one, which is its own rank.
//
// usage: ranks_core payload RANK MIB ROUNDS  so much float32 to 4 ranks that touch every page of
// it:
//                                            copied once, written in place, and memcpy by hand
//        ranks_core tiny RANK COUNT          an empty task, replied to by all 4
//        ranks_core task RANK MIB ROUNDS     8 events, and a task with so much
//        ranks_core ready RANK               from nothing to 4 ranks that can be asked
//        ranks_core abort RANK ROUNDS        from the request to stop until a rank sees it
//        ranks_core death RANK MIB [small]   from the end of a rank that holds so much, in large or
//                                            small pages, to the reply; and a bare process's end
//        ranks_core finalize RANK            the end of 4 ranks
// RANK is "cpp", or a Python script with the class Bench. Prints one JSON object of seconds.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "trainyard/rank_executor.h"
#include "trainyard/rank_program.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRanks = 4;
constexpr std::size_t kFloatsOfPage = 1024;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// The rank.
class Bench final : public Executor {
 public:
  Shareable execute(std::string_view task, const Shareable& input, RankContext&,
                    std::stop_token stop) override {
    Shareable reply;
    if (task == "touch") {
      const std::span<const float> values = input.buffer("weights")->as<float>();
      float sum = 0;
      for (std::size_t i = 0; i < values.size(); i += kFloatsOfPage) sum += values[i];
      reply.set("sum", static_cast<double>(sum));
    } else if (task == "wait") {
      std::mutex mutex;
      std::condition_variable_any changed;
      std::unique_lock lock(mutex);
      changed.wait(lock, stop, [] { return false; });
      reply.set("seen", now());
    } else if (task == "hold") {
      // In large pages, as frameworks have it: the kernel takes 20 times as long to free small
      // ones.
      const auto size = static_cast<std::size_t>(input.get("mib").get<std::int64_t>()) << 20;
      void* const held =
          ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      check(held != MAP_FAILED, "memory to hold");
      if (!input.has("small")) ::madvise(held, size, MADV_HUGEPAGE);
      std::memset(held, 1, size);
      reply.set("pid", ::getpid());
    }
    return reply;
  }
};

class Listener final : public Component {
 public:
  [[nodiscard]] std::vector<std::string> listens_to() const override { return {"step"}; }
};

RankExecutorOptions options(const std::string& rank) {
  const std::string python =
      fmt::format("type: python, args: {{script: {}, python: /usr/bin/python3, entry: ", rank);
  return {.ranks = kRanks,
          .executor = "bench",
          .components =
              rank == "cpp"
                  ? "[{id: bench, type: bench}, {id: listener, type: listener}]"
                  : fmt::format("[{{id: bench, {0}Bench}}}}, {{id: l, {0}Listener}}}}]", python)};
}

ComponentRegistry registry() {
  ComponentRegistry made;
  made.add<Bench>("bench");
  made.add<Listener>("listener");
  return made;
}

Shareable must(Shareable reply) {
  if (reply.code() != ReturnCode::Ok) {
    fmt::print(stderr, "ranks_core: {}\n{}", reply.message(), reply.traceback());
    std::_Exit(1);
  }
  return reply;
}

using Figures = std::map<std::string, double>;

double peak_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

Figures payload(RankExecutor& executor, std::size_t mib, int rounds) {
  RankContext context;
  must(executor.start(context));
  const std::size_t count = (mib << 20) / sizeof(float);
  const auto shape = Dimensions{static_cast<std::int64_t>(count)};
  const double before = peak_bytes();
  std::vector<double> in_place;
  {
    Buffer placed = executor.alloc(DType::Float32, shape).value();
    std::ranges::fill(placed.fill<float>(), 1.0F);
    Shareable task;
    task.set_buffer("weights", placed);
    for (int i = 0; i < rounds; ++i) {
      const auto start = Clock::now();
      must(executor.execute("touch", task, context));
      if (i >= 2) in_place.push_back(seconds_since(start));
    }
  }
  const double once = peak_bytes() - before;
  const std::vector<float> source(count, 1.0F);
  std::vector<float> target(count, 2.0F);
  std::vector<double> copied;
  std::vector<double> memcpys;
  Shareable task;
  task.set_buffer("weights", Buffer::view_of<float>(shape, source));
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    const Shareable reply = must(executor.execute("touch", task, context));
    if (i >= 2) copied.push_back(seconds_since(start));
    check(reply.get("sum").get<double>() > 0, "a sum of what was sent");
    const auto by_hand = Clock::now();
    std::memcpy(target.data(), source.data(), count * sizeof(float));
    if (i >= 2) memcpys.push_back(seconds_since(by_hand));
    check(target[count / 2] == 1.0F, "a copy");
  }
  return {{"copied", median(copied)},
          {"in_place", median(in_place)},
          {"memcpy", median(memcpys)},
          {"parent_times", once / static_cast<double>(count * sizeof(float))}};
}

Figures tiny(RankExecutor& executor, int count) {
  RankContext context;
  must(executor.start(context));
  for (int i = 0; i < count / 10; ++i) must(executor.execute("nothing", {}, context));
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    must(executor.execute("nothing", {}, context));
    times.push_back(seconds_since(start));
  }
  return {{"ours", median(times)}};
}

Figures whole_task(RankExecutor& executor, std::size_t mib, int rounds) {
  RankContext context;
  must(executor.start(context));
  const std::vector<float> source((mib << 20) / sizeof(float), 1.0F);
  Shareable task;
  task.set_buffer("weights",
                  Buffer::view_of<float>({static_cast<std::int64_t>(source.size())}, source));
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    for (int event = 0; event < 4; ++event) static_cast<void>(executor.fire("step", {}, context));
    must(executor.execute("touch", task, context));
    for (int event = 0; event < 4; ++event) static_cast<void>(executor.fire("step", {}, context));
    if (i >= 2) times.push_back(seconds_since(start));
  }
  return {{"ours", median(times)}};
}

Figures ready(RankExecutor& executor) {
  RankContext context;
  const auto start = Clock::now();
  must(executor.start(context));
  return {{"ours", seconds_since(start)}};
}

Figures abort(RankExecutor& executor, int rounds) {
  RankContext context;
  std::vector<double> slowest;
  for (int i = 0; i < rounds; ++i) {
    must(executor.execute("nothing", {}, context));
    std::stop_source stop;
    double asked = 0;
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      asked = now();
      stop.request_stop();
    });
    double last = 0;
    for (const Shareable& reply : executor.execute_all("wait", {}, context, stop.get_token())) {
      last = std::max(last, reply.get("seen").get<double>());
    }
    later.join();
    slowest.push_back(last - asked);
  }
  return {{"ours", median(slowest)}};
}

/// How long a process that holds so much takes to end, by itself.
double bare_death(std::size_t mib, bool small) {
  std::array<int, 2> pipe{};
  check(::pipe(pipe.data()) == 0, "a pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::size_t size = mib << 20;
    void* const held =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!small) ::madvise(held, size, MADV_HUGEPAGE);
    std::memset(held, 1, size);
    check(::write(pipe[1], "x", 1) == 1, "a word");
    while (true) ::pause();
  }
  char byte = 0;
  check(::read(pipe[0], &byte, 1) == 1, "a word");
  const auto start = Clock::now();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return seconds_since(start);
}

Figures death(RankExecutor& executor, std::int64_t mib, bool small) {
  RankContext context;
  const double bare = bare_death(static_cast<std::size_t>(mib), small);
  Shareable hold;
  hold.set("mib", mib);
  if (small) hold.set("small", true);
  const auto pid = must(executor.execute("hold", hold, context)).get("pid").get<pid_t>();
  double killed = 0;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    killed = now();
    ::kill(pid, SIGKILL);
  });
  const Shareable reply = executor.execute("wait", {}, context);
  const double heard = now();
  later.join();
  check(reply.code() == ReturnCode::RankDied || reply.code() == ReturnCode::OutOfMemory, "a death");
  return {{"ours", heard - killed}, {"bare", bare}};
}

Figures finalize(RankExecutor& executor) {
  RankContext context;
  must(executor.execute("nothing", {}, context));
  const auto start = Clock::now();
  executor.finalize();
  return {{"ours", seconds_since(start)}};
}

Figures measure(const std::vector<std::string>& words) {
  const std::string& what = words.at(0);
  RankExecutorOptions made = options(words.at(1));
  if (what == "abort") made.result = RankResult::All;
  RankExecutor executor(made, registry());
  const auto number = [&](std::size_t at) { return std::atoi(words.at(at).c_str()); };
  if (what == "payload") {
    return payload(executor, static_cast<std::size_t>(number(2)), number(3));
  }
  if (what == "tiny") return tiny(executor, number(2));
  if (what == "task") {
    return whole_task(executor, static_cast<std::size_t>(number(2)), number(3));
  }
  if (what == "ready") return ready(executor);
  if (what == "abort") return abort(executor, number(2));
  if (what == "death") return death(executor, number(2), words.size() > 3);
  check(what == "finalize", "a figure");
  return finalize(executor);
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (const auto code = trainyard::run_as_rank(trainyard::registry())) return *code;
  fmt::print(
      "{}\n",
      nlohmann::json(trainyard::measure(std::vector<std::string>(argv + 1, argv + argc))).dump());
}
