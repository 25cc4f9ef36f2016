#include "trainyard/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/test_directory.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"
#include "workers/test_workers.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;

struct Point {
  int x = 0;
  std::string text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Point, x, text)

constexpr RemoteEvent<Point> kPoint{"point"};
constexpr RemoteEvent<> kDone{"done"};
constexpr RemoteEvent<Buffer> kWeights{"weights"};
constexpr RemoteEvent<int> kNumber{"number"};

TEST(Parallel, RunsAsManyAsAreAskedForAndTheyKnowWhoTheyAre) {
  const sys::TemporaryDirectory directory;
  ParallelOptions options = quiet(3);
  options.node_ids = {7};
  options.roles = {{role::kLearner}, {role::kCollector}};
  options.labels = {"gpu"};
  const auto result = parallel(options, [&](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    std::ofstream file(directory.path() + "/" + std::to_string(worker.index()));
    file << worker.node() << ' ' << worker.count() << ' ' << worker.port();
    for (const std::string& label : loop.labels()) file << ' ' << label;
    file << ' ' << loop.has_role(role::kLearner) << loop.has_role(role::kCollector);
  });
  EXPECT_TRUE(result) << result.text();
  const auto text = [&](const char* name) {
    std::ifstream file(directory.path() + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(text("0"), "7 3 50515 distributed node.7 gpu 10");
  EXPECT_EQ(text("1"), "8 3 50516 distributed node.8 gpu 01");
  EXPECT_EQ(text("2"), "9 3 50517 distributed node.9 gpu 11");
}

TEST(Parallel, LetsAProcessBeNoSecondWorker) {
  const auto result = parallel(quiet(2), [](Worker&) {
    const auto again = Worker::from_environment();
    need(!again, "an error");
    const std::string why = "Worker::from_environment() was called already in this process";
    need(again.error().message.starts_with(why), why + ", and not " + again.error().message);
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, RunsOneAloneInThisProcess) {
  int here = 0;
  const auto result = parallel(quiet(1), [&](Worker& worker) {
    need(worker.is_alone(), "one alone");
    need(worker.ready());
    need(worker.barrier("b"));
    Pipeline<Train> loop(worker.pipeline());
    need(loop.match_labels({"standalone"}), "that label");
    worker.connect(loop);
    EXPECT_EQ(loop.events().emit(kNumber, 1, remote_only), 0U);
    here = ::getpid();
  });
  EXPECT_TRUE(result);
  EXPECT_EQ(here, ::getpid());
  const auto failed = parallel(quiet(1), [](Worker&) { throw std::runtime_error("boom"); });
  EXPECT_EQ(failed.text(), "worker 0 failed: std::runtime_error: boom");
  EXPECT_TRUE(result.started && failed.started);
}

/// Each worker sends to all, and has what all others have sent.
TEST(Parallel, CarriesTypedEventsBothWays) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> sum = 0;
    const Subscription heard = bus.on(kPoint, [&](const Point& it) {
      need(it.text == "p" + std::to_string(it.x), "the text of it");
      sum += it.x;
    });
    const int mine = 1 << worker.node();
    bus.emit(kPoint, {.x = mine, .text = "p" + std::to_string(mine)}, remote_only);
    need(worker.barrier("sent"));
    // Events that were sent before the barrier have come before it is passed.
    need(sum == 7 - mine, "the points of the others and not " + std::to_string(sum));
    need(worker.barrier("seen"));
    bus.emit(kPoint, {.x = 8, .text = "p8"}, remote);
    need(worker.barrier("again"));
    need(sum == 7 - mine + 24, "its own ones of the second round, too");
    bus.emit(kPoint, {.x = 64, .text = "p64"});
    need(worker.barrier("last"));
    need(sum == 7 - mine + 24 + 64, "what stays here");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, TellsEachListenerOnceHoweverManyWaitsHaveEndedBefore) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    for (int i = 0; i < 6; ++i) need(!bus.wait_for(kNumber, 1ms), "that nothing comes");
    std::atomic<int> first = 0;
    std::atomic<int> second = 0;
    const Subscription on_first = bus.on(kNumber, [&](int it) { first += it; });
    const Subscription on_second = bus.on(kNumber, [&](int it) { second += it; });
    need(worker.barrier("all listen"));
    if (worker.node() == 0) bus.emit(kNumber, 1, remote_only);
    need(worker.barrier("sent"));
    need(first == worker.node() && second == worker.node(),
         "each once, and not " + std::to_string(first) + " and " + std::to_string(second));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, TellsTheOtherListenersWhenOneIsTakenOff) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> first = 0;
    std::atomic<int> second = 0;
    Subscription on_first = bus.on(kNumber, [&](int it) { first += it; });
    const Subscription on_second = bus.on(kNumber, [&](int it) { second += it; });
    need(worker.barrier("all listen"));
    on_first.off();
    need(worker.barrier("one is off"));
    if (worker.node() == 0) bus.emit(kNumber, 1, remote_only);
    need(worker.barrier("sent"));
    need(first == 0 && second == worker.node(), "the second one alone");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, LosesNothingAndKeepsTheOrderOfEachWhoSends) {
  constexpr int kCount = 20'000;
  const auto result = parallel(quiet(3), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::array<int, 3> next{};
    std::atomic<int> count = 0;
    std::atomic<bool> ordered = true;
    const Subscription heard = bus.on("n", [&](const Json& it) {
      int& expected = next.at(it.at(0).get<std::size_t>());
      if (it.at(1).get<int>() != expected++) ordered = false;
      ++count;
    });
    // At once: what others do not listen to yet waits for them.
    for (int i = 0; i < kCount; ++i) bus.emit("n", Json{worker.node(), i}, remote_only);
    need(worker.barrier("sent"));
    need(count == 2 * kCount, "all events, and not " + std::to_string(count));
    need(ordered, "the order in which they were emitted");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, CarriesBuffersSmallAndLarge) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::vector<Buffer> got;
    const Subscription heard = bus.on(kWeights, [&](const Buffer& it) { got.push_back(it); });
    constexpr std::int64_t kLarge = 1'000'000;
    if (worker.node() == 0) {
      bus.emit(kWeights, Buffer::copy_of<float>({2, 2}, {1, 2, 3, 4}), remote_only);
      std::vector<double> values(kLarge, 0.5);
      bus.emit(kWeights, Buffer::copy_of<double>({kLarge}, std::span<const double>(values)),
               remote_only);
      Buffer filled = worker.alloc(DType::Int32, {kLarge}).value();
      std::ranges::fill(filled.fill<std::int32_t>(), 7);
      bus.emit(kWeights, filled, remote_only);
      bus.emit(kWeights, Buffer::copy_of<float>({0}, {}), remote_only);
    }
    need(worker.barrier("sent"));
    if (worker.node() == 0) return need(got.empty(), "nothing of its own");
    need(got.size() == 4, "four buffers");
    need(got[0].shape() == Dimensions{2, 2} && got[0].as<float>()[3] == 4, "the small one");
    need(got[1].as<double>().size() == kLarge && got[1].as<double>()[kLarge - 1] == 0.5,
         "the large one");
    need(got[2].as<std::int32_t>()[kLarge - 1] == 7, "the one that was filled in place");
    need(got[3].count() == 0, "the empty one");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, UsesItsMemoryForBuffersAgainAndAgain) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> good = 0;
    const Subscription heard = bus.on(kWeights, [&](const Buffer& it) {
      if (it.as<double>()[0] == it.as<double>()[99'999]) ++good;
    });
    if (worker.node() == 0) {
      std::vector<double> values(100'000);
      for (int i = 0; i < 500; ++i) {
        std::ranges::fill(values, i);
        bus.emit(kWeights, Buffer::copy_of<double>({100'000}, std::span<const double>(values)),
                 remote_only);
      }
    }
    need(worker.barrier("sent"));
    need(worker.node() == 0 || good == 500, "500 whole buffers, and not " + std::to_string(good));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, HoldsManyBuffersUntilAllListen) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    const Subscription on = bus.on(kWeights, [&](const Buffer&) { ++heard; });
    if (worker.node() == 0) {
      const std::vector<double> values(100'000, 1);
      for (int i = 0; i < 60; ++i) {
        bus.emit(kWeights, Buffer::copy_of<double>({100'000}, std::span<const double>(values)),
                 remote_only);
      }
      bus.emit("go", Json(), remote_only);
    }
    need(worker.barrier("sent"));
    need(heard == (worker.node() == 0 ? 0 : 60), "all buffers, and not " + std::to_string(heard));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, TellsByPatternsAndWithoutPayload) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::vector<std::string> names;
    const Subscription heard = bus.on("metrics.*", [&](std::string_view name, const Json& it) {
      names.push_back(std::string(name) + it.dump());
    });
    std::atomic<int> done = 0;
    const Subscription end = bus.on(kDone, [&] { ++done; });
    if (worker.node() == 0) {
      bus.emit("metrics.loss", Json(0.5), remote_only);
      bus.emit("metric", Json(1), remote_only);
      bus.emit("metrics.::\"*", Json("x"), remote_only);
      bus.emit(kDone, {}, remote_only);
    }
    need(worker.barrier("sent"));
    if (worker.node() == 1) {
      need(names == std::vector<std::string>{"metrics.loss0.5", "metrics.::\"*\"x\""},
           "both that match");
      need(done == 1, "one without payload");
    }
    bus.emit("metrics.here", Json(2));
    need(names.back() == "metrics.here2", "the ones of this process, too");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, DoesNotBeginToListenWhenItAsksForTheStatus) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    const auto presence = [&] {
      const Json status = Json::parse(worker.status().value());
      return status.at("workers").at(static_cast<std::size_t>(worker.node())).at("presence");
    };
    need(presence() == "joined" && presence() == "joined", "one that may add listeners");
    need(worker.ready());
    need(presence() == "settled", "one that listens");
    need(worker.barrier("end"));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, TellsNobodyWhatAnotherWorkerEmitsByAReservedName) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::vector<std::string> heard;
    const Subscription all =
        bus.on("*", [&](std::string_view name, const Json&) { heard.emplace_back(name); });
    need(worker.ready());
    if (worker.node() == 1) {
      for (const char* const name : {"trainyard.peer", "trainyard.events-lost", "trainyard.own"}) {
        bus.emit(name, Json{{"node", 0}}, remote_only);
      }
    }
    need(worker.barrier("sent"));
    need(worker.node() == 1 || heard == std::vector<std::string>{"trainyard.own"}, "no other");
    need(worker.barrier("heard"));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, GivesTheLastRetainedValueToWhoListensLater) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      bus.emit(kNumber, 1, retained);
      bus.emit(kNumber, 2, retained);
      bus.emit(kWeights, Buffer::copy_of<double>({100'000}, std::vector<double>(100'000, 3)),
               retained);
      bus.emit("gone", Json(3), remote);
    }
    need(worker.barrier("sent"));
    if (worker.node() == 1) {
      std::vector<int> got;
      double weight = 0;
      const Subscription heard = bus.on(kNumber, [&](int it) { got.push_back(it); });
      const Subscription large =
          bus.on(kWeights, [&](const Buffer& it) { weight = it.as<double>()[99'999]; });
      const Subscription gone = bus.on("gone", [&](const Json&) { got.push_back(3); });
      need(worker.ready());
      need(got == std::vector<int>{2}, "the last one alone");
      need(weight == 3, "the buffer");
      // And to each that comes after the first one.
      const Subscription second = bus.on(kNumber, [&](int it) { got.push_back(10 * it); });
      const Subscription pattern = bus.on(
          "num*", [&](std::string_view, const Json& it) { got.push_back(100 * it.get<int>()); });
      need(got == std::vector<int>{2, 20, 200}, "each once");
      weight = 0;
      const Subscription buffer =
          bus.on(kWeights, [&](const Buffer& it) { weight = it.as<double>()[0]; });
      need(weight == 3, "the buffer once more");
    } else {
      int got = 0;
      const Subscription heard = bus.on(kNumber, [&](int it) { got = it; });
      need(got == 2, "what this one has emitted itself");
    }
    need(worker.barrier("read"));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, HasTopologiesThatDifferInWhoHearsWhom) {
  for (const Topology topology : {Topology::Mesh, Topology::Star, Topology::Alone}) {
    ParallelOptions options = quiet(3);
    options.topology = topology;
    const auto result = parallel(options, [topology](Worker& worker) {
      EventBus bus;
      worker.connect(bus);
      std::atomic<int> heard = 0;
      const Subscription on = bus.on(kNumber, [&](int it) { heard += it; });
      bus.emit(kNumber, 1 << worker.node(), remote_only);
      need(worker.barrier("sent"));
      const bool hub = worker.node() == 0;
      int expected = 0;
      if (topology == Topology::Mesh || hub) expected = 7 - (1 << worker.node());
      if (topology == Topology::Star && !hub) expected = 1;
      if (topology == Topology::Alone) expected = 0;
      need(heard == expected, std::to_string(expected) + " at " + std::to_string(worker.node()) +
                                  " and not " + std::to_string(heard));
    });
    EXPECT_TRUE(result) << to_text(topology) << ": " << result.text();
  }
}

TEST(Parallel, NamesWhoIsMissing) {
  ParallelOptions options = quiet(3);
  options.roles = {{role::kLearner}, {role::kCollector}, {role::kCollector}};
  const auto result = parallel(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 2) {
      // The worker does not settle, and waits for the event.
      auto told = bus.expect("go");
      need(told.wait(60s).has_value(), "a word");
      return;
    }
    need(worker.ready());
    if (worker.node() == 1) {
      auto told = bus.wait_for("go", 60s);
      return need(told.has_value(), "a word");
    }
    const auto late = worker.barrier("epoch", 20ms);
    need(!late, "a deadline");
    need(late.error().message ==
             "barrier 'epoch' waits for worker 1 (collector), worker 2 (collector)",
         "names and not " + late.error().message);
    need(worker.barrier("mine", 60s, {role::kLearner}));
    bus.emit("go", Json(), remote_only);
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, DropsTheOldestWhereItIsToldToAndCountsThem) {
  ParallelOptions options = quiet(2);
  options.queue = {.events_max = 64, .bytes_max = 1U << 20U, .when_full = WhenFull::DropOldest};
  const auto result = parallel(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    constexpr int kCount = 50'000;
    if (worker.node() == 0) {
      need(worker.ready());
      for (int i = 0; i < kCount; ++i) bus.emit(kNumber, i, remote_only);
      return need(worker.barrier("read"));
    }
    std::atomic<int> heard = 0;
    std::atomic<int> last = -1;
    std::atomic<std::uint64_t> lost = 0;
    auto full = bus.expect(kEventsLost);
    const Subscription on_lost = bus.on(kEventsLost, [&](const EventsLost& it) {
      need(it.event == "number" && it.node == 1, "which and whose");
      lost += it.count;
    });
    const Subscription on = bus.on(kNumber, [&](int it) {
      // The first one is not let go before so many have come that some are dropped.
      if (it == 0) static_cast<void>(bus.wait_for("never", 300ms));
      need(it > last, "an order");
      last = it;
      ++heard;
    });
    need(worker.ready());
    need(worker.barrier("read"));
    need(full.wait(60s).has_value(), "a word of those that are lost");
    need(last == kCount - 1, "the last one");
    need(static_cast<std::uint64_t>(heard) + lost == kCount,
         "each one heard or counted: " + std::to_string(heard) + " + " + std::to_string(lost));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, RefusesWhereItIsToldTo) {
  ParallelOptions options = quiet(2);
  options.queue = {.events_max = 64, .bytes_max = 1U << 20U, .when_full = WhenFull::Fail};
  const auto result = parallel(options, [](Worker& worker) {
    std::atomic<int> refused = 0;
    EventBus bus([&](std::string_view, const std::exception_ptr&) { ++refused; });
    worker.connect(bus);
    if (worker.node() == 0) {
      need(worker.ready());
      for (int i = 0; i < 50'000; ++i) bus.emit(kNumber, i, remote_only);
      need(worker.barrier("read"));
      return need(refused > 0, "an error");
    }
    const Subscription on = bus.on(kNumber, [&](int it) {
      if (it == 0) static_cast<void>(bus.wait_for("never", 300ms));
    });
    need(worker.barrier("read"));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(Parallel, RunsPrograms) {
  const sys::TemporaryDirectory directory;
  ParallelOptions options = quiet(2);
  options.directory = directory.path() + "/logs";
  const auto result = parallel(options, {"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failures[0].what, "exited with code 3");
  EXPECT_EQ(result.failures[0].stderr_end, "out\nerr\n");
  EXPECT_TRUE(std::filesystem::exists(options.directory + "/worker-0.log"));
  EXPECT_TRUE(parallel(options, {"true"}));
  // Either of them may be the first.
  EXPECT_THAT(parallel(options, {"/no/such/program"}).text(),
              ContainsRegex("worker [01] failed: cannot run '/no/such/program': no such file or "
                            "directory"));
}

TEST(Parallel, SaysWhatCannotBe) {
  const auto wrong = [](const ParallelOptions& options) {
    return parallel(options, [](Worker&) {}).error;
  };
  EXPECT_EQ(wrong({.workers = 0}), "there can be 1 to 1024 workers, not 0");
  EXPECT_EQ(wrong({.workers = 3, .node_ids = {1, 2}}),
            "2 node ids are given, and there are 3 workers");
  EXPECT_EQ(wrong({.workers = 2, .node_ids = {4, 4}}), "two workers have the node id 4");
  EXPECT_EQ(wrong({.workers = 2, .ports = {1, 2, 3}}),
            "3 ports are given, and there are 2 workers");
}

TEST(Parallel, HasSixtyFourWorkersOnTwoCores) {
  const auto result = parallel(quiet(64), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    const Subscription on = bus.on(kNumber, [&](int) { ++heard; });
    bus.emit(kNumber, worker.node(), remote_only);
    need(worker.barrier("sent"));
    need(heard == 63, "all others");
  });
  EXPECT_TRUE(result) << result.text();
}

}  // namespace
}  // namespace trainyard::workers
