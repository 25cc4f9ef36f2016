// Two machines of one run in one process: their routers send each other what would go over NATS.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/passing.h"
#include "trainyard/parallel.h"
#include "wire/frame.h"
#include "wire/worker.h"
#include "workers/datagram.h"
#include "workers/machine.h"
#include "workers/machine_words.h"
#include "workers/roll.h"
#include "workers/router.h"

namespace trainyard::workers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Messages that one machine has sent to the other one.
class Way final : public Bridge {
 public:
  void start(Listener /*listener*/) override {}
  void send(MachineId /*to*/, std::string_view message) override { sent.emplace_back(message); }
  void send_to_hub(std::string_view /*message*/) override {}
  [[nodiscard]] bool is_drained() const override { return sent.empty(); }
  [[nodiscard]] std::size_t message_bytes_max() const override { return 1'000'000; }
  [[nodiscard]] std::string name() const override { return "here"; }

  std::deque<std::string> sent;
};

/// A worker. It reads nothing by itself, and what its router does not read yet waits here.
class Client {
 public:
  sys::Descriptor open() {
    auto pair = sys::socket_pair().value();
    socket_ = std::move(pair.second);
    return std::move(pair.first);
  }
  void report(const wire::WorkerReport& report) {
    send({.kind = wire::FrameKind::Report, .fields = wire::to_fields(report)});
  }
  void send(const wire::Frame& frame) {
    unsent_ += wire::encode(frame, wire::kWorkerLimits).value();
  }
  [[nodiscard]] std::size_t unsent() const { return unsent_.size(); }
  /// Whether the router's socket took any of it.
  bool write() {
    if (unsent_.empty()) return false;
    const auto count = sys::send_with(socket_.get(), unsent_, {}, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count <= 0) return false;
    unsent_.erase(0, static_cast<std::size_t>(count));
    return true;
  }
  /// Frames in the next bytes, at most so many of these.
  std::vector<wire::Frame> read(std::size_t bytes_max) {
    std::string piece(bytes_max, '\0');
    std::vector<sys::Descriptor> descriptors;
    const auto count = sys::receive_with(socket_.get(), piece, descriptors, MSG_DONTWAIT);
    if (count > 0) {
      received_ += static_cast<std::size_t>(count);
      reader_.add(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
    }
    std::vector<wire::Frame> frames;
    while (auto frame = reader_.next().value()) frames.push_back(*std::move(frame));
    return frames;
  }
  /// Number of bytes that it has read.
  [[nodiscard]] std::size_t received() const { return received_; }

 private:
  sys::Descriptor socket_;
  std::string unsent_;
  std::size_t received_ = 0;
  wire::FrameReader reader_{wire::kWorkerLimits};
};

/// The names of events that a worker wants.
using Wants = std::map<int, std::set<std::string>>;

/// One of the two machines, as itself and as the other one has it.
struct Side {
  Side(sys::EventLoop& loop, const QueueLimits& queue, const Wants& own, const Wants& others,
       bool joins)
      : other(
            {.id = joins ? MachineId{1} : MachineId{2}, .host = "other", .nodes = nodes_of(others)},
            way,
            {.own = joins ? MachineId{2} : MachineId{1},
             .number = -1,
             .now = sys::EventLoop::now(),
             .repeat_end_after = kNever,
             .untaken = [this] { return router->untaken_of(-1); }}) {
    Router::Options options{.queue = queue};
    for (const auto& [node, wants] : own) options.nodes[node] = {};
    options.on_refused = [](int node, const std::string& why) {
      ADD_FAILURE() << "worker " << node << " is cut off: " << why;
    };
    options.note = [](const std::string& what) { ADD_FAILURE() << what; };
    options.elsewhere =
        std::make_unique<const Router::Options::Elsewhere>(Router::Options::Elsewhere{
            .joins = joins,
            .on_left = [](int, const std::string& why) { ADD_FAILURE() << why; },
            .on_failed = [](int, const std::string&) {}});
    router = std::make_unique<Router>(loop, std::move(options));
    router->admit(other);
    for (const auto& [node, wants] : own) admit(node, 1, wants);
  }
  void admit(int node, std::uint32_t life, const std::set<std::string>& wants) {
    Client& client = clients.insert_or_assign(node, Client()).first->second;
    router->admit(node, life, client.open());
    for (const char* const name : {"a", "b", "c", "d"}) {
      client.report(wire::TopicWord{.name = name, .type = "json"});
    }
    for (const std::string& name : wants) client.report(wire::WantWord{.name = name});
    client.report(wire::SettledWord{});
  }
  /// Takes the next message of the other machine, if there is one.
  bool take_from(Side& from) {
    if (from.way.sent.empty()) return false;
    const std::string message = std::move(from.way.sent.front());
    from.way.sent.pop_front();
    const Duration now = sys::EventLoop::now();
    const std::string_view fresh = other.take(read_datagram(message).value(), now);
    router->has_room(-1);
    if (!fresh.empty()) router->take(-1, fresh);
    other.tick(now, kNever);
    return true;
  }
  static std::vector<MachineNode> nodes_of(const Wants& workers) {
    std::vector<MachineNode> nodes;
    for (const auto& [node, wants] : workers) nodes.push_back({.node = node});
    return nodes;
  }

