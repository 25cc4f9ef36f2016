// The record of a run: who waited for whom, as it is left beside the logs.
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/event_bus.h"
#include "trainyard/exchange.h"
#include "trainyard/parallel.h"
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"
#include "wire/parallel_record.h"
#include "workers/test_workers.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

constexpr RemoteEvent<int> kGo{"go"};

struct Collected : Context {
  int env_step = 0;
  static constexpr auto kept = keep<&Collected::env_step>;
};

/// Clearly longer than what is not noted.
void let_some_time_pass() {
  const auto since = std::chrono::steady_clock::now();
  need(sys::eventually([=] { return std::chrono::steady_clock::now() - since > 20ms; }), "time");
}

struct Recorded {
  wire::ParallelRecord record;

  /// "event go [1]", for each that the worker waited for.
  [[nodiscard]] std::vector<std::string> waits_of(int node) const {
    std::vector<std::string> waits;
    for (const wire::WaitTotal& it : record.workers.at(static_cast<std::size_t>(node)).totals) {
      waits.push_back(fmt::format("{} {} {}", to_text(it.kind), it.name, it.whom));
    }
    return waits;
  }
};

Recorded recorded(ParallelOptions options, const std::function<void(Worker&)>& work,
                  bool well = true) {
  const sys::TemporaryDirectory place;
  options.directory = place.path();
  const auto result = parallel(options, work);
  EXPECT_EQ(static_cast<bool>(result), well) << result.text();
  const auto record = wire::read_parallel_record(sys::content_of(place / wire::kRecordName));
  EXPECT_TRUE(record) << record.error().message;
  return {.record = record.value_or(wire::ParallelRecord{})};
}

TEST(ParallelWaits, HaveARecordBeforeTheFirstWorkerBegins) {
  const sys::TemporaryDirectory place;
  ParallelOptions options = quiet(2);
  options.directory = place.path();
  const auto result = parallel(options, [&](Worker&) {
    const auto record = wire::read_parallel_record(sys::content_of(place / wire::kRecordName));
    need(record && record->workers.size() == 2 && !record->ended, "a record of both workers");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelWaits, AtABarrierAreForThoseWhoCameLast) {
  const Recorded run = recorded(quiet(3), [](Worker& worker) {
    need(worker.ready());
    if (worker.node() == 2) {
      const auto both_wait = [&] {
        const Json status = Json::parse(worker.status().value());
        return status.at("barriers") ==
               Json::parse(R"([{"name":"epoch","arrived":[0,1],"missing":[2]}])");
      };
      need(sys::eventually(both_wait), "that both wait");
      let_some_time_pass();
    }
    need(worker.barrier("epoch"));
  });
  EXPECT_THAT(run.waits_of(0), Contains("barrier epoch [2]"));
  EXPECT_THAT(run.waits_of(1), Contains("barrier epoch [2]"));
  EXPECT_THAT(run.waits_of(2), Not(Contains(StartsWith("barrier epoch [2"))));
  EXPECT_TRUE(run.record.ended);
}

TEST(ParallelWaits, ForAnEventAreForWhoSentIt) {
  const Recorded run = recorded(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    if (worker.node() == 0) {
      auto go = bus.expect(kGo);
      need(worker.barrier("armed"));
      need(go.wait(60s).value_or(0) == 7, "what was sent");
    } else {
      need(worker.barrier("armed"));
      let_some_time_pass();
      bus.emit(kGo, 7, remote_only);
    }
    need(worker.barrier("heard"));
  });
  EXPECT_THAT(run.waits_of(0), Contains("event go [1]"));
}

TEST(ParallelWaits, ThatNothingEndedAreForNobody) {
  const Recorded run = recorded(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    need(!bus.wait_for("never", 20ms), "that it does not come");
    need(!bus.wait_for(Event<int>("here"), 20ms), "that it does not come");
    need(worker.barrier("end"));
  });
  EXPECT_THAT(run.waits_of(0), Contains("event never []"));
  // An event that goes to nobody else is nobody's.
  EXPECT_THAT(run.waits_of(0), Not(Contains(StartsWith("event here"))));
}

