// What tasks in C++ cost: programs with the library as a user writes them, and beside them what
// they are made of, by hand.
//
// usage: tasks_core small COUNT          so many trivial tasks, from run() to its return
//        tasks_core fork COUNT MIB       one forked task after another with so much
//                                        resident memory, and fork + exit + wait by hand
//        tasks_core ping COUNT           an empty message and its answer over the yard's socket,
//                                        and as many bytes over a bare one, all on one CPU
//        tasks_core buffer MIB CHILDREN SENDS  so much memory filled and sent to so many, who touch
//                                        every page of it; the third and later sends, and memcpy
// Prints one JSON object of seconds: ours, and raw where there is one (each for one task or one
// round).
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "link/arena.h"
#include "link/control_socket.h"
#include "link/conversation.h"
#include "link/frame_server.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/pidfd.h"
#include "trainyard/trainyard.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Trivial : Task {
  explicit Trivial(int k) : Task({.id = std::to_string(k), .memory = 10_MB, .cpus = 0}) {}
  Json train(const Device&) override { return {{"ok", 1}}; }
};

/// The time of a run of so many trivial tasks.
double run_tasks(int count, int parallel_max, const std::string& name) {
  TaskGroup group(name, {}, {.parallel_max = parallel_max});
  for (int k = 0; k < count; ++k) group.add<Trivial>(k);
  Config config;
  check(config.set("utilization-limit.cpu", "100%").has_value(), "a setting");
  Yard yard(config, {.name = "bench", .directory = "yard"});
  const auto start = Clock::now();
  const Result<RunSummary> done = yard.run(group);
  const double seconds = seconds_since(start);
  check(done && done->finished == count, "tasks that finish");
  return seconds;
}

int small(int count) {
  fmt::print("{{\"ours\":{}}}\n", run_tasks(count, 0, "small"));
  return 0;
}

int forks(int count, int mebibytes) {
  const std::vector<char> resident(static_cast<std::size_t>(mebibytes) << 20U, 'x');
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    check(pid >= 0, "a fork");
    if (pid == 0) ::_exit(resident.back() == 'x' ? 0 : 1);
    ::waitpid(pid, nullptr, 0);
  }
  const double raw = seconds_since(start) / count;
  // What the run costs whatever the number of its tasks is not a task's.
  const double few = run_tasks(1, 1, "few");
  const double many = run_tasks(count + 1, 1, "many");
  fmt::print("{{\"ours\":{},\"raw\":{}}}\n", (many - few) / count, raw);
  return 0;
}

void stay_on_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  check(::sched_setaffinity(0, sizeof(one), &one) == 0, "one CPU");
}

/// Bytes there and back between two processes, as many as our frames have.
double raw_ping_pong(int count, std::size_t there, std::size_t back) {
  int ends[2] = {};  // NOLINT(*-c-arrays): what socketpair fills.
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  std::vector<char> bytes(std::max(there, back));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    for (;;) {
      if (::recv(ends[1], bytes.data(), there, MSG_WAITALL) <= 0) ::_exit(0);
      static_cast<void>(::send(ends[1], bytes.data(), back, MSG_NOSIGNAL));
    }
  }
  ::close(ends[1]);
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    static_cast<void>(::send(ends[0], bytes.data(), there, MSG_NOSIGNAL));
    static_cast<void>(::recv(ends[0], bytes.data(), back, MSG_WAITALL));
  }
  const double seconds = seconds_since(start) / count;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return seconds;
}

/// The child's side: asks and waits for the answer, over and over.
double ask_many(const std::string& path, int count) {
  link::Conversation yard(
      {.with = "the yard", .within = std::nullopt, .limits = wire::kControlLimits});
  check(yard.connect(path).has_value(), "a connection");
  check(yard.greet({.role = wire::Role::Control, .program = "bench"}).has_value(), "a welcome");
  const wire::Frame ping{.kind = wire::FrameKind::Request, .fields = {}};
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    check(yard.exchange(ping, wire::FrameKind::Reply).has_value(), "an answer");
  }
  return seconds_since(start) / count;
}

int ping(int count) {
  stay_on_one_cpu();
  void* const place =
      ::mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const seconds = new (place) double(0);
  sys::EventLoop loop;
  auto server = link::FrameServer::listen(
      loop, {.program = "bench", .parents = link::socket_parents(), .on_trouble = [](auto) {}});
  check(server.has_value(), "a socket");
  (*server)->open_door(
      wire::Role::Control,
      {.admit = [](auto, const auto&) { return Result<void>(); },
       .on_frame =
           [&server](link::ConnectionId from, const wire::Frame& frame) {
             (*server)->send(
                 from, {.kind = wire::FrameKind::Reply, .sequence = frame.sequence, .fields = {}});
           },
       .on_gone = [](auto) {}});
  const std::string path = (*server)->path();
  const pid_t child = ::fork();
  if (child == 0) {
    *seconds = ask_many(path, count);
    ::_exit(0);
  }
  const sys::Descriptor end = sys::open_pidfd(child);
  bool ended = false;
  loop.watch_readable(end.get(), [&ended] { ended = true; });
  while (!ended) loop.run_once(std::nullopt);
  loop.unwatch(end.get());
  ::waitpid(child, nullptr, 0);
  constexpr std::size_t kFrame = wire::kPrefixBytes;
  fmt::print("{{\"ours\":{},\"raw\":{}}}\n", *seconds, raw_ping_pong(count, kFrame, kFrame));
  return 0;
}

