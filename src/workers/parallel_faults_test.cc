// Runs in which something fails: workers, listeners, the parent.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/files.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"
#include "workers/test_workers.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr RemoteEvent<int> kFault{"fault"};
constexpr RemoteEvent<Buffer> kProcessNumbers{"process numbers"};

/// Returns only when the run ends.
void stay(const Worker& worker) {
  EventBus bus;
  worker.connect(bus);
  static_cast<void>(bus.wait_for("never", worker.ending()));
}

TEST(ParallelFaults, NamesAWorkerThatWasKilledBeforeItWasThere) {
  const auto result =
      parallel(quiet(2),
               {"sh", "-c",
                R"(case "$TRAINYARD_WORKER" in *'"node":1'*) kill -9 $$;; esac; exec sleep 1000)"});
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_THAT(result.failures[0].what, HasSubstr("was killed by signal 9"));
  EXPECT_EQ(result.failures[0].signal, SIGKILL);
}

TEST(ParallelFaults, EndsThePipelinesOfAllWhenAWorkerIsKilledInAStep) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop);
    loop.use("step", [&](Train& it) {
      if (worker.node() == 1 && ++it.count == 10) std::raise(SIGKILL);
    });
    const RunResult ended = loop.run();
    need(ended.outcome == Outcome::Failed,
         "a failure, and not " + std::string(to_text(ended.outcome)));
    need(ended.errors.size() == 1 && ended.errors[0].message == ended.why, "that error alone");
    need(ended.why.starts_with("worker 1 failed: "), "why, and not " + ended.why);
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_THAT(result.failures[0].what, HasSubstr("was killed by signal 9"));
}

TEST(ParallelFaults, NamesWithWhatAPipelineFailedOfAWorkerThatIsKilledAfterThat) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop);
    loop.use("step", [&](Train&) {
      if (worker.node() == 1) throw std::runtime_error("no more data");
    });
    const RunResult ended = loop.run();
    if (worker.node() == 1) std::raise(SIGKILL);
    need(ended.why.find("no more data") != std::string::npos, "what it failed with");
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_THAT(result.failures[0].what,
              testing::AllOf(testing::StartsWith("step 'step': "),
                             HasSubstr("no more data (the process was killed by signal 9")));
}

/// Those that have come to the only barrier at which somebody waits.
std::vector<int> arrived_at_barrier(const Worker& worker) {
  const Json status = Json::parse(worker.status().value());
  const Json& barriers = status.at("barriers");
  return barriers.empty() ? std::vector<int>() : barriers[0].at("arrived").get<std::vector<int>>();
}

TEST(ParallelFaults, EndsABarrierAtWhichAWorkerIsKilledAndNamesIt) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(3), [&](Worker& worker) {
    need(worker.ready());
    if (worker.node() == 0) {
      const auto both_wait = [&] { return arrived_at_barrier(worker) == std::vector<int>{1, 2}; };
      need(sys::eventually(both_wait), "both at the barrier");
      need(::kill(number_in(directory / "pid"), SIGKILL) == 0, "the end of one");
      return stay(worker);
    }
    if (worker.node() == 1) std::ofstream(directory / "pid") << ::getpid() << std::flush;
    const auto met = worker.barrier("met");
    std::ofstream(directory / "error") << (met ? "met" : met.error().message) << std::flush;
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_EQ(result.failures[0].what, "was killed by signal 9");
  EXPECT_EQ(result.failures[0].signal, SIGKILL);
  EXPECT_EQ(sys::content_of(directory / "error"),
            "the run ends: worker 1 failed: was killed by signal 9");
}

