// The queues of a run: who is waited for, what is dropped, and what is kept for who comes later.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"
#include "workers/test_env.h"
#include "workers/test_workers.h"

namespace trainyard::workers {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr RemoteEvent<int> kCounted{"counted"};
constexpr RemoteEvent<Buffer> kLargeOne{"large"};
constexpr RemoteEvent<Buffer> kOtherOne{"other"};

/// Whoever reads slowly holds up who sends, and not who looks on.
TEST(ParallelQueues, WaitsForWhoReadsSlowlyAndLosesNothing) {
  const Gate gate;
  ParallelOptions options = quiet(3);
  options.queue = {.events_max = 64, .bytes_max = 64U << 10U, .when_full = WhenFull::Block};
  const auto result = parallel(options, [&](Worker& worker) {
    constexpr int kCount = 100'000;
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      need(worker.ready());
      for (int i = 0; i < kCount; ++i) bus.emit(kCounted, i, remote_only);
    }
    std::atomic<int> next = 0;
    std::atomic<bool> ordered = true;
    Subscription heard;
    if (worker.node() == 1) {
      heard = bus.on(kCounted, [&](int it) {
        if (it == 0) Gate::pass(gate.path());
        if (it != next++) ordered = false;
      });
    }
    if (worker.node() == 2) {
      need(worker.ready());
      const auto waits = [&] {
        const Json status = Json::parse(worker.status().value());
        return status.at("workers")[0].value("waits_for", Json()) == Json{1};
      };
      need(sys::eventually(waits), "that it is waited for");
      gate.open();
    }
    need(worker.barrier("sent"));
    if (worker.node() == 1) need(next == kCount && ordered, "all in order");
  });
  EXPECT_TRUE(result) << result.text();
}

