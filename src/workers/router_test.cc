#include "workers/router.h"

#include <variant>

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/passing.h"
#include "wire/parallel_record.h"
#include "workers/datagram.h"
#include "workers/machine.h"

namespace trainyard::workers {
namespace {

std::string frame_text(const wire::Frame& frame) {
  return wire::encode(frame, wire::kWorkerLimits).value();
}

/// An event of 1,000 bytes.
wire::Frame event_of(int node, std::uint64_t number) {
  return {.kind = wire::FrameKind::Event,
          .topic = wire::topic_of("n"),
          .origin = wire::origin_of(node, 1),
          .sequence = number,
          .fields = std::string(1'000, 'x')};
}

/// The other end of a worker's connection. Nothing is read before all() is called.
class Connection {
 public:
  explicit Connection(sys::EventLoop& loop) : loop_(loop) {}

  sys::Descriptor open() {
    auto pair = sys::socket_pair().value();
    socket_ = std::move(pair.second);
    return std::move(pair.first);
  }
  void close() { socket_ = {}; }
  /// The descriptors go with the first byte.
  void send(const wire::Frame& frame, std::vector<int> passed = {}) {
    send_bytes(frame_text(frame), std::move(passed));
  }
  void send_bytes(std::string_view rest, std::vector<int> passed) {
    while (!rest.empty()) {
      const ssize_t count =
          sys::send_with(socket_.get(), rest, passed, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count > 0) passed.clear();
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
    // Reading makes room for more, which the loop sends in a few turns.
    for (int idle = 0; idle < 5; ++idle) {
      loop_.run_once(Duration(0));
      const ssize_t count = sys::receive_with(socket_.get(), piece, descriptors, MSG_DONTWAIT);
      if (count <= 0) continue;
      idle = 0;
      reader_.add(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
      while (auto frame = reader_.next().value()) frames.push_back(*std::move(frame));
    }
    return frames;
  }

  std::vector<sys::Descriptor> descriptors;  ///< That have come.

 private:
  sys::EventLoop& loop_;
  sys::Descriptor socket_;
  wire::FrameReader reader_{wire::kWorkerLimits};
};

/// A router, and workers that all listen to the event "n".
struct RoutedRun {
  RoutedRun() = default;
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
  void emit(int node, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number <= to; ++number) {
      connections.at(node).send(event_of(node, number));
    }
  }

  sys::EventLoop loop;
  std::unique_ptr<Router> router;
  std::map<int, Connection> connections;
};

/// Nothing goes to another machine, and nothing comes of it.
class Silence final : public Bridge {
 public:
  void start(Listener /*listener*/) override {}
  void send(MachineId /*to*/, std::string_view /*message*/) override {}
  void send_to_hub(std::string_view /*message*/) override {}
  [[nodiscard]] bool is_drained() const override { return true; }
  [[nodiscard]] std::size_t message_bytes_max() const override { return 1'000'000; }
  [[nodiscard]] std::string name() const override { return "nowhere"; }
};

/// Worker 0 here, and three of another machine, to which nothing goes: what it says is taken as if
/// it had come. In a star worker 1 is here, too, and worker 0 in the middle.
struct RunOfTwoMachines : RoutedRun {
  explicit RunOfTwoMachines(const QueueLimits& queue, Topology topology = Topology::Mesh) {
    Router::Options options{.topology = topology, .queue = queue, .nodes = {{0, {}}}};
    if (topology == Topology::Star) options.nodes[1] = {};
    options.note = [this](const std::string& what) { notes.push_back(what); };
    options.elsewhere = std::make_unique<const Router::Options::Elsewhere>();
    start(std::move(options));
    other.set_up(false, Duration(0));
    router->admit(other);
    says(wire::WorkerOrder(wire::TopicWord{.name = "n", .type = "json"}));
    for (const int node : {2, 3, 4}) {
      says(wire::WorkerOrder(wire::PeerWord{.node = node, .change = "settled"}));
    }
    connections.at(0).all();
  }
  void says(const wire::WorkerOrder& order) {
    takes({.kind = wire::FrameKind::Order, .fields = wire::to_fields(order)});
  }
  void says(const NeedWord& need) {
    takes({.kind = wire::FrameKind::Report, .fields = to_fields(MachineWord(need))});
  }
  void takes(const wire::Frame& frame) { router->take(other.number(), frame_text(frame)); }

  std::vector<std::string> notes;
  Silence silence;
  Machine other{{.id = 2, .host = "host-b", .nodes = {{.node = 2}, {.node = 3}, {.node = 4}}},
                silence,
                {.own = 1, .number = -1, .untaken = [] { return std::size_t{0}; }}};
};

/// Events "n" that a worker has received of one other worker.
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
  std::map<int, std::uint64_t>
      refused;  ///< Refused events of its own, by the worker that did not get them.
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

/// Two arenas are named again and again behind a full socket.
TEST(Router, ReleasesTheMemoryOfDroppedEventsAndBringsThatOfTheOthers) {
  constexpr std::size_t kEach = 30;
  RoutedRun run(2, {.events_max = 21, .when_full = WhenFull::DropOldest});
  run.emit(0, 1, 600);
  Connection& sender = run.connections.at(0);
  const sys::Descriptor memory = std::move(sys::socket_pair().value().first);
  std::uint64_t number = 600;
  for (std::size_t i = 0; i < kEach; ++i) {
    for (const std::uint64_t arena : {std::uint64_t{1}, std::uint64_t{2}}) {
      wire::Frame frame = event_of(0, ++number);
      frame.shared = {{.arena = arena, .offset = 0, .bytes = 5}};
      sender.send(frame, i == 0 ? std::vector<int>{memory.get()} : std::vector<int>{});
    }
  }
  Connection& receiver = run.connections.at(1);
  std::set<std::uint64_t> aliases;
  std::size_t received = 0;
  for (const wire::Frame& frame : receiver.all()) {
    for (const wire::SharedBuffer& place : frame.shared) {
      aliases.insert(place.arena);
      ++received;
    }
  }
  EXPECT_GT(received, 0U);
  EXPECT_LT(received, 2 * kEach);
  EXPECT_EQ(receiver.descriptors.size(), aliases.size());
  std::map<std::uint64_t, std::size_t> released;
  for (const wire::Frame& frame : sender.all()) {
    if (frame.kind == wire::FrameKind::Release) ++released[frame.topic];
  }
  EXPECT_EQ(released[1] + released[2], (2 * kEach) - received);
}

/// The process has exited: whether its pipeline had ended is known before its events have gone.
TEST(Router, ReportsAnEndOfAPipelineThatIsBehindEventsWhichWaitForRoom) {
  std::vector<std::string> reported;
  Router::Options options{.queue = {.events_max = 4}, .nodes = {{0, {}}, {1, {}}}};
  options.on_begin = [&](int node) { reported.push_back("begin " + std::to_string(node)); };
  options.on_finish = [&](int node, const wire::FinishWord& it) {
    reported.push_back("finish " + std::to_string(node) + ": " + it.outcome);
  };
  RoutedRun run;
  run.start(std::move(options));
  run.connections.at(0).report(wire::BeginWord{});
  for (std::uint64_t number = 1; run.router->open_waits().empty(); ++number) {
    run.emit(0, number, number);
  }
  run.connections.at(0).report(wire::FinishWord{.outcome = "max steps"});
  EXPECT_EQ(reported, (std::vector<std::string>{"begin 0"}));
  run.router->catch_up(0);
  EXPECT_EQ(reported, (std::vector<std::string>{"begin 0", "finish 0: max steps"}));
}

TEST(Router, ReadsOnFromAWorkerThatWaitsForRoomOnceAllAreToEnd) {
  std::vector<std::string> reported;
  Router::Options options{.queue = {.events_max = 4}, .nodes = {{0, {}}, {1, {}}}};
  options.on_finish = [&](int node, const wire::FinishWord& it) {
    reported.push_back("finish " + std::to_string(node) + ": " + it.outcome);
  };
  RoutedRun run;
  run.start(std::move(options));
  std::uint64_t last = 0;
  while (run.router->open_waits().empty()) {
    ++last;
    run.emit(0, last, last);
  }
  run.emit(0, last + 1, last + 10);
  run.connections.at(0).report(wire::FinishWord{.outcome = "saved"});
  EXPECT_THAT(reported, testing::IsEmpty());
  run.router->end_all({.why = "worker 2 failed"});
  for (int turn = 0; turn < 10; ++turn) run.loop.run_once(Duration(0));
  EXPECT_EQ(reported, (std::vector<std::string>{"finish 0: saved"}));
  EXPECT_TRUE(run.router->open_waits().empty());
  const Received received(run.connections.at(1).all());
  EXPECT_TRUE(received.in_order);
  EXPECT_LT(received.events, last);
}

TEST(Router, ReadsOnAtTheEndFromAWorkerWhoseEventsWaitUntilAllHaveSettled) {
  std::vector<std::string> reported;
  Router::Options options{.queue = {.bytes_max = 5'000}, .nodes = {{0, {}}, {1, {}}}};
  options.on_finish = [&](int node, const wire::FinishWord& it) {
    reported.push_back("finish " + std::to_string(node) + ": " + it.outcome);
  };
  sys::EventLoop loop;
  Router router(loop, std::move(options));
  Connection early(loop);
  router.admit(0, 1, early.open());
  early.report(wire::TopicWord{.name = "n", .type = "json"});
  for (std::uint64_t number = 1; number <= 10; ++number) early.send(event_of(0, number));
  early.report(wire::FinishWord{.outcome = "saved"});
  EXPECT_THAT(reported, testing::IsEmpty());
  router.end_all({.why = "worker 1 failed"});
  for (int turn = 0; turn < 10; ++turn) loop.run_once(Duration(0));
  EXPECT_EQ(reported, (std::vector<std::string>{"finish 0: saved"}));
}

TEST(Router, DoesNotCountAWorkerAtABarrierThatHasGivenUp) {
  RoutedRun run(2, {});
  const auto comes = [&](int node, std::uint64_t sequence, std::optional<std::int64_t> asked_ms) {
    const wire::BarrierRequest request{.name = "b", .within_ms = 60'000, .asked_ms = asked_ms};
    run.connections.at(node).send({.kind = wire::FrameKind::Request,
                                   .sequence = sequence,
                                   .fields = wire::to_fields(wire::WorkerRequest(request))});
  };
  const auto replies = [&](int node) {
    std::vector<std::uint64_t> sequences;
    for (const wire::Frame& frame : run.connections.at(node).all()) {
      if (frame.kind == wire::FrameKind::Reply) sequences.push_back(frame.sequence);
    }
    return sequences;
  };
  using Sequences = std::vector<std::uint64_t>;
  // It came behind events that waited for room until now.
  comes(0, 1, (sys::EventLoop::now() - Duration(63'000)).count());
  comes(1, 1, std::nullopt);
  EXPECT_EQ(replies(1), Sequences());
  comes(0, 2, sys::EventLoop::now().count());
  EXPECT_EQ(replies(0), Sequences({2}));
  EXPECT_EQ(replies(1), Sequences({1}));
}

TEST(Router, KnowsWhoLeftABarrierUntilTheEndOfItsProcess) {
  RoutedRun run(3, {});
  const auto late = [&](int node) {
    const wire::BarrierRequest request{.name = "b", .within_ms = 0};
    Connection& connection = run.connections.at(node);
    connection.send({.kind = wire::FrameKind::Request,
                     .fields = wire::to_fields(wire::WorkerRequest(request))});
    std::string error;
    while (error.empty()) {
      for (const wire::Frame& frame : connection.all()) {
        if (frame.kind != wire::FrameKind::Reply) continue;
        error = wire::read_worker_reply(frame.fields).value().error;
      }
    }
    return error;
  };
  EXPECT_EQ(late(0), "barrier 'b' waits for worker 1, worker 2");
  run.connections.at(0).close();
  run.connections.at(1).all();
  EXPECT_EQ(late(2), "barrier 'b' waits for worker 1; worker 0 came before and gave up waiting");
  run.router->has_ended(0, Presence::Awaited, "failed", "");
  EXPECT_EQ(late(2), "barrier 'b' waits for worker 0, worker 1");
}

TEST(Router, CutsOffTheWorkerThatAnnouncesAnUnknownType) {
  std::vector<std::string> refused;
  Router::Options options{.nodes = {{0, {}}, {1, {}}}};
  options.on_refused = [&](int node, const std::string& why) {
    refused.push_back(std::to_string(node) + ": " + why);
  };
  RoutedRun run;
  run.start(std::move(options));
  run.connections.at(0).report(wire::TopicWord{.name = "e", .type = "weird"});
  run.connections.at(1).report(wire::TopicWord{.name = "e", .type = "json"});
  run.connections.at(1).all();
  EXPECT_EQ(
      refused,
      (std::vector<std::string>{"0: report: 'type' must be json, buffer or bundle, not 'weird'"}));
}

TEST(Router, GivesAWorkerWhatAnEarlierLifeOfItRetained) {
  RoutedRun run(2, {});
  Connection& connection = run.connections.at(0);
  const auto listens_again = [&] {
    connection.report(wire::WantWord{.name = "n", .wanted = false});
    connection.report(wire::WantWord{.name = "n"});
    return Received(connection.all()).events;
  };
  wire::Frame kept = event_of(0, 1);
  kept.flags = wire::kRetainedFlag;
  connection.send(kept);
  EXPECT_EQ(listens_again(), 0U) << "the life that emitted it";
  run.router->has_ended(0, Presence::Awaited, "failed", "");
  run.router->admit(0, 2, connection.open());
  EXPECT_EQ(listens_again(), 1U);
}

TEST(Router, NamesEachWorkerOfAMachineThatARefusedEventWasFor) {
  RunOfTwoMachines run({.events_max = 4, .when_full = WhenFull::Fail});
  run.says(NeedWord{.node = 2, .name = "n"});
  run.says(NeedWord{.node = 3, .name = "[n]"});
  run.says(NeedWord{.node = 3, .name = "n"});
  run.says(NeedWord{.node = 4, .name = "other"});
  const auto refused = [&](std::uint64_t from, std::uint64_t to) {
    run.emit(0, from, to);
    return Received(run.connections.at(0).all()).refused;
  };
  EXPECT_EQ(refused(1, 14), (std::map<int, std::uint64_t>{{2, 10}, {3, 10}}));
  run.says(NeedWord{.node = 2, .name = "n", .wanted = false});
  EXPECT_EQ(refused(15, 19), (std::map<int, std::uint64_t>{{3, 5}}));
  run.says(NeedWord{.node = 3, .name = "n", .wanted = false});
  EXPECT_EQ(refused(20, 24), (std::map<int, std::uint64_t>{{3, 5}})) << "by the pattern";
  run.says(NeedWord{.node = 3, .name = "[n]", .wanted = false});
  EXPECT_EQ(refused(25, 29), (std::map<int, std::uint64_t>{})) << "nobody there wants it";
}

/// The workers of a machine share one queue.
TEST(Router, NamesTheWorkersOfAnotherMachineThatAnEventWaitsFor) {
  RunOfTwoMachines run({.events_max = 4, .when_full = WhenFull::Block});
  run.says(NeedWord{.node = 2, .name = "n"});
  run.says(NeedWord{.node = 4, .name = "n"});
  run.emit(0, 1, 5);
  run.connections.at(0).all();
  const nlohmann::json workers = nlohmann::json::parse(run.router->status()).at("workers");
  EXPECT_EQ(workers.at(0).at("waits_for"), nlohmann::json::array({2, 4}));
  const std::vector<std::pair<int, Wait>> waits = run.router->open_waits();
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].first, 0);
  EXPECT_EQ(waits[0].second.kind, wire::WaitKind::Room);
  EXPECT_EQ(waits[0].second.whom, (std::vector<int>{2, 4}));
}

TEST(Router, CountsEventsThatAreTooLargeForAnotherMachineInOneReport) {
  RunOfTwoMachines run({});
  run.says(NeedWord{.node = 2, .name = "n"});
  std::string bytes;
  for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{2}}) {
    const std::uint64_t size = wire::kEventBuffersBytesMax + number;
    wire::Frame frame = event_of(0, number);
    frame.buffers = {wire::shapes_text({{.shared = true, .shape = {0}}})};
    frame.shared = {{.arena = 1, .offset = 0, .bytes = size}};
    bytes += frame_text(frame);
  }
  const sys::Descriptor memory = std::move(sys::socket_pair().value().first);
  run.connections.at(0).send_bytes(bytes, {memory.get()});
  std::vector<std::string> reports;
  for (const wire::Frame& frame : run.connections.at(0).all()) {
    if (frame.kind != wire::FrameKind::Order) continue;
    const wire::WorkerOrder order = wire::read_worker_order(frame.fields).value();
    const auto* const lost = std::get_if<wire::LostWord>(&order);
    if (lost != nullptr) reports.push_back(std::to_string(lost->count) + ": " + lost->why);
  }
  EXPECT_EQ(reports, (std::vector<std::string>{"2: its buffers have 67108866 bytes, and at most "
                                               "67108864 can go to another machine"}));
}

wire::Frame retained_event_too_large_for_another_machine() {
  constexpr std::int64_t kTooLarge = std::int64_t{65} << 20;
  wire::Frame frame = event_of(0, 1);
  frame.flags = wire::kRetainedFlag;
  frame.buffers = {wire::shapes_text({{.dtype = 1, .shared = true, .shape = {kTooLarge}}})};
  frame.shared = {{.arena = 1, .offset = 0, .bytes = kTooLarge}};
  return frame;
}

constexpr const char* kNotReached3 =
    "the retained event 'n' of worker 0 did not reach worker 3: its buffers have 68157440 bytes, "
    "and at most 67108864 can go to another machine";

/// Its worker may end before it reads its own report.
TEST(Router, NotesARetainedEventThatIsTooLargeForAnotherMachineOnce) {
  RunOfTwoMachines run({.events_max = 100});
  run.says(NeedWord{.node = 3, .name = "n"});
  wire::Frame frame = retained_event_too_large_for_another_machine();
  const sys::Descriptor memory = std::move(sys::socket_pair().value().first);
  run.connections.at(0).send(frame, {memory.get()});
  frame.sequence = 2;
  run.connections.at(0).send(frame);
  EXPECT_EQ(Received(run.connections.at(0).all()).refused, (std::map<int, std::uint64_t>{{3, 2}}));
  EXPECT_EQ(run.notes, std::vector<std::string>{kNotReached3});
}

TEST(Router, ReportsARetainedEventThatIsTooLargeForTheMachineThatWantsItLater) {
  RunOfTwoMachines run({.events_max = 100});
  const wire::Frame frame = retained_event_too_large_for_another_machine();
  const sys::Descriptor memory = std::move(sys::socket_pair().value().first);
  run.connections.at(0).send(frame, {memory.get()});
  EXPECT_EQ(Received(run.connections.at(0).all()).refused, (std::map<int, std::uint64_t>{}));
  run.says(NeedWord{.node = 3, .name = "n"});
  EXPECT_EQ(Received(run.connections.at(0).all()).refused, (std::map<int, std::uint64_t>{{3, 1}}));
  EXPECT_EQ(run.notes, std::vector<std::string>{kNotReached3});
}

TEST(Router, ReportsEventsDroppedOnAnotherMachineBeforeWhatComesAfterThem) {
  RunOfTwoMachines run({.when_full = WhenFull::DropOldest});
  run.takes(event_of(2, 1));
  run.says(wire::WorkerOrder(wire::LostWord{.name = "n", .node = 2, .count = 5}));
  run.takes(event_of(2, 7));
  const Received received(run.connections.at(0).all());
  EXPECT_EQ(received.events, 2U);
  EXPECT_EQ(received.dropped, 5U);
  EXPECT_TRUE(received.in_order);
}

TEST(Router, ReportsEventsDroppedOnAnotherMachineToTheWorkersThatHearIt) {
  RunOfTwoMachines run({.when_full = WhenFull::DropOldest}, Topology::Star);
  run.says(wire::WorkerOrder(wire::LostWord{.name = "n", .node = 2, .count = 5}));
  run.emit(0, 1, 1);
  EXPECT_EQ(Received(run.connections.at(0).all()).dropped, 5U);
  const Received beside(run.connections.at(1).all());
  EXPECT_EQ(beside.events, 1U) << "of worker 0";
  EXPECT_EQ(beside.dropped, 0U);
}

}  // namespace
}  // namespace trainyard::workers
