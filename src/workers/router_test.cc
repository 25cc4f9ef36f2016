#include "workers/router.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <sys/socket.h>

#include <gtest/gtest.h>

#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/passing.h"
#include "trainyard/parallel.h"
#include "wire/frame.h"
#include "wire/worker.h"

namespace trainyard::workers {
namespace {

/// The other end of a worker's connection. Nothing is read before all() is called.
class Connection {
 public:
  explicit Connection(sys::EventLoop& loop) : loop_(loop) {}

  sys::Descriptor open() {
    auto pair = sys::socket_pair().value();
    socket_ = std::move(pair.second);
    return std::move(pair.first);
  }
  void send(const wire::Frame& frame) {
    const std::string bytes = wire::encode(frame, wire::kWorkerLimits).value();
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const ssize_t count =
          ::send(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
      loop_.run_once(Duration(0));
    }
  }
  void report(const wire::WorkerReport& report) {
    send({.kind = wire::FrameKind::Report, .fields = wire::to_fields(report)});
  }
  /// All frames up to now.
  std::vector<wire::Frame> all() {
    std::vector<wire::Frame> frames;
    std::string piece(1'000'000, '\0');
    // What is read makes room for more, which the loop sends in a few turns.
    for (int idle = 0; idle < 5; ++idle) {
      loop_.run_once(Duration(0));
      const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (count <= 0) continue;
      idle = 0;
      reader_.add(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
      while (auto frame = reader_.next().value()) frames.push_back(*std::move(frame));
    }
    return frames;
  }

 private:
  sys::EventLoop& loop_;
  sys::Descriptor socket_;
  wire::FrameReader reader_{wire::kWorkerLimits};
};

/// A router, and workers that all listen to the event "n".
struct RoutedRun {
  RoutedRun(int workers, const QueueLimits& queue) {
    Router::Options options{.queue = queue};
    for (int node = 0; node < workers; ++node) options.nodes[node] = {};
    options.on_refused = [](int node, const std::string& why) {
      ADD_FAILURE() << "worker " << node << " is cut off: " << why;
    };
    start(std::move(options));
  }
  void start(Router::Options options) {
    const auto nodes = options.nodes;
    router = std::make_unique<Router>(loop, std::move(options));
    for (const auto& [node, roles] : nodes) {
      Connection& connection = connections.emplace(node, loop).first->second;
      router->admit(node, 1, connection.open());
      connection.report(wire::TopicWord{.name = "n", .type = "json"});
      connection.report(wire::WantWord{.name = "n"});
      connection.report(wire::SettledWord{});
    }
    for (auto& [node, connection] : connections) connection.all();
  }
  /// Of 1,000 bytes.
  void emit(int node, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number <= to; ++number) {
      connections.at(node).send({.kind = wire::FrameKind::Event,
                                 .topic = wire::topic_of("n"),
                                 .origin = wire::origin_of(node, 1),
                                 .sequence = number,
                                 .fields = std::string(1'000, 'x')});
    }
  }

  sys::EventLoop loop;
  std::unique_ptr<Router> router;
  std::map<int, Connection> connections;
};

/// What a worker has received of the event "n" of one other worker.
struct Received {
  explicit Received(const std::vector<wire::Frame>& frames) {
    for (const wire::Frame& frame : frames) {
      if (frame.kind == wire::FrameKind::Event) {
        ++events;
        in_order = in_order && frame.sequence == next++;
      }
      if (frame.kind != wire::FrameKind::Order) continue;
      const wire::WorkerOrder order = wire::read_worker_order(frame.fields).value();
      const auto* const lost = std::get_if<wire::LostWord>(&order);
      if (lost == nullptr) continue;
      if (lost->refused) {
        refused[lost->node] += lost->count;
      } else {
        dropped += lost->count;
        next += lost->count;
      }
    }
  }

  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::uint64_t next = 1;
  /// Each gap in the numbers was reported before the event that comes after it.
  bool in_order = true;
  std::map<int, std::uint64_t> refused;  ///< Of its own events, by who did not get them.
};

/// The last word is in what is sent when the socket takes all that still waits.
TEST(Router, ReportsRefusedEventsToAWorkerWhoseQueueWasLong) {
  constexpr std::uint64_t kCount = 600;
  RoutedRun run(2, {.events_max = 10'000, .bytes_max = 100'000, .when_full = WhenFull::Fail});
  run.emit(1, 1, kCount);
  run.emit(0, 1, kCount);
  const Received first(run.connections.at(0).all());
  const Received second(run.connections.at(1).all());
  EXPECT_LT(second.events, kCount);
  EXPECT_EQ(first.refused, (std::map<int, std::uint64_t>{{1, kCount - second.events}}));
  EXPECT_EQ(second.refused, (std::map<int, std::uint64_t>{{0, kCount - first.events}}));
}

TEST(Router, ReportsDroppedEventsBeforeWhatComesAfterThem) {
  constexpr std::uint64_t kCount = 600;
  RoutedRun run(2, {.events_max = 100, .bytes_max = 100'000, .when_full = WhenFull::DropOldest});
  run.emit(0, 1, kCount);
  const Received received(run.connections.at(1).all());
  EXPECT_GT(received.dropped, 0U);
  EXPECT_EQ(received.events + received.dropped, kCount);
  EXPECT_EQ(received.next, kCount + 1);
  EXPECT_TRUE(received.in_order);
}

}  // namespace
}  // namespace trainyard::workers