// The answer to ready() may come behind the first event, whose listener never returns. Those to a
// barrier go before whatever comes after it.
TEST(ParallelQueues, HoldUpNoDeadlineWhereTwoListenersWaitForEachOther) {
  const Gate gate;
  const sys::TemporaryDirectory said;
  ParallelOptions options = quiet(3);
  options.queue = {.events_max = 4, .bytes_max = 16U << 10U, .when_full = WhenFull::Block};
  const auto result = parallel(options, [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 2) {
      need(worker.barrier("all listen"));
      const auto both_wait = [&] {
        const Json workers = Json::parse(worker.status().value()).at("workers");
        return workers[0].value("waits_for", Json()) == Json{1} &&
               workers[1].value("waits_for", Json()) == Json{0};
      };
      need(sys::eventually(both_wait), "that each waits for the other");
      gate.open();
      gate.open();
      return;
    }
    const Subscription heard = bus.on("ball", [&](const Json& ball) {
      while (true) bus.emit("ball", ball, remote_only);
    });
    need(worker.barrier("all listen"));
    bus.emit("ball", std::string(8'192, 'b'), remote_only);
    Gate::pass(gate.path());
    const auto late = worker.barrier("end", 1ms);
    const auto never = bus.wait_for("never", 1ms);
    std::ofstream(said / std::to_string(worker.node()))
        << (late ? "met" : late.error().message) << (never ? "came" : "");
    ::_exit(0);  // The listener never returns, and the bus would wait for it.
  });
  EXPECT_TRUE(result) << result.text();
  for (const char* const node : {"0", "1"}) {
    EXPECT_EQ(sys::content_of(said / node),
              "barrier 'end': no answer came within 0.001 s: a listener of remote events of this "
              "worker has not returned, or events that came before the answer are still being "
              "handled");
  }
}

/// Runs three workers. A listener of the first one emits more than its queue holds to the second
/// one, which reads nothing. `fail` is called on the first one's thread, and fails it when its
/// `until_it_waits` has returned.
WorkerFailure failure_beside_a_waiting_listener(
    const std::function<void(Pipeline<Train>& loop, const std::function<void()>& until_it_waits)>&
        fail) {
  const Gate reads;
  const Gate fails;
  ParallelOptions options = quiet(3);
  options.queue = {.events_max = 4, .bytes_max = 16U << 10U, .when_full = WhenFull::Block};
  const auto result = parallel(options, [&](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop, follow_nobody);
    int balls = 0;
    Subscription heard;
    if (worker.node() == 0) {
      heard = loop.events().on("start", [&](const Json& text) {
        for (int i = 0; i < 100; ++i) loop.events().emit("ball", text, remote_only);
      });
    }
    if (worker.node() == 1) {
      heard = loop.events().on("ball", [&](const Json&) {
        if (++balls == 1) Gate::pass(reads.path());
      });
    }
    if (worker.node() == 0) {
      return fail(loop, [&] {
        need(worker.barrier("all listen"));
        Gate::pass(fails.path());
      });
    }
    need(worker.barrier("all listen"));
    if (worker.node() == 2) {
      loop.events().emit("start", std::string(65'536, 'b'), remote_only);
      const auto waits = [&] {
        const Json workers = Json::parse(worker.status().value()).at("workers");
        return workers[0].value("waits_for", Json()) == Json{1};
      };
      need(sys::eventually(waits), "that the first one waits for the second one");
      fails.open();
    }
    static_cast<void>(loop.events().wait_for("never", worker.ending()));
    if (worker.node() == 2) reads.open();
  });
  if (result.failures.size() != 1) {
    ADD_FAILURE() << result.text();
    return {};
  }
  return result.failures[0];
}

TEST(ParallelQueues, LetAWorkerFailWhoseListenerWaitsForRoom) {
  const WorkerFailure failure =
      failure_beside_a_waiting_listener([](Pipeline<Train>& /*loop*/, const auto& until_it_waits) {
        until_it_waits();
        throw std::runtime_error("boom");
      });
  EXPECT_EQ(failure.node, 0);
  EXPECT_THAT(failure.stderr_end,
              HasSubstr("trainyard: worker 0 has failed: std::runtime_error: boom\n"
                        "  the run was not told: this worker fails, and the workers that it waits "
                        "for have read nothing for 2 s\n"));
}

TEST(ParallelQueues, LetAWorkerFailThatTakesOffAllListenersOneOfWhichWaitsForRoom) {
  struct TakesOffAll {
    EventBus& bus;
    ~TakesOffAll() { bus.off("*"); }
  };
  const WorkerFailure failure =
      failure_beside_a_waiting_listener([](Pipeline<Train>& loop, const auto& until_it_waits) {
        const TakesOffAll at_the_end{loop.events()};
        until_it_waits();
        throw std::runtime_error("boom");
      });
  EXPECT_EQ(failure.node, 0);
  EXPECT_THAT(failure.stderr_end,
              HasSubstr("trainyard: worker 0 has failed: std::runtime_error: boom\n"));
}

TEST(ParallelQueues, LetAPipelineFailWhoseListenerWaitsForRoom) {
  const WorkerFailure failure =
      failure_beside_a_waiting_listener([](Pipeline<Train>& loop, const auto& until_it_waits) {
        loop.use("fails", [&](Train&) {
          until_it_waits();
          throw std::runtime_error("boom");
        });
        throw std::runtime_error(loop.run({.max_steps = 1}).why);
      });
  EXPECT_EQ(failure.node, 0);
  EXPECT_THAT(failure.stderr_end, HasSubstr("trainyard: worker 0 has failed: std::runtime_error: "
                                            "step 'fails': std::runtime_error: boom\n"));
}

TEST(ParallelQueues, CarryWhatAWorkerSaidThatHasEndedBeforeOthersListen) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      for (int i = 0; i < 1'000; ++i) bus.emit(kCounted, i, remote_only);
      std::ofstream(directory / "pid") << ::getpid() << '\n';
      return;
    }
    int next = 0;
    std::atomic<bool> ordered = true;
    auto last = bus.expect("last");
    const Subscription heard = bus.on(kCounted, [&](int it) {
      if (it != next++) ordered = false;
      if (next == 1'000) bus.emit("last", Json(it));
    });
    need(sys::eventually([&] {
           const int pid = number_in(directory / "pid");
           return pid > 0 && is_gone(pid);
         }),
         "its end");
    need(last.wait(30s).has_value() && ordered, "all that it said, in order");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelQueues, CarryWhatAWorkerSaidThatHasEndedWhileItWaitedForRoom) {
  const Gate gate;
  const sys::TemporaryDirectory directory;
  ParallelOptions options = quiet(3);
  options.queue = {.events_max = 64, .bytes_max = 64U << 10U, .when_full = WhenFull::Block};
  const auto result = parallel(options, [&](Worker& worker) {
    const auto is_there = [&](const char* name) { return number_in(directory / name) > 0; };
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      need(worker.ready());
      const std::string filling(2'000, 'x');
      // One by one: its socket would hold all events before it learns that the receiver is full.
      for (int i = 0; !is_there("waits"); ++i) {
        bus.emit("n", Json{i, filling}, remote_only);
        ::poll(nullptr, 0, 1);
      }
      bus.emit("last", Json(), remote_only);
      std::ofstream(directory / "pid") << ::getpid() << '\n';
      return;
    }
    int next = 0;
    std::atomic<bool> ordered = true;
    auto last = bus.expect("last");
    Subscription heard;
    if (worker.node() == 1) {
      heard = bus.on("n", [&](const Json& it) {
        if (next == 0) Gate::pass(gate.path());
        if (it.at(0) != next++) ordered = false;
      });
    }
    need(worker.ready());
    if (worker.node() == 2) {
      need(sys::eventually([&] {
             const Json status = Json::parse(worker.status().value());
             return status.at("workers")[0].value("waits_for", Json()) == Json{1};
           }),
           "that it is waited for");
      std::ofstream(directory / "waits") << "1\n";
      need(
          sys::eventually([&] { return is_there("pid") && is_gone(number_in(directory / "pid")); }),
          "its end");
      gate.open();
    }
    need(last.wait(30s).has_value(), "all that it said");
    need(worker.node() == 2 || (ordered && next > 64), "all in order, and more than may wait");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelQueues, HoldManyLargeBuffersUntilAllListen) {
  const Gate gate;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    constexpr int kCount = 40;  // More than there may be arenas.
    constexpr std::int64_t kLarge = 50'000;
    if (worker.node() == 0) {
      const std::vector<float> values(kLarge, 1);
      for (int i = 0; i < kCount; ++i) {
        bus.emit(kLargeOne, Buffer::copy_of<float>({kLarge}, std::span<const float>(values)),
                 remote_only);
      }
      gate.open();
    }
    std::atomic<int> good = 0;
    const Subscription heard = bus.on(kLargeOne, [&](const Buffer& it) {
      if (it.as<float>()[kLarge - 1] == 1) ++good;
    });
    if (worker.node() == 1) Gate::pass(gate.path());
    need(worker.barrier("sent"));
    need(good == (worker.node() == 0 ? 0 : kCount), "all, and not " + std::to_string(good));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelQueues, GiveARetainedValueAgainToWhoListensAgain) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      bus.emit(kLargeOne, Buffer::copy_of<float>({20'000}, std::vector<float>(20'000, 3)),
               retained);
    }
    need(worker.barrier("sent"));
    int heard = 0;
    const auto take = [&](const Buffer& it) { heard += it.as<float>()[19'999] == 3; };
    for (int i = 0; worker.node() == 1 && i < 3; ++i) {
      const Subscription once = bus.on(kLargeOne, take);
      need(worker.ready());
    }
    need(worker.node() == 0 || heard == 3, "each time, and not " + std::to_string(heard));
    need(worker.barrier("read"));
  });
  EXPECT_TRUE(result) << result.text();
}

/// Memory that nobody writes to costs nothing.
TEST(ParallelQueues, BoundRetainedEventsWithTheirBuffersInSharedMemory) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      constexpr std::int64_t kMost = std::int64_t{12} << 30;  // Nobody writes into it.
      const auto emit = [&](const RemoteEvent<Buffer>& event, std::int64_t bytes) {
        bus.emit(event, worker.alloc(DType::UInt8, {bytes}).value(),
                 {.here = false, .retained = true});
      };
      for (int i = 0; i < 3; ++i) emit(kLargeOne, kMost);  // Each replaces the one before.
      need(worker.barrier("replaced"));
      std::ofstream(directory / "replaced") << 1;
      emit(kOtherOne, kMost);
    } else {
      need(worker.barrier("replaced"));
    }
    static_cast<void>(worker.barrier("refused"));
  });
  EXPECT_EQ(number_in(directory / "replaced"), 1);
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 0);
  EXPECT_EQ(result.failures[0].what,
            "it was cut off: event 'other': retained events would exceed 16 GiB in shared memory; "
            "retain fewer or smaller ones");
}

