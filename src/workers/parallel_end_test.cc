#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/test_directory.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"
#include "wire/worker.h"
#include "workers/test_workers.h"
#include "workers/worker_state.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr RemoteEvent<Buffer> kMemory{"memory"};
constexpr RemoteEvent<int> kLife{"life"};

TEST(ParallelEnd, EndsAllWhenOneThrowsAndSaysWhatItPrinted) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    if (worker.node() == 1) {
      need(worker.ready());
      std::cerr << "last words\n" << std::flush;
      throw std::runtime_error("boom");
    }
    EventBus bus;
    worker.connect(bus);
    auto why = bus.wait_for("never", worker.ending());
    need(!why && why.error() == NoEvent::Stopped, "an end");
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_EQ(result.failures[0].what, "std::runtime_error: boom");
  EXPECT_THAT(result.failures[0].stderr_end, HasSubstr("last words"));
  EXPECT_THAT(result.text(), HasSubstr("worker 1 failed: std::runtime_error: boom"));
}

TEST(ParallelEnd, TellsWhatAnErrorWasThrownBecauseOf) {
  const auto fail = [] {
    try {
      throw std::out_of_range("row 7");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("no batch"));
    }
  };
  for (const int workers : {1, 2}) {
    const auto result = parallel(quiet(workers), [&](Worker& worker) {
      if (worker.node() == 0) fail();
      need(worker.ready());
      static_cast<void>(worker.barrier("never"));
    });
    ASSERT_EQ(result.failures.size(), 1U) << result.text();
    EXPECT_THAT(result.failures[0].what,
                EndsWith("std::runtime_error>: no batch\nbecause of std::out_of_range: row 7"));
  }
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop);
    loop.use("learn", [&](Train&) { fail(); });
    if (worker.node() == 0) {
      need(!loop.run(), "a failure");
      std::_Exit(EXIT_FAILURE);
    }
    static_cast<void>(worker.barrier("never"));
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_THAT(result.failures[0].what,
              AllOf(StartsWith("step 'learn': "),
                    EndsWith(": no batch\nbecause of std::out_of_range: row 7")));
}

TEST(ParallelEnd, TellsTheBeginningOfALongErrorAndOfALongReason) {
  const auto failed = parallel(quiet(2), [](Worker& worker) {
    need(worker.ready());
    if (worker.node() == 1) throw std::runtime_error("boom " + std::string(1'000'000, 'z'));
    static_cast<void>(worker.barrier("never"));
  });
  ASSERT_EQ(failed.failures.size(), 1U) << failed.text().substr(0, 1'000);
  EXPECT_THAT(failed.failures[0].what, StartsWith("std::runtime_error: boom zzz"));
  EXPECT_EQ(failed.failures[0].what.size(), wire::kFinishWhyBytesMax);
  const auto finished = parallel(quiet(2), [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop);
    loop.use("step", [&](Train&) {
      if (worker.node() == 1) loop.finish(std::string(1'000'000, 'z'));
    });
    const RunResult ended = loop.run();
    const std::string why = worker.node() == 1 ? "zzz" : "worker 1 has ended (finished): zzz";
    need(ended.why.starts_with(why), why + " and not " + ended.why.substr(0, 100));
  });
  EXPECT_TRUE(finished) << finished.text().substr(0, 1'000);
}

TEST(ParallelEnd, TellsHowAWorkerThatWasKilledEnded) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    if (worker.node() == 1) std::raise(SIGKILL);
    static_cast<void>(worker.ready(2, 60s, worker.ending()));
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_THAT(result.failures[0].what, HasSubstr("was killed by signal 9"));
}

TEST(ParallelEnd, CountsAWorkerAsFailedThatExitsWithZeroInAStep) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop);
    loop.use("step", [&](Train& it) {
      if (worker.node() == 1 && ++it.count == 10) std::_Exit(0);
    });
    const std::string why = "worker 1 failed: ended while its pipeline ran";
    const RunResult ended = loop.run();
    need(ended.why == why, why + ", and not " + ended.why);
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_EQ(result.failures[0].what, "ended while its pipeline ran");
}

TEST(ParallelEnd, CountsAWorkerAsFinishedThatExitsWithZeroBehindItsPipelines) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop, follow_nobody);
    loop.use("step", [](Train&) {});
    need(static_cast<bool>(loop.run({.max_steps = 3})), "a run");
    need(static_cast<bool>(loop.run({.max_steps = 3})), "another run");
    std::_Exit(0);
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelEnd, LetsAWorkerThatFailsBeginAgainAndRejoin) {
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.max_retries = 3;
  options.retry_delay = 1ms;
  const auto result = parallel(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    const Subscription on = bus.on(kLife, [&](int it) { heard = it; });
    if (worker.node() == 1 && worker.life() == 1) std::raise(SIGKILL);
    if (worker.node() == 1 && worker.life() == 2) throw std::runtime_error("once more");
    // The other one waits at the barrier, however often this one begins anew.
    need(worker.barrier("met"));
    bus.emit(kLife, 10 + worker.node(), remote_only);
    need(worker.barrier("told"));
    need(heard == 11 - worker.node(), "what the other one said in its last life");
    need(worker.node() == 0 || worker.life() == 3, "a third life");
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 2);
}

