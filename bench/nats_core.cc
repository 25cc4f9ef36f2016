// What events cost between workers of two machines that meet over NATS, beside what libnats alone
// costs between two processes.
//
// usage: nats_core URL trip BYTES COUNT    there and back
//        nats_core URL rate BYTES COUNT    one way, none lost
// Prints one JSON object of seconds, or of events a second.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nats/nats.h>
#include <nats/status.h>

#include "bench/measure.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"

namespace trainyard {
namespace {

using namespace std::chrono_literals;
using bench::Clock;
using bench::Found;
using bench::need;
using bench::seconds_since;

constexpr RemoteEvent<Buffer> kThere{"there"};
constexpr RemoteEvent<Buffer> kBack{"back"};

/// Two machines with a worker each, both here; the first asks, and the second answers. Nothing is
/// pinned to a core, neither here nor in the processes of libnats alone.
void on_two_machines(const std::string& url, const std::function<void(Worker&)>& work) {
  ParallelOptions options{.workers = 1, .attach_to = {url}, .run = fmt::format("b{}", ::getpid())};
  const pid_t other = ::fork();
  if (other == 0) {
    options.joins = true;
    options.node_ids = {1};
    const ParallelResult result = parallel(options, work);
    ::_exit(result ? 0 : 1);
  }
  options.workers_elsewhere = 1;
  const ParallelResult result = parallel(options, work);
  ::waitpid(other, nullptr, 0);
  if (!result) throw std::runtime_error(result.text());
}

double our_trip(const std::string& url, std::size_t bytes, std::size_t count) {
  const Found found;
  on_two_machines(url, [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 1) {
      const Subscription heard =
          bus.on(kThere, [&](const Buffer& it) { bus.emit(kBack, it, remote_only); });
      return need(worker.barrier("end", 600s));
    }
    std::vector<double> took;
    std::atomic<std::size_t> back = 0;
    const Subscription heard = bus.on(kBack, [&](const Buffer&) {
      ++back;
      back.notify_one();
    });
    need(worker.ready());
    const Buffer ball = bench::buffer_of(bytes);
    for (std::size_t i = 0; i < count; ++i) {
      const auto began = Clock::now();
      bus.emit(kThere, ball, remote_only);
      back.wait(i);
      took.push_back(seconds_since(began));
    }
    found[0] = bench::median(std::move(took));
    need(worker.barrier("end", 600s));
  });
  return found[0];
}

/// In seconds from the first to the last.
double our_rate(const std::string& url, std::size_t bytes, std::size_t count) {
  const Found found;
  on_two_machines(url, [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<std::size_t> heard = 0;
    Clock::time_point began;
    const Subscription on = bus.on(kThere, [&](const Buffer&) {
      if (heard++ == 0) began = Clock::now();
      if (heard == count) found[0] = seconds_since(began);
    });
    need(worker.ready());
    if (worker.node() == 0) {
      const Buffer ball = bench::buffer_of(bytes);
      for (std::size_t i = 0; i < count; ++i) bus.emit(kThere, ball, remote_only);
    }
    need(worker.barrier("end", 600s));
    if (worker.node() == 1) need(heard == count, fmt::format("{} events", count));
  });
  return found[0];
}

// --- libnats alone ---

void must(natsStatus status) {
  if (status != NATS_OK) throw std::runtime_error(natsStatus_GetText(status));
}

class Client {
 public:
  using Heard = std::function<void(Client&, const char*, int)>;
  Client(const std::string& url, const char* subject, Heard heard) : heard_(std::move(heard)) {
    natsOptions* options = nullptr;
    must(natsOptions_Create(&options));
    must(natsOptions_SetURL(options, url.c_str()));
    must(natsOptions_SetSendAsap(options, true));
    must(natsConnection_Connect(&connection_, options));
    natsOptions_Destroy(options);
    must(natsConnection_Subscribe(&subscription_, connection_, subject, take, this));
    must(natsSubscription_SetPendingLimits(subscription_, -1, -1));
    must(natsConnection_Flush(connection_));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    natsSubscription_Destroy(subscription_);
    natsConnection_Destroy(connection_);
  }
  void publish(const char* subject, const char* bytes, int count) {
    must(natsConnection_Publish(connection_, subject, bytes, count));
  }
  void flush() { must(natsConnection_Flush(connection_)); }