/// Its memory counts until another event of that name replaces it.
TEST(ParallelQueues, KeepARetainedBufferOfAWorkerThatHasEnded) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    constexpr std::int64_t kMost = std::int64_t{12} << 30;  // One byte of it is written.
    const auto emit = [&] {
      Buffer buffer = worker.alloc(DType::UInt8, {kMost}).value();
      buffer.fill<std::uint8_t>()[kMost - 1] = 7;
      bus.emit(kLargeOne, buffer, {.here = false, .retained = true});
    };
    if (worker.node() == 0) emit();
    need(worker.barrier("sent"));
    if (worker.node() == 0) return;
    const auto is_over = [&] {
      const Json status = Json::parse(worker.status().value());
      return status.at("workers")[0].at("presence") == "finished";
    };
    need(sys::eventually(is_over), "the end of the other one");
    int last = 0;
    const Subscription heard =
        bus.on(kLargeOne, [&](const Buffer& it) { last = it.as<std::uint8_t>()[kMost - 1]; });
    need(worker.ready());
    need(last == 7, "what the other one has retained");
    emit();
    need(worker.barrier("replaced"));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelQueues, KeepARetainedBufferOfAWorkerThatWasKilled) {
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.retry_delay = 1ms;
  const auto result = parallel(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    need(worker.ready());
    if (worker.node() == 0 && worker.life() == 1) {
      bus.emit(kLargeOne, Buffer::copy_of<float>({20'000}, std::vector<float>(20'000, 3)),
               retained);
      std::raise(SIGKILL);
    }
    need(worker.barrier("begun again"));
    float last = 0;
    const Subscription heard =
        bus.on(kLargeOne, [&](const Buffer& it) { last = it.as<float>()[19'999]; });
    need(worker.ready());
    need(last == 3, "what the first life of worker 0 has retained");
    need(worker.barrier("heard"));
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 1);
}

/// More than may travel in a frame.
constexpr std::int64_t kOfSharedMemoryAlone = std::int64_t{65} << 20;

TEST(ParallelQueues, WaitForSharedMemoryThatAReceiverStillHas) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    TellingBus telling;
    EventBus& bus = telling.bus;
    worker.connect(bus);
    std::vector<Buffer> kept;
    std::size_t last = 0;
    const Subscription small = bus.on(kOtherOne, [&](const Buffer& it) { kept.push_back(it); });
    const Subscription go = bus.on("go", [&](const Json&) { kept.clear(); });
    const Subscription large = bus.on(kLargeOne, [&](const Buffer& it) { last = it.count(); });
    if (worker.node() == 0) {
      for (int i = 0; i < 32; ++i) {
        bus.emit(kOtherOne, worker.alloc(DType::UInt8, {64 << 10}).value(), remote_only);
      }
      bus.emit("go", nullptr, remote_only);
      bus.emit(kLargeOne, Buffer(DType::UInt8, {kOfSharedMemoryAlone}), remote_only);
      need(telling.told.empty(), "room");
    }
    need(worker.barrier("sent"));
    need(worker.node() == 0 || last == kOfSharedMemoryAlone, "the last one");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelQueues, RefuseABufferWhereAllSharedMemoryIsRetained) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    TellingBus telling;
    EventBus& bus = telling.bus;
    worker.connect(bus);
    for (int i = 0; worker.node() == 0 && i < 32; ++i) {
      const std::string name = "retained." + std::to_string(i);
      bus.emit(RemoteEvent<Buffer>(name.c_str()), worker.alloc(DType::UInt8, {64 << 10}).value(),
               {.here = false, .retained = true});
    }
    if (worker.node() == 0) {
      bus.emit(kLargeOne, Buffer(DType::UInt8, {kOfSharedMemoryAlone}), remote_only);
      need(telling.told == std::vector<std::string>{"large: no room for a buffer of 68157440 "
                                                    "bytes: 32 arenas are in use"},
           "an error");
    }
    need(worker.barrier("end"));
  });
  EXPECT_TRUE(result) << result.text();
}