TEST(ParallelEnd, GivesUpAfterSoManyRetries) {
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.retry_delay = 1ms;
  for (const int retries : {0, 2}) {
    options.max_retries = retries;
    const auto result = parallel(options, [](Worker& worker) {
      if (worker.node() == 0) throw std::runtime_error("life " + std::to_string(worker.life()));
      static_cast<void>(worker.ready(2, 60s, worker.ending()));
    });
    ASSERT_EQ(result.failures.size(), 1U) << result.text();
    EXPECT_EQ(result.failures[0].what, "std::runtime_error: life " + std::to_string(retries + 1));
    EXPECT_EQ(result.retries, retries);
  }
}

TEST(ParallelEnd, DoublesTheDelayBeforeEachRetry) {
  std::vector<std::string> retries;
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.max_retries = 4;
  options.retry_delay = 1ms;
  options.note = [&](std::string_view what) {
    if (what.contains("restarts in")) retries.emplace_back(what);
  };
  const auto result = parallel(options, [](Worker& worker) {
    if (worker.node() == 0) throw std::runtime_error("boom");
    static_cast<void>(worker.ready(2, 60s, worker.ending()));
  });
  EXPECT_EQ(result.retries, 4);
  std::vector<std::string> doubled;
  for (const char* const delay : {"1", "2", "4", "8"}) {
    doubled.push_back("worker 0 failed, and restarts in " + std::string(delay) +
                      " ms: std::runtime_error: boom");
  }
  EXPECT_EQ(retries, doubled);
}

TEST(ParallelEnd, EndsPipelinesTogether) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    loop.use("count", [&](Train& it) {
      ++it.count;
      if (worker.node() == 1 && it.count == 10) loop.finish("enough");
    });
    if (worker.node() == 2) {
      loop.use("waits",
               [&](Train&) { static_cast<void>(loop.events().wait_for("never", loop.ending())); });
    }
    worker.connect(loop);
    const RunResult ended = loop.run();
    need(ended.outcome == Outcome::Finished, "an end that is told");
    // Whoever ended first: this one, or one that followed it.
    need(worker.node() != 1 ? ended.why.starts_with("worker ") : ended.why == "enough",
         "why and not " + ended.why);
  });
  EXPECT_TRUE(result) << result.text();
}

/// Runs two workers, the second of which fails when both have come. The pipeline of the first one,
/// to which `add_steps` adds, is to end with that reason.
void expect_an_end_by_a_failure(const std::function<void(Worker&, Pipeline<Train>&)>& add_steps) {
  const sys::TemporaryDirectory place;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    // Unlike ready(), it answers nobody before all have asked.
    need(worker.barrier("both"));
    if (worker.node() == 1) throw std::runtime_error("boom");
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop, follow_nobody);
    add_steps(worker, loop);
    std::ofstream(place / "why") << loop.run().why;
  });
  EXPECT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(sys::content_of(place / "why"), "worker 1 failed: std::runtime_error: boom");
}

TEST(ParallelEnd, EndsAPipelineThatBeginsToRunWhenAllAreToEnd) {
  expect_an_end_by_a_failure([](Worker& worker, Pipeline<Train>& loop) {
    static_cast<void>(loop.events().wait_for("never", worker.ending()));
    loop.use("step",
             [&](Train&) { static_cast<void>(loop.events().wait_for("never", loop.ending())); });
  });
}

TEST(ParallelEnd, LetsWhatWaitsForTheEndUseTheWorker) {
  expect_an_end_by_a_failure([](Worker& worker, Pipeline<Train>& loop) {
    loop.use("step", [&, other = std::make_shared<EventBus>()](Train&) {
      const std::stop_callback at_end(loop.ending(), [&] { worker.connect(*other); });
      static_cast<void>(loop.events().wait_for("never", loop.ending()));
    });
  });
}