/// Takes buffers, touches every page, and releases them.
void read_many(const std::string& path, int count) {
  link::Conversation yard({.with = "the yard", .within = std::nullopt, .limits = {}});
  check(yard.connect(path).has_value(), "a connection");
  check(yard.greet({.role = wire::Role::Task, .program = "bench"}).has_value(), "a welcome");
  constexpr std::size_t kPage = 4096;
  for (int i = 0; i < count; ++i) {
    const auto frame = yard.hear(wire::FrameKind::Order);
    check(frame.has_value(), "a buffer");
    const std::span<const std::byte> bytes = yard.shared(*frame).value().front();
    int sum = 0;
    for (std::size_t at = 0; at < bytes.size(); at += kPage) sum += std::to_integer<int>(bytes[at]);
    check(sum == static_cast<int>(bytes.size() / kPage) * (i % 100), "what was sent");
    check(yard.release(*frame).has_value(), "a yard that is there");
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The yard's side: fills memory by one copy and hands it to all, over and over. The times of the
/// third and later ones.
std::vector<double> send_many(sys::EventLoop& loop, link::FrameServer& server,
                              link::ArenaPool& pool, std::vector<std::byte>& data, int children,
                              int count) {
  std::vector<link::ConnectionId> connected;
  server.use(pool);
  server.open_door(wire::Role::Task, {.takes = wire::FrameKind::Report,
                                      .limits = wire::FrameLimits{},
                                      .may_be_silent = true,
                                      .admit =
                                          [&connected](link::ConnectionId from, const auto&) {
                                            connected.push_back(from);
                                            return Result<void>();
                                          },
                                      .on_frame = [](auto, const auto&) {},
                                      .on_gone = [](auto) {}});
  while (std::ssize(connected) < children) loop.run_once(std::nullopt);
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    std::ranges::fill(data, static_cast<std::byte>(i % 100));
    const auto start = Clock::now();
    {
      const link::ArenaPool::Loan loan = pool.lend(data.size()).value();
      std::memcpy(loan.bytes().data(), data.data(), data.size());
      for (const link::ConnectionId each : connected) {
        server.send(each,
                    {.kind = wire::FrameKind::Order, .fields = {}, .shared = {loan.buffer()}});
      }
    }
    while (pool.in_use() > 0) loop.run_once(std::nullopt);
    if (i >= 2) seconds.push_back(seconds_since(start));
  }
  return seconds;
}

int buffer(int mebibytes, int children, int count) {
  sys::EventLoop loop;
  auto server = link::FrameServer::listen(
      loop, {.program = "bench", .parents = link::socket_parents(), .on_trouble = [](auto) {}});
  check(server.has_value(), "a socket");
  const std::string path = (*server)->path();
  std::vector<pid_t> started;
  for (int i = 0; i < children; ++i) {
    started.push_back(::fork());
    if (started.back() != 0) continue;
    read_many(path, count);
    ::_exit(0);
  }
  std::vector<std::byte> data(static_cast<std::size_t>(mebibytes) << 20U);
  link::ArenaPool pool({});
  const double ours = median(send_many(loop, **server, pool, data, children, count));
  for (const pid_t each : started) ::waitpid(each, nullptr, 0);
  std::vector<std::byte> copy(data.size(), std::byte{1});
  std::vector<double> copies;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    std::memcpy(copy.data(), data.data(), data.size());
    copies.push_back(seconds_since(start));
    check(copy.back() == data.back(), "a copy");
  }
  fmt::print("{{\"ours\":{},\"raw\":{}}}\n", ours, median(copies));
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t place) {
    return place < words.size() ? std::atoi(words[place].data()) : 0;
  };
  if (words.size() == 2 && words[0] == "small") return trainyard::small(number(1));
  if (words.size() == 3 && words[0] == "fork") return trainyard::forks(number(1), number(2));
  if (words.size() == 2 && words[0] == "ping") return trainyard::ping(number(1));
  if (words.size() == 4 && words[0] == "buffer") {
    return trainyard::buffer(number(1), number(2), number(3));
  }
  std::fputs(
      "usage: tasks_core small COUNT | fork COUNT MIB | ping COUNT | buffer MIB CHILDREN SENDS\n",
      stderr);
  return 2;
}