TEST(ParallelWaits, OfAnExchangeAreForTheWorkerWhoseItemCame) {
  const Recorded run =
      recorded({.workers = 2,
                .roles = {{role::kLearner}, {role::kCollector}},
                .note = [](std::string_view) {}},
               [](Worker& worker) {
                 Pipeline<Collected> loop(worker.pipeline());
                 worker.connect(loop, follow_nobody);
                 loop.use("exchange", Exchange<Collected>(worker, loop)
                                          .add<&Collected::env_step>(role::kCollector)
                                          .waits_for(role::kLearner, role::kCollector, 60s));
                 loop.use("collect",
                          [](Collected& it) {
                            let_some_time_pass();
                            ++it.env_step;
                          },
                          {.roles = {role::kCollector}});
                 // Events of the collector before the learner listens do not reach it.
                 need(worker.ready());
                 // A learner may get both items of the collector at once: there is no third.
                 const auto ended = loop.run({.max_steps = worker.node() == 0 ? 1U : 2U});
                 need(static_cast<bool>(ended), "that it ends well");
               });
  EXPECT_THAT(run.waits_of(0), Contains("event exchange.collector [1]"));
}

TEST(ParallelWaits, ForRoomAreForWhoReadsSlowly) {
  ParallelOptions options = quiet(2);
  options.queue = {.events_max = 4, .bytes_max = 64U << 10U, .when_full = WhenFull::Block};
  const Recorded run = recorded(options, [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    const std::string text(8'192, 'x');
    Subscription heard;
    if (worker.node() == 1) {
      heard = bus.on("text", [first = true](const Json&) mutable {
        if (std::exchange(first, false)) let_some_time_pass();
      });
    }
    need(worker.ready());
    for (int i = 0; worker.node() == 0 && i < 300; ++i) bus.emit("text", text, remote_only);
    need(worker.barrier("sent"));
  });
  EXPECT_THAT(run.waits_of(0), Contains("room  [1]"));
}

TEST(ParallelWaits, AreBesideTheLivesOfEachWorker) {
  ParallelOptions options = quiet(2);
  options.auto_recover = true;
  options.max_retries = 1;
  options.retry_delay = 1ms;
  const Recorded run = recorded(options, [](Worker& worker) {
    if (worker.node() == 1 && worker.life() == 1) throw std::runtime_error("once");
    need(worker.barrier("end"));
  });
  const auto outcomes = [&](std::size_t node) {
    std::vector<std::string> all;
    for (const wire::WorkerLife& it : run.record.workers.at(node).lives) {
      EXPECT_TRUE(it.came_ms && it.from_ms <= *it.came_ms && *it.came_ms <= it.to_ms.value_or(-1));
      all.push_back(it.outcome);
    }
    return all;
  };
  EXPECT_THAT(outcomes(0), ElementsAre("finished"));
  EXPECT_THAT(outcomes(1), ElementsAre("lost", "finished"));
}

TEST(ParallelWaits, ThatTheEndOfTheWorkerCutsShortAreNotedUntilThen) {
  const Recorded run = recorded(
      quiet(2),
      [](Worker& worker) {
        need(worker.ready());
        if (worker.node() == 0) need(worker.barrier("never"));
        const auto waits = [&] {
          const Json status = Json::parse(worker.status().value());
          return status.at("barriers").size() == 1;
        };
        need(sys::eventually(waits), "that the other one waits");
        let_some_time_pass();
        throw std::runtime_error("no more data");
      },
      false);
  EXPECT_THAT(run.waits_of(0), Contains("barrier never [1]"));
}

TEST(ParallelWaits, OfARunThatFailsAreLeftToo) {
  const Recorded run = recorded(
      quiet(2),
      [](Worker& worker) {
        need(worker.ready());
        if (worker.node() == 1) throw std::runtime_error("no more data");
        need(worker.barrier("never"));
      },
      false);
  EXPECT_EQ(run.record.workers.at(1).lives.at(0).outcome, "failed");
}

}  // namespace
}  // namespace trainyard::workers