TEST(ParallelEnd, FollowsWhomItIsTold) {
  ParallelOptions options = quiet(3);
  options.roles = {{role::kLearner}, {role::kCollector}, {role::kEvaluator}};
  const auto result = parallel(options, [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    loop.use("waits", [&](Train&) {
      if (worker.node() == 0) {
        // Until both others are there: they must not begin after this one's end.
        need(worker.ready());
        return loop.finish("learned");
      }
      static_cast<void>(loop.events().wait_for("never", loop.ending()));
    });
    if (worker.node() == 1) worker.connect(loop, follow_role(role::kLearner));
    if (worker.node() == 2) worker.connect(loop, follow_until_all);
    if (worker.node() == 0) worker.connect(loop, follow_nobody);
    const RunResult ended = loop.run();
    const std::string why = worker.node() == 0   ? "learned"
                            : worker.node() == 1 ? "worker 0 has ended (finished): learned"
                                                 : "worker 1 has ended (finished): ";
    need(ended.why.starts_with(why), why + " and not " + ended.why);
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelEnd, StopsWhenItIsTold) {
  std::stop_source stop;
  const sys::TemporaryDirectory directory;
  std::jthread stops([&] {
    while (!std::filesystem::exists(directory.path() + "/there")) std::this_thread::yield();
    stop.request_stop();
  });
  const auto result = parallel(
      quiet(2),
      [&](Worker& worker) {
        need(worker.ready());
        Pipeline<Train> loop(worker.pipeline());
        worker.connect(loop, follow_nobody);
        loop.use("waits", [&](Train&) {
          // The file of worker 0 is read below: the run is stopped after it has come to this step.
          if (worker.node() == 0) std::ofstream(directory.path() + "/there") << "x";
          static_cast<void>(loop.events().wait_for("never", loop.ending()));
        });
        const RunResult ended = loop.run();
        std::ofstream(directory / std::to_string(worker.node()))
            << to_text(ended.outcome) << ": " << ended.why << std::flush;
      },
      stop.get_token());
  EXPECT_TRUE(result) << result.text();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(sys::content_of(directory / "0"), "stopped: the run is stopped");
}

TEST(ParallelEnd, WaitsForTheThreadThatTellsAWorkerOfOthers) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    // The reading thread uses these, and may outlive this function.
    struct Telling {
      std::weak_ptr<WorkerState> state;
      std::atomic<bool> is_telling = false;
    };
    const auto shared = std::make_shared<Telling>();
    shared->state = WorkerState::of(worker).weak_from_this();
    static std::shared_ptr<const WorkerState::Watcher> watcher;
    watcher = std::make_shared<const WorkerState::Watcher>([shared](const PeerChange* change) {
      if (change == nullptr || change->what == PeerChange::What::Ready) return;
      shared->is_telling = true;
      // Until this thread would have the last share, or the worker waits for it.
      const auto until = std::chrono::steady_clock::now() + 200ms;
      while (shared->state.use_count() > 1 && std::chrono::steady_clock::now() < until) {
        std::this_thread::yield();
      }
    });
    if (worker.node() == 0) WorkerState::of(worker).watch_senders(watcher);
    need(worker.ready());
    if (worker.node() == 1) return;
    while (!shared->is_telling) std::this_thread::yield();
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelEnd, TellsAWorkerThatCrashesWhileAllEndAsFailed) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(3), [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<bool> has_ended = false;
    const Subscription changes = bus.on(kPeerChange, [&](const PeerChange& it) {
      if (it.node != 2 || it.what == PeerChange::What::Ready) return;
      std::ofstream(directory / "change")
          << (it.what == PeerChange::What::Failed ? "failed: " : "another end: ") << it.why
          << std::flush;
      has_ended = true;
    });
    // The others may hear that the run ends before they hear that all are ready.
    const bool are_all_ready = worker.ready().has_value();
    if (worker.node() == 0) {
      need(are_all_ready, "all others");
      throw std::runtime_error("boom");
    }
    while (!worker.ending().stop_requested()) std::this_thread::yield();
    if (worker.node() == 2) std::_Exit(7);
    while (!has_ended) std::this_thread::yield();
  });
  EXPECT_FALSE(result);
  std::string change;
  std::ifstream file(directory / "change");
  std::getline(file, change);
  EXPECT_EQ(change, "failed: exited with code 7");
}

/// It ends before the other one listens: its events, and what lies in its memory, come first.
TEST(ParallelEnd, BringsWhatAWorkerHasSentThatHasEnded) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      const std::vector<double> values(100'000, 4);
      for (int i = 0; i < 40; ++i) {
        bus.emit(kMemory, Buffer::copy_of<double>({100'000}, std::span<const double>(values)),
                 remote_only);
      }
      return std::ofstream(directory.path() + "/" + std::to_string(::getpid())).close();
    }
    const auto has_ended = [&] {
      for (const auto& each : std::filesystem::directory_iterator(directory.path())) {
        const std::string process = "/proc/" + each.path().filename().string();
        if (!std::filesystem::exists(process)) return true;
      }
      return false;
    };
    while (!has_ended()) std::this_thread::yield();
    int heard = 0;
    const Subscription on =
        bus.on(kMemory, [&](const Buffer& it) { heard += it.as<double>()[99'999] == 4 ? 1 : 0; });
    auto gone = bus.expect(kPeerChange);
    need(gone.wait(60s).value().what == PeerChange::What::Finished, "its end");
    need(heard == 40, "all that it sent before that, and not " + std::to_string(heard));
  });
  EXPECT_TRUE(result) << result.text();
}

}  // namespace
}  // namespace trainyard::workers
