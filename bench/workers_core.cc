// What workers of a parallel run cost, beside the same by hand: a bare relay between two processes,
// or one raw Unix socket between them.
//
// usage: workers_core trip COUNT          64 B there and back: ours, by a bare relay, by a socket
//        workers_core rate BYTES COUNT    one way, of one to one, none lost: ours and by a socket
//        workers_core copies MIB COUNT    one buffer to 1 and to 8 receivers, and one memcpy of it
//        workers_core ready WORKERS       from nothing to workers that are all ready
//        workers_core barrier WORKERS COUNT
// Prints one JSON object of seconds, or of events and bytes a second.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "bench/measure.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"

namespace trainyard {
namespace {

using namespace std::chrono_literals;
using bench::buffer_of;
using bench::Clock;
using bench::Found;
using bench::median;
using bench::need;
using bench::pin;
using bench::seconds_since;

constexpr RemoteEvent<Buffer> kThere{"there"};
constexpr RemoteEvent<Buffer> kBack{"back"};
constexpr std::size_t kSmall = 64;

void run(int workers, const std::function<void(Worker&)>& work) {
  const ParallelResult result = parallel({.workers = workers}, work);
  if (!result) throw std::runtime_error(result.text());
}

double our_trip(std::size_t count) {
  const Found found;
  run(2, [&](Worker& worker) {
    pin(false);
    EventBus bus;
    worker.connect(bus);
    const Buffer ball = buffer_of(kSmall);
    if (worker.index() == 1) {
      const Subscription heard =
          bus.on(kThere, [&](const Buffer& it) { bus.emit(kBack, it, remote_only); });
      need(worker.barrier("end", 600s));
      return;
    }
    std::vector<double> took;
    std::atomic<std::size_t> back = 0;
    const Subscription heard = bus.on(kBack, [&](const Buffer&) {
      ++back;
      back.notify_one();
    });
    need(worker.ready());
    for (std::size_t i = 0; i < count; ++i) {
      const auto began = Clock::now();
      bus.emit(kThere, ball, remote_only);
      back.wait(i);
      took.push_back(seconds_since(began));
    }
    found[0] = median(std::move(took));
    need(worker.barrier("end", 600s));
  });
  return found[0];
}

bool move_on(int from, int to, std::array<char, 65'536>& bytes) {
  const ssize_t count = ::read(from, bytes.data(), bytes.size());
  if (count <= 0) return false;
  return ::write(to, bytes.data(), static_cast<std::size_t>(count)) == count;
}

/// What relays by hand: reads from one, writes to the other.
void relay(int one, int other) {
  pin(true);
  std::array<char, 65'536> bytes{};
  std::array<pollfd, 2> ends{
      {{.fd = one, .events = POLLIN, .revents = 0}, {.fd = other, .events = POLLIN, .revents = 0}}};
  while (::poll(ends.data(), ends.size(), -1) > 0) {
    if (ends[0].revents != 0 && !move_on(one, other, bytes)) return;
    if (ends[1].revents != 0 && !move_on(other, one, bytes)) return;
  }
}

pid_t fork_one(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

std::array<int, 2> pair_of_sockets() {
  std::array<int, 2> ends{};
  need(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "a pair of sockets");
  return ends;
}

/// Sends back all that comes.
void answer(int socket) {
  pin(false);
  std::array<char, 65'536> bytes{};
  while (move_on(socket, socket, bytes)) {
  }
}

/// The median of the trips.
double time_trips(int socket, std::size_t count) {
  pin(false);
  std::array<char, kSmall> ball{};
  std::vector<double> took;
  for (std::size_t i = 0; i < count; ++i) {
    const auto began = Clock::now();
    static_cast<void>(::write(socket, ball.data(), ball.size()));
    static_cast<void>(::read(socket, ball.data(), ball.size()));
    took.push_back(seconds_since(began));
  }
  return median(std::move(took));
}

double bare_trip(std::size_t count) {
  const Found found;
  const std::array<int, 2> left = pair_of_sockets();
  const std::array<int, 2> right = pair_of_sockets();
  const pid_t echo = fork_one([&] {
    for (const int fd : {left[0], left[1], right[0]}) ::close(fd);
    answer(right[1]);
  });
  const pid_t middle = fork_one([&] {
    for (const int fd : {left[1], right[1]}) ::close(fd);
    relay(left[0], right[0]);
  });
  const pid_t asks = fork_one([&] {
    for (const int fd : {left[0], right[0], right[1]}) ::close(fd);
    found[0] = time_trips(left[1], count);
  });
  for (const int fd : {left[0], left[1], right[0], right[1]}) ::close(fd);
  for (const pid_t child : {asks, middle, echo}) ::waitpid(child, nullptr, 0);
  return found[0];
}

double socket_trip(std::size_t count) {
  const Found found;
  const std::array<int, 2> ends = pair_of_sockets();
  const pid_t echo = fork_one([&] {
    ::close(ends[0]);
    answer(ends[1]);
  });
  const pid_t asks = fork_one([&] {
    ::close(ends[1]);
    found[0] = time_trips(ends[0], count);
  });
  for (const int fd : ends) ::close(fd);
  for (const pid_t child : {asks, echo}) ::waitpid(child, nullptr, 0);
  return found[0];
}

void trip(std::size_t count) {
  // The parent relays: it is pinned as the relay by hand is, and its forks pin themselves.
  const double bare = bare_trip(count);
  const double socket = socket_trip(count);
  pin(true);
  fmt::print(R"({{"ours": {}, "bare": {}, "socket": {}}})"
             "\n",
             our_trip(count), bare, socket);
}

/// In seconds from the first to the last, each with a write of its own.
double socket_rate(std::size_t bytes, std::size_t count) {
  const std::array<int, 2> ends = pair_of_sockets();
  const pid_t writer = fork_one([&] {
    ::close(ends[0]);
    const std::vector<char> ball(bytes);
    for (std::size_t i = 0; i < count; ++i) {
      if (::write(ends[1], ball.data(), bytes) != static_cast<ssize_t>(bytes)) return;
    }
  });
  ::close(ends[1]);
  std::array<char, 65'536> read{};
  std::size_t left = bytes * count;
  Clock::time_point began;
  while (left > 0) {
    const ssize_t got = ::read(ends[0], read.data(), read.size());
    need(got > 0, "all bytes");
    if (left == bytes * count) began = Clock::now();
    left -= static_cast<std::size_t>(got);
  }
  const double took = seconds_since(began);
  ::close(ends[0]);
  ::waitpid(writer, nullptr, 0);
  return took;
}

void rate(std::size_t bytes, std::size_t count) {
  const double socket = socket_rate(bytes, count);
  const Found found;
  run(2, [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<std::size_t> heard = 0;
    Clock::time_point began;
    const Subscription on = bus.on(kThere, [&](const Buffer&) {
      if (heard++ == 0) began = Clock::now();
      if (heard == count) found[0] = seconds_since(began);
    });
    need(worker.ready());
    if (worker.index() == 0) {
      const Buffer ball = buffer_of(bytes);
      for (std::size_t i = 0; i < count; ++i) bus.emit(kThere, ball, remote_only);
    }
    need(worker.barrier("end", 600s));
    if (worker.index() == 1)
      need(heard == count, fmt::format("{} events, not {}", count, heard.load()));
  });
  const auto events = static_cast<double>(count);
  fmt::print(R"({{"events": {}, "bytes": {}, "socket_events": {}, "socket_bytes": {}}})"
             "\n",
             events / found[0], events * static_cast<double>(bytes) / found[0], events / socket,
             events * static_cast<double>(bytes) / socket);
}

double time_to_all(int receivers, std::size_t bytes, std::size_t count) {
  const Found found;
  run(receivers + 1, [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::size_t heard = 0;
    const Subscription on = bus.on(kThere, [&](const Buffer& it) {
      need(it.bytes().size() == bytes, "all of it");
      ++heard;
    });
    need(worker.ready());
    std::vector<double> took;
    Buffer source = buffer_of(bytes);
    std::memset(source.writable().data(), 1, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      need(worker.barrier("begin", 600s));
      const auto began = Clock::now();
      if (worker.index() == 0) bus.emit(kThere, source, remote_only);
      need(worker.barrier("end", 600s));
      // The first one makes the pages.
      if (i > 0) took.push_back(seconds_since(began));
    }
    if (worker.index() == 0) found[0] = median(std::move(took));
    if (worker.index() > 0) need(heard == count, "all buffers");
  });
  return found[0];
}

void copies(std::size_t mib, std::size_t count) {
  const std::size_t bytes = mib << 20U;
  std::vector<double> took;
  const Buffer from = buffer_of(bytes);
  Buffer to = buffer_of(bytes);
  for (std::size_t i = 0; i <= count; ++i) {
    const auto began = Clock::now();
    std::memcpy(to.writable().data(), from.bytes().data(), bytes);
    if (i > 0) took.push_back(seconds_since(began));
  }
  fmt::print(R"({{"one": {}, "eight": {}, "memcpy": {}}})"
             "\n",
             time_to_all(1, bytes, count), time_to_all(8, bytes, count), median(std::move(took)));
}

void ready(int workers) {
  const Found found;
  const auto began = Clock::now();
  run(workers, [&](Worker& worker) {
    need(worker.ready());
    found[static_cast<std::size_t>(worker.index())] = seconds_since(began);
  });
  double last = 0;
  for (int i = 0; i < workers; ++i) last = std::max(last, found[static_cast<std::size_t>(i)]);
  fmt::print(R"({{"ready": {}, "all": {}}})"
             "\n",
             last, seconds_since(began));
}

void barrier(int workers, std::size_t count) {
  const Found found;
  run(workers, [&](Worker& worker) {
    need(worker.barrier("begin"));
    std::vector<double> took;
    for (std::size_t i = 0; i < count; ++i) {
      const auto began = Clock::now();
      need(worker.barrier("b"));
      took.push_back(seconds_since(began));
    }
    if (worker.index() == 0) found[0] = median(std::move(took));
  });
  fmt::print(R"({{"barrier": {}}})"
             "\n",
             found[0]);
}

std::size_t number(const std::string& word) { return std::stoul(word); }

int measure(const std::vector<std::string>& words) {
  const std::string what = words.size() > 2 ? words[1] : "";
  if (what == "trip") {
    trip(number(words[2]));
  } else if (what == "rate" && words.size() == 4) {
    rate(number(words[2]), number(words[3]));
  } else if (what == "copies" && words.size() == 4) {
    copies(number(words[2]), number(words[3]));
  } else if (what == "ready") {
    ready(static_cast<int>(number(words[2])));
  } else if (what == "barrier" && words.size() == 4) {
    barrier(static_cast<int>(number(words[2])), number(words[3]));
  } else {
    fmt::print(stderr, "usage: workers_core trip|rate|copies|ready|barrier ...\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int count, char** words) {
  return trainyard::bench::run("workers_core", trainyard::measure,
                               {words, static_cast<std::size_t>(count)});
}