/// More than a queue holds waits until the last one listens, which comes to the barrier at once.
TEST(ParallelQueues, BringAllThatWasHeldBeforeABarrierIsPassed) {
  const sys::TemporaryDirectory directory;
  ParallelOptions options = quiet(4);
  options.queue.events_max = 64;
  const auto have_sent = [&](int node) {
    return std::filesystem::exists(directory / ("sent-" + std::to_string(node)));
  };
  const auto result = parallel(options, [&](Worker& worker) {
    constexpr int kEach = 2'000;
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    const Subscription on = bus.on(kCounted, [&](int) { ++heard; });
    if (worker.node() == 3) {
      need(sys::eventually([&] { return have_sent(0) && have_sent(1) && have_sent(2); }), "all");
    } else {
      for (int i = 0; i < kEach; ++i) bus.emit(kCounted, i, remote_only);
      std::ofstream(directory / ("sent-" + std::to_string(worker.node()))) << 'x';
    }
    need(worker.barrier("sent"));
    const int all = kEach * (worker.node() == 3 ? 3 : 2);
    need(heard == all, std::to_string(all) + " events, and not " + std::to_string(heard));
  });
  EXPECT_TRUE(result) << result.text();
}

/// More than answers may wait for one that does not read them.
TEST(ParallelQueues, BringAllThatWasRetainedToOneThatListensLater) {
  ParallelOptions options = quiet(2);
  options.queue.bytes_max = 1 << 20;
  const auto result = parallel(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    constexpr int kNames = 33;
    if (worker.node() == 1) {
      const std::string filling(1 << 16, 'x');  // More than twice what a queue holds.
      for (int i = 0; i < kNames; ++i) {
        bus.emit("retained." + std::to_string(i), filling, {.here = false, .retained = true});
      }
    }
    need(worker.barrier("sent"));
    std::atomic<int> heard = 0;
    const Subscription on = bus.on("retained.*", [&](std::string_view, const Json&) { ++heard; });
    need(worker.barrier("heard"));
    need(heard == (worker.node() == 0 ? kNames : 0),
         std::to_string(kNames) + " and not " + std::to_string(heard));
  });
  EXPECT_TRUE(result) << result.text();
}

}  // namespace
}  // namespace trainyard::workers