  static constexpr Duration kNever{3'600'000};
  Way way;
  std::unique_ptr<Router> router;
  Machine other;
  std::map<int, Client> clients;
};

struct TwoMachines {
  TwoMachines(const QueueLimits& queue, const Wants& first_wants, const Wants& second_wants)
      : first(loop, queue, first_wants, second_wants, false),
        second(loop, queue, second_wants, first_wants, true) {
    pump();
  }
  Client& client(int node) {
    Side& side = first.clients.contains(node) ? first : second;
    return side.clients.at(node);
  }
  /// An event of at least that size; the next one of this worker.
  void emit(int node, const std::string& name, std::size_t bytes = 1'000) {
    client(node).send({.kind = wire::FrameKind::Event,
                       .topic = wire::topic_of(name),
                       .origin = wire::origin_of(node, 1),
                       .sequence = ++emitted[node],
                       .fields = std::string(bytes, 'x')});
  }
  /// A little goes; false where nothing did.
  bool step(std::size_t messages_max) {
    bool moved = false;
    for (Side* const side : {&first, &second}) {
      for (auto& [node, each] : side->clients) moved = each.write() || moved;
    }
    loop.run_once(Duration(0));
    for (std::size_t i = 0; i < messages_max; ++i) {
      moved = first.take_from(second) || moved;
      moved = second.take_from(first) || moved;
    }
    return moved;
  }
  /// All goes that can without anybody reading.
  void pump() {
    constexpr int kIdle = 4;  // The loop hands on in a few turns what it has.
    for (int idle = 0; idle < kIdle; ++idle) {
      if (step(100)) idle = 0;
    }
  }
  /// The frames that a worker gets while it alone reads all.
  std::vector<wire::Frame> read_all(int node) {
    std::vector<wire::Frame> all;
    while (true) {
      pump();
      const std::size_t before = client(node).received();
      std::ranges::move(client(node).read(1'000'000), std::back_inserter(all));
      if (client(node).received() == before) return all;
    }
  }
  /// The numbers of the events that it gets then.
  std::vector<std::uint64_t> read_events(int node) {
    std::vector<std::uint64_t> numbers;
    for (const wire::Frame& frame : read_all(node)) {
      if (frame.kind == wire::FrameKind::Event) numbers.push_back(frame.sequence);
    }
    return numbers;
  }
  /// Emits until an event of that worker waits for room.
  void emit_until_it_waits(int node, const std::string& name) {
    Side& side = first.clients.contains(node) ? first : second;
    constexpr std::uint64_t kEventsMost = 20'000;
    while (side.router->open_waits().empty()) {
      ASSERT_LT(emitted[node], kEventsMost);
      emit(node, name);
      pump();
    }
  }

  sys::EventLoop loop;
  std::map<int, std::uint64_t> emitted;
  Side first;
  Side second;
};

std::vector<std::uint64_t> up_to(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t i = 0; i < count; ++i) numbers[i] = i + 1;
  return numbers;
}

TEST(RouterMachines, HoldUpOnlyThoseWhoSendToAWorkerThatReadsSlowly) {
  TwoMachines run({.events_max = 4}, {{0, {}}, {1, {}}}, {{2, {"a"}}, {3, {"b"}}});
  run.emit_until_it_waits(0, "a");
  ASSERT_THAT(run.first.router->open_waits(), SizeIs(1));
  EXPECT_THAT(run.first.router->open_waits()[0].second.whom, ElementsAre(2));
  for (int i = 0; i < 50; ++i) run.emit(1, "b");
  EXPECT_EQ(run.read_events(3), up_to(50));
  EXPECT_EQ(run.read_events(2), up_to(run.emitted[0]));
  EXPECT_THAT(run.first.router->open_waits(), IsEmpty());
}