/// It has come, is killed, and comes again: until then the others wait.
TEST(ParallelFaults, CountsAtABarrierNobodyWhoWasKilledThere) {
  const sys::TemporaryDirectory directory;
  ParallelOptions options = quiet(3);
  options.auto_recover = true;
  options.retry_delay = 1ms;
  const auto result = parallel(options, [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> lives = 0;
    const Subscription heard = bus.on(kFault, [&](int it) { lives = it; });
    if (worker.node() == 1) {
      bus.emit(kFault, worker.life(), remote_only);
      std::ofstream(directory / "pid") << ::getpid() << std::flush;
      return need(worker.barrier("met"));
    }
    if (worker.node() == 0) {
      need(worker.ready());
      const auto has_come = [&] {
        const std::vector<int> arrived = arrived_at_barrier(worker);
        return std::ranges::find(arrived, 1) != arrived.end();
      };
      need(sys::eventually(has_come), "it at the barrier");
      need(::kill(number_in(directory / "pid"), SIGKILL) == 0, "its end");
      need(sys::eventually([&] { return lives == 2; }), "its second life");
    }
    need(worker.barrier("met"));
    need(lives == 2, "what it said before the barrier in its second life");
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 1);
}

TEST(ParallelFaults, RelaysWholeEventsInOrderOfOneThatIsKilledWhileItSends) {
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.retry_delay = 1ms;
  const auto result = parallel(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 1) {
      const std::string filling(1'000, 'x');
      const int life = worker.life();
      for (int i = 0; life == 1 || i < 100; ++i) {
        bus.emit("n", Json{life, i, ::getpid(), filling}, remote_only);
      }
      return need(worker.barrier("end"));
    }
    std::array<int, 2> next{};
    std::atomic<bool> ordered = true;
    const Subscription heard = bus.on("n", [&](const Json& it) {
      int& expected = next.at(it.at(0).get<std::size_t>() - 1);
      if (it.at(1) != expected++ || it.at(3).get<std::string>().size() != 1'000) ordered = false;
      if (expected == 1'000) ::kill(it.at(2).get<int>(), SIGKILL);
    });
    need(worker.barrier("end"));
    need(ordered, "all events, up to the last one");
    need(next[0] >= 1'000 && next[1] == 100, "those of both lives");
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 1);
}

TEST(ParallelFaults, RelaysWholeSharedBuffersOfOneThatIsKilledWhileItSends) {
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.retry_delay = 1ms;
  const auto result = parallel(options, [](Worker& worker) {
    constexpr std::int64_t kShared = 100'000;
    constexpr int kCount = 50;
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 1) {
      const std::vector<double> values(kShared, ::getpid());
      for (int i = 0; worker.life() == 1 || i < kCount; ++i) {
        bus.emit(kProcessNumbers, Buffer::copy_of<double>({kShared}, values), remote_only);
      }
      return need(worker.barrier("end"));
    }
    std::vector<std::pair<double, int>> senders;  // Processes, and how many buffers came from each.
    std::atomic<bool> whole = true;
    const Subscription heard = bus.on(kProcessNumbers, [&](const Buffer& it) {
      const std::span<const double> values = it.as<double>();
      const double process = values.front();
      if (std::ranges::count(values, process) != kShared) whole = false;
      if (senders.empty() || senders.back().first != process) senders.emplace_back(process, 0);
      ++senders.back().second;
      if (senders.size() == 1 && senders.front().second == kCount) {
        ::kill(static_cast<pid_t>(process), SIGKILL);
      }
    });
    need(worker.barrier("end"));
    need(whole, "buffers of one sender");
    need(senders.size() == 2 && senders[0].second >= kCount && senders[1].second == kCount,
         "those of both lives");
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 1);
}

TEST(ParallelFaults, LeavesNoWorkersWhenTheParentIsKilled) {
  const sys::TemporaryDirectory directory;
  const sys::TemporaryDirectory remains;
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setenv("TMPDIR", remains.path().c_str(), 1);
    ::setenv("XDG_RUNTIME_DIR", remains.path().c_str(), 1);
    static_cast<void>(parallel(quiet(2), [&](Worker& worker) {
      std::ofstream(directory / std::to_string(worker.node())) << ::getpid() << '\n';
      need(worker.barrier("there"));
      std::ofstream(directory / ("met" + std::to_string(worker.node()))) << "1\n";
      stay(worker);
    }));
    std::_Exit(0);
  }
  ASSERT_TRUE(sys::eventually(
      [&] { return number_in(directory / "met0") == 1 && number_in(directory / "met1") == 1; }));
  EXPECT_EQ(::kill(parent, SIGKILL), 0);
  EXPECT_EQ(::waitpid(parent, nullptr, 0), parent);
  for (const char* const node : {"0", "1"}) {
    EXPECT_TRUE(sys::eventually([&] { return is_gone(number_in(directory / node)); })) << node;
  }
  EXPECT_TRUE(sys::eventually([&] { return std::filesystem::is_empty(remains.path()); }))
      << "nor of what they printed";
}

TEST(ParallelFaults, KeepsOtherRunsOutOfItsDirectoryUntilTheWorkersOfAKilledParentAreGone) {
  const sys::TemporaryDirectory directory;
  const sys::TemporaryDirectory remains;
  const std::string logs = directory / "logs";
  ParallelOptions options = quiet(2);
  options.directory = logs;
  options.stop_grace = 600s;
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setenv("TMPDIR", remains.path().c_str(), 1);
    ::setenv("XDG_RUNTIME_DIR", remains.path().c_str(), 1);
    static_cast<void>(parallel(options, [&](Worker& worker) {
      std::signal(SIGTERM, SIG_IGN);
      std::ofstream(directory / std::to_string(worker.node())) << ::getpid() << '\n';
      while (true) ::pause();
    }));
    std::_Exit(0);
  }
  const auto pid_of = [&](const char* node) { return number_in(directory / node); };
  ASSERT_TRUE(sys::eventually([&] { return pid_of("0") > 0 && pid_of("1") > 0; }));
  EXPECT_EQ(::kill(parent, SIGKILL), 0);
  EXPECT_EQ(::waitpid(parent, nullptr, 0), parent);
  EXPECT_THAT(parallel(options, [](Worker&) {}).error,
              HasSubstr("is in use by the children of process " + std::to_string(parent)));
  for (const char* const node : {"0", "1"}) EXPECT_EQ(::kill(pid_of(node), SIGKILL), 0);
  EXPECT_TRUE(
      sys::eventually([&] { return sys::RunLock::take(logs, ".workers.lock").has_value(); }));
}

TEST(ParallelFaults, GoesOnReadingWhenAListenerThrows) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    TellingBus telling;
    EventBus& bus = telling.bus;
    const std::vector<std::string>& told = telling.told;
    worker.connect(bus);
    std::vector<int> heard;
    const Subscription fails =
        bus.on(kFault, [](int it) { throw std::runtime_error("no " + std::to_string(it)); });
    const Subscription hears = bus.on(kFault, [&](int it) { heard.push_back(it); });
    if (worker.node() == 0) {
      bus.emit(kFault, 1, remote_only);
      bus.emit(kFault, 2, remote_only);
    }
    need(worker.barrier("sent"));
    const bool hearer = worker.node() == 1;
    need(heard == (hearer ? std::vector<int>{1, 2} : std::vector<int>{}), "both");
    need(told == (hearer ? std::vector<std::string>{"fault: no 1", "fault: no 2"}
                         : std::vector<std::string>{}),
         "both errors");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelFaults, TakesNamesOfEventsOfAnyCharactersUpTo256Bytes) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    TellingBus telling;
    EventBus& bus = telling.bus;
    const std::vector<std::string>& told = telling.told;
    worker.connect(bus);
    const std::vector<std::string> names = {" a name ",           "a::b",
                                            R"("quoted" \back\)", "größe/\xE2\x82\xAC",
                                            "new\nline\t\x01",    std::string("z\0ro", 4),
                                            std::string(256, 'x')};
    std::vector<std::string> heard;
    std::vector<Subscription> all;
    for (const std::string& name : names) {
      all.push_back(bus.on(name, [&heard](const Json& it) { heard.push_back(it); }));
    }
    if (worker.node() == 0) {
      for (const std::string& name : names) bus.emit(name, name, remote_only);
      bus.emit(std::string(257, 'x'), 1, remote_only);
      bus.emit("", 1, remote_only);
      bus.emit("\xFF\xFE", 1, remote_only);
      const std::string why =
          ": the name of an event that goes to others has 1 to 256 bytes of UTF-8";
      need(told == std::vector<std::string>{std::string(257, 'x') + why, why, "\xFF\xFE" + why},
           "three errors");
    }
    need(worker.barrier("sent"));
    if (worker.node() == 1) {
      need(heard == names, "all of them");
      // A listener of a name that cannot come stops nothing either.
      all.push_back(bus.on(std::string(257, 'x'), [](const Json&) {}));
    }
    need(worker.barrier("end"));
    need(told.size() == (worker.node() == 0 ? 3U : 1U), "an error for each of them");
  });
  EXPECT_TRUE(result) << result.text();
}

}  // namespace
}  // namespace trainyard::workers