 private:
  static void take(natsConnection* /*by*/, natsSubscription* /*of*/, natsMsg* message, void* self) {
    auto* const client = static_cast<Client*>(self);
    client->heard_(*client, natsMsg_GetData(message), natsMsg_GetDataLength(message));
    natsMsg_Destroy(message);
  }
  Heard heard_;
  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
};

/// Runs `other` in a process of its own, which says with one byte that it listens, and ends when
/// told.
void beside(const std::function<void(int ready)>& other, const std::function<void()>& here) {
  std::array<int, 2> ready{};
  need(::pipe(ready.data()) == 0, "a pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    other(ready[1]);
    ::_exit(0);
  }
  char byte = 0;
  need(::read(ready[0], &byte, 1) == 1, "who listens");
  here();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

double bare_trip(const std::string& url, std::size_t bytes, std::size_t count) {
  double took_each = 0;
  beside(
      [&](int ready) {
        const Client client(url, "bench.there", [](Client& it, const char* ball, int length) {
          it.publish("bench.back", ball, length);
        });
        static_cast<void>(::write(ready, "x", 1));
        ::pause();
      },
      [&] {
        std::atomic<std::size_t> back = 0;
        Client client(url, "bench.back", [&](Client&, const char*, int) {
          ++back;
          back.notify_one();
        });
        const std::string ball(bytes, 'x');
        std::vector<double> took;
        for (std::size_t i = 0; i < count; ++i) {
          const auto began = Clock::now();
          client.publish("bench.there", ball.data(), static_cast<int>(ball.size()));
          back.wait(i);
          took.push_back(seconds_since(began));
        }
        took_each = bench::median(std::move(took));
      });
  return took_each;
}

double bare_rate(const std::string& url, std::size_t bytes, std::size_t count) {
  const Found found;
  beside(
      [&](int ready) {
        std::size_t heard = 0;
        Clock::time_point began;
        const Client client(url, "bench.there", [&](Client& it, const char*, int) {
          if (heard++ == 0) began = Clock::now();
          if (heard < count) return;
          found[0] = seconds_since(began);
          it.publish("bench.back", "", 0);
        });
        static_cast<void>(::write(ready, "x", 1));
        ::pause();
      },
      [&] {
        std::atomic<bool> done = false;
        Client client(url, "bench.back", [&](Client&, const char*, int) {
          done = true;
          done.notify_one();
        });
        const std::string ball(bytes, 'x');
        for (std::size_t i = 0; i < count; ++i) {
          client.publish("bench.there", ball.data(), static_cast<int>(bytes));
        }
        client.flush();
        done.wait(false);
      });
  return found[0];
}

int measure(const std::vector<std::string>& words) {
  const std::string what = words.size() == 5 ? words[2] : "";
  if (what == "trip" || what == "rate") {
    const std::size_t bytes = std::stoul(words[3]);
    const std::size_t count = std::stoul(words[4]);
    if (what == "trip") {
      const double bare = bare_trip(words[1], bytes, count);
      fmt::print(R"({{"ours": {}, "bare": {}}})"
                 "\n",
                 our_trip(words[1], bytes, count), bare);
      return 0;
    }
    const double bare = bare_rate(words[1], bytes, count);
    const double ours = our_rate(words[1], bytes, count);
    fmt::print(R"({{"ours": {}, "bare": {}}})"
               "\n",
               static_cast<double>(count) / ours, static_cast<double>(count) / bare);
    return 0;
  }
  fmt::print(stderr, "usage: nats_core URL trip|rate BYTES COUNT\n");
  return 2;
}

}  // namespace
}  // namespace trainyard

int main(int count, char** words) {
  return trainyard::bench::run("nats_core", trainyard::measure,
                               {words, static_cast<std::size_t>(count)});
}