TEST(RouterMachines, GiveAWorkerWhatAnEarlierLifeOfItRetained) {
  TwoMachines run({}, {{0, {}}}, {{1, {"a"}}, {2, {}}});
  run.client(1).send({.kind = wire::FrameKind::Event,
                      .flags = wire::kRetainedFlag,
                      .topic = wire::topic_of("a"),
                      .origin = wire::origin_of(1, 1),
                      .sequence = 1,
                      .fields = "1"});
  run.pump();
  run.client(1).report(wire::WantWord{.name = "a", .wanted = false});
  run.client(1).report(wire::WantWord{.name = "a"});
  EXPECT_THAT(run.read_events(1), IsEmpty()) << "the life that emitted it";
  run.second.router->has_ended(1, Presence::Awaited, "failed", "");
  run.second.admit(1, 2, {"a"});
  EXPECT_THAT(run.read_events(1), ElementsAre(1));
}

TEST(RouterMachines, LetWorkersOfBothSendToOneThatReadsSlowly) {
  TwoMachines run({.events_max = 4}, {{0, {}}}, {{1, {"a"}}, {2, {}}});
  run.emit_until_it_waits(0, "a");
  for (int i = 0; i < 3; ++i) run.emit(2, "a");
  run.pump();
  EXPECT_THAT(run.second.router->open_waits(), IsEmpty()) << "events of worker 0 are not counted";
  run.emit_until_it_waits(2, "a");
  EXPECT_EQ(run.read_events(1).size(), run.emitted[0] + run.emitted[2]);
}

TEST(RouterMachines, GoOnWhenTheWorkerThatReadSlowlyIsGoneAndCountAnewWhenItRejoins) {
  TwoMachines run({.events_max = 4}, {{0, {}}}, {{1, {"a"}}, {2, {"b"}}});
  for (const std::uint32_t life : {2U, 3U, 4U}) {
    SCOPED_TRACE(life);
    run.emit_until_it_waits(0, "a");
    run.second.router->has_ended(1, Presence::Awaited, "failed", "it was killed");
    run.pump();
    EXPECT_THAT(run.first.router->open_waits(), IsEmpty());
    run.second.admit(1, life, {"a"});
    run.pump();
    run.emit(0, "a");
    EXPECT_THAT(run.read_events(1), ElementsAre(run.emitted[0]));
  }
}

TEST(RouterMachines, SayWhatIsWrongWithAnAcknowledgementThatWasNotRequested) {
  sys::EventLoop loop;
  Way way;
  std::string why;
  Router::Options options{.nodes = {{0, {}}}};
  options.elsewhere = std::make_unique<const Router::Options::Elsewhere>(
      Router::Options::Elsewhere{.on_left = [&](int, const std::string& it) { why = it; }});
  Router router(loop, std::move(options));
  Machine other({.id = 2, .host = "host-b", .nodes = {{.node = 1}}}, way,
                {.own = 1, .number = -1, .untaken = [] { return std::size_t{0}; }});
  router.admit(other);
  router.take(-1, word_text({.kind = wire::FrameKind::Report,
                             .fields = to_fields(MachineWord(AckWord{.node = 1, .number = 1}))}));
  EXPECT_EQ(why,
            "host-b (worker 1) says what cannot be: an acknowledgement that was not requested");
}

// --- at random ---

struct Emission {
  int node = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const Emission&) const = default;
};

/// The events that workers received, and the losses that were reported to them.
struct Outcome {
  void take(int node, const std::vector<wire::Frame>& frames) {
    for (const wire::Frame& frame : frames) {
      if (frame.kind == wire::FrameKind::Event) {
        received[node].push_back({.node = wire::node_of(frame.origin), .sequence = frame.sequence});
      }
      if (frame.kind != wire::FrameKind::Order) continue;
      const wire::WorkerOrder order = wire::read_worker_order(frame.fields).value();
      const auto* const lost = std::get_if<wire::LostWord>(&order);
      if (lost == nullptr) continue;
      // A refusal is reported to who emitted it, and names who did not get it.
      missed[{lost->refused ? lost->node : node, lost->name}] += lost->count;
    }
  }
  std::map<int, std::vector<Emission>> received;
  /// By receiver and name of the event.
  std::map<std::pair<int, std::string>, std::uint64_t> missed;
};

class RouterMachinesWith : public testing::TestWithParam<WhenFull> {};
INSTANTIATE_TEST_SUITE_P(, RouterMachinesWith,
                         testing::Values(WhenFull::Block, WhenFull::DropOldest, WhenFull::Fail),
                         [](const auto& it) {
                           std::string name(to_text(it.param));
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

/// Four workers on each machine emit and read as it happens; a perfect router would bring each
/// event to all that want it, in the order of its worker.
TEST_P(RouterMachinesWith, BringEachEventToAllThatWantItOrReportIt) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return random() % n; };
  static constexpr std::array<const char*, 4> kNames{"a", "b", "c", "d"};
  constexpr int kWorkers = 8;
  constexpr std::size_t kUnsentMax = 50'000;

  const QueueLimits queue{
      .events_max = 1 + below(40), .bytes_max = 20'000 + below(200'000), .when_full = GetParam()};
  std::array<Wants, 2> wants;
  std::array<std::size_t, kWorkers> steps{};  // A worker reads in one of so many steps.
  for (int node = 0; node < kWorkers; ++node) {
    std::set<std::string>& own = wants.at(node < kWorkers / 2 ? 0 : 1)[node];
    for (const char* const name : kNames) {
      if (below(2) == 0) own.insert(name);
    }
    steps.at(static_cast<std::size_t>(node)) = 1 + below(60);
  }
  TwoMachines run(queue, wants[0], wants[1]);

  std::map<Emission, std::string> emitted;
  Outcome outcome;
  constexpr int kSteps = 4'000;
  for (int i = 0; i < kSteps; ++i) {
    const int node = static_cast<int>(below(kWorkers));
    if (run.client(node).unsent() < kUnsentMax) {
      const std::string name = kNames.at(below(kNames.size()));
      run.emit(node, name, below(50) == 0 ? 100'000 : below(3'000));
      emitted[{.node = node, .sequence = run.emitted[node]}] = name;
    }
    for (int reader = 0; reader < kWorkers; ++reader) {
      if (below(steps.at(static_cast<std::size_t>(reader))) != 0) continue;
      outcome.take(reader, run.client(reader).read(1 + below(30'000)));
    }
    run.step(below(3));
  }
  for (int idle = 0; idle < 2; ++idle) {
    for (int node = 0; node < kWorkers; ++node) {
      const std::vector<wire::Frame> rest = run.read_all(node);
      if (!rest.empty()) idle = 0;
      outcome.take(node, rest);
    }
  }

  for (int node = 0; node < kWorkers; ++node) {
    SCOPED_TRACE(node);
    EXPECT_EQ(run.client(node).unsent(), 0U);
    const std::set<std::string>& own = wants.at(node < kWorkers / 2 ? 0 : 1).at(node);
    std::map<std::string, std::uint64_t> expected;
    for (const auto& [emission, name] : emitted) {
      if (emission.node != node && own.contains(name)) ++expected[name];
    }
    std::map<std::string, std::uint64_t> accounted;
    std::map<int, std::uint64_t> last;
    for (const Emission& each : outcome.received[node]) {
      EXPECT_GT(each.sequence, last[each.node]) << "worker " << each.node;
      last[each.node] = each.sequence;
      ++accounted[emitted.at(each)];
    }
    for (const char* const name : kNames) {
      const std::uint64_t missed = outcome.missed[{node, name}];
      if (queue.when_full == WhenFull::Block) {
        EXPECT_EQ(missed, 0U);
      }
      if (missed > 0) accounted[name] += missed;
    }
    EXPECT_EQ(accounted, expected);
  }

  if (queue.when_full != WhenFull::Block) return;
  // Each machine may have a whole queue for a worker.
  for (const Side* const side : {&run.first, &run.second}) {
    const auto status = nlohmann::json::parse(side->router->status());
    for (const nlohmann::json& worker : status.at("workers")) {
      if (!worker.contains("queued_most")) continue;
      EXPECT_LE(worker.at("queued_most").get<std::size_t>(), 2 * queue.events_max);
    }
  }
}

}  // namespace
}  // namespace trainyard::workers
