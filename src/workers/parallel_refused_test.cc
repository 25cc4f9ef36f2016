// A worker with invalid messages, with requests that cannot be answered, or whose others have
// failed: it receives the reason, and each loss is reported.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/buffer.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/pipeline.h"
#include "trainyard/remote_event.h"
#include "trainyard/result.h"
#include "trainyard/worker.h"
#include "workers/test_workers.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr RemoteEvent<Buffer> kScore{"score"};

constexpr const char* kNoWait =
    "a listener of remote events cannot wait for the others: wait outside of listeners";

std::string why_not(const Result<void>& done) { return done ? "none" : done.error().message; }

TEST(ParallelRefused, FailsThePipelineAndTheRunOfAWorkerThatIsCutOff) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    Pipeline<Train> loop(worker.pipeline());
    worker.connect(loop);
    if (worker.node() == 0) {
      // From now on it is of this type.
      loop.events().emit("score", 1, remote_only);
      need(worker.barrier("told"));
      loop.use("wait",
               [&](Train&) { static_cast<void>(loop.events().wait_for("never", loop.ending())); });
      static_cast<void>(loop.run());
      return;
    }
    need(worker.barrier("told"));
    loop.use("emit", [&](Train&) {
      loop.events().emit(kScore, Buffer(DType::UInt8, {1}), remote_only);
      static_cast<void>(loop.events().wait_for("never", loop.ending()));
    });
    const RunResult ended = loop.run();
    std::ofstream(directory / "ended") << to_text(ended.outcome) << ": " << ended.why << std::flush;
  });
  ASSERT_EQ(result.failures.size(), 1U) << "its exit code is 0, and all the same";
  EXPECT_EQ(result.failures[0].node, 1);
  const std::string why = "event 'score' carries json elsewhere, and buffer here";
  EXPECT_EQ(result.failures[0].what, "it was cut off: " + why);
  std::string ended;
  std::ifstream file(directory / "ended");
  std::getline(file, ended);
  EXPECT_THAT(ended, StartsWith("failed: "));
  EXPECT_THAT(ended, HasSubstr("this worker is cut off: " + why));
}

TEST(ParallelRefused, TellsAListenerThatItCannotWaitForTheOthers) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::vector<std::string> errors;
    const Subscription heard = bus.on("ask", [&](const Json&) {
      errors.push_back(why_not(worker.barrier("inside", 1s)));
      errors.push_back(why_not(worker.ready()));
      errors.push_back(worker.status() ? "none" : worker.status().error().message);
    });
    if (worker.node() == 0) bus.emit("ask", 1, remote);
    need(worker.barrier("asked"));
    need(errors == std::vector<std::string>(3, kNoWait), "three errors, also where it was emitted");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelRefused, LetsListenersWaitThatEachWorkerCallsForItself) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    constexpr Event<int> kEpoch{"epoch"};
    std::vector<std::string> errors;
    const Subscription of_this_process =
        bus.on(kEpoch, [&](int) { errors.push_back(why_not(worker.barrier("epoch"))); });
    const Subscription of_a_queue = bus.on("ask", bus.make_queue(), [&](const Json&) {
      errors.push_back(why_not(worker.barrier("queue")));
    });
    bus.emit(kEpoch, 1);
    need(worker.barrier("met"));
    if (worker.node() == 0) bus.emit("ask", 1, remote);
    need(worker.barrier("asked"));
    bus.stop(60s);
    need(errors == std::vector<std::string>(2, "none"), "no errors");
  });
  EXPECT_TRUE(result) << result.text();
}

bool is_waited_for(Worker& worker, const std::string& barrier) {
  const Json status = Json::parse(worker.status().value());
  return std::ranges::any_of(status.at("barriers"),
                             [&](const Json& it) { return it.at("name") == barrier; });
}

TEST(ParallelRefused, CountsNobodyAtABarrierWhoWasToldToStopWaiting) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    need(worker.ready());
    if (worker.node() == 0) {
      std::stop_source stop;
      std::string why;
      std::thread waits([&] { why = why_not(worker.barrier("later", 60s, {}, stop.get_token())); });
      const bool is_there = sys::eventually([&] { return is_waited_for(worker, "later"); });
      stop.request_stop();
      waits.join();
      need(is_there && why == "it was told to stop", "a wait that is stopped, and not " + why);
      need(!is_waited_for(worker, "later"), "that it is not counted");
    }
    need(worker.barrier("end"));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelRefused, AnswersWhatCannotBeAskedAndGoesOn) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    if (worker.node() == 0) {
      const std::string late = "barrier 'alone' waits for worker 1";
      need(why_not(worker.barrier("alone", -5ms)) == late, "no time to wait");
      need(why_not(worker.barrier(std::string(257, 'b'))) ==
               "the name of a barrier has 1 to 256 bytes, not 257",
           "too long a name");
      need(why_not(worker.barrier("")) == "the name of a barrier has 1 to 256 bytes, not 0",
           "no name");
      need(why_not(worker.ready(-1)) == "there are no -1 workers to wait for", "less than none");
      need(why_not(worker.barrier("role", 1ms,
                                  {Role{std::string_view(std::string(70'000, 'r'))}})) != "none",
           "too long a role");
    }
    need(worker.barrier("all", std::chrono::milliseconds::max()));
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelRefused, TellsWhoEmitsWhatJsonWouldCarryAsSomethingElse) {
  const auto result = parallel(quiet(2), [](Worker& worker) {
    TellingBus telling;
    EventBus& bus = telling.bus;
    const std::vector<std::string>& told = telling.told;
    worker.connect(bus);
    worker.connect(bus);  // Once more changes nothing.
    std::vector<Json> heard;
    const Subscription hears = bus.on("n", [&](const Json& it) { heard.push_back(it); });
    if (worker.node() == 0) {
      Json deep = 1;
      for (int i = 0; i < 61; ++i) deep = Json::array({std::move(deep)});
      bus.emit("n", Json{{"loss", std::numeric_limits<double>::quiet_NaN()}}, remote_only);
      bus.emit("n", Json{1.0, -std::numeric_limits<double>::infinity()}, remote_only);
      bus.emit("n", deep, remote_only);
      bus.emit("n", std::string("\xFF"), remote_only);
      bus.emit("n", "well", remote_only);
      const std::string why =
          "n: it holds NaN or an infinity, which JSON cannot carry: a Buffer can";
      need(told.size() == 4 && told[0] == why && told[1] == why &&
               told[2] == "n: it is nested deeper than 60" &&
               told[3].find("invalid UTF-8") != std::string::npos,
           "four errors");
    }
    need(worker.barrier("sent"));
    need(heard == (worker.node() == 1 ? std::vector<Json>{"well"} : std::vector<Json>{}),
         "what it can carry, once");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ParallelRefused, TellsAListenerThatWhatWasRetainedIsOfAnotherType) {
  TellingBus telling;
  EventBus& bus = telling.bus;
  const std::vector<std::string>& told = telling.told;
  bus.emit(kScore, Buffer(DType::UInt8, {3}), retained);
  std::vector<std::string> heard;
  const Subscription on = bus.on("score", [&](const Json&) { heard.emplace_back("json"); });
  const Subscription all =
      bus.on("s*", [&](std::string_view name, const Json&) { heard.emplace_back(name); });
  EXPECT_TRUE(heard.empty()) << "it has no form in JSON";
  EXPECT_EQ(told,
            std::vector<std::string>{"score: was retained with buffer, and a listener takes json"});
}

TEST(ParallelRefused, TellsAListenerThatReadsABufferAsAnotherType) {
  TellingBus telling;
  const Subscription on =
      telling.bus.on(kScore, [](const Buffer& it) { need(it.as<float>()[0] == 1, "a float"); });
  telling.bus.emit(kScore, Buffer::copy_of<double>({1}, {1}));
  EXPECT_EQ(telling.told, std::vector<std::string>{
                              "score: the buffer contains float64, not float32: send it as float32 "
                              "(NumPy: array.astype('float32')), or read it as float64"});
}

TEST(ParallelRefused, TellsAListenerThatJsonDoesNotFitWhatItTakes) {
  constexpr RemoteEvent<std::uint8_t> kSmall{"small"};
  constexpr RemoteEvent<std::vector<int>> kList{"list"};
  TellingBus telling;
  EventBus& bus = telling.bus;
  std::vector<int> heard;
  for (const Json& each : {Json(255), Json(256), Json(-1), Json(1.5), Json("1")}) {
    bus.emit("small", each, retained);
    const Subscription on = bus.on(kSmall, [&](std::uint8_t it) { heard.push_back(it); });
  }
  bus.emit("list", Json{{"a", 1}}, retained);
  const Subscription on = bus.on(kList, [&](const std::vector<int>& it) { heard = it; });
  EXPECT_EQ(heard, std::vector<int>{255});
  const std::string text =
      "small: JSON of type string came, which does not fit the listener: it takes an integer of 8 "
      "bits";
  const std::string number =
      "small: JSON of type number came, which does not fit the listener: it takes an integer of 8 "
      "bits";
  EXPECT_EQ(telling.told,
            (std::vector<std::string>{
                number, number, number, text,
                "list: JSON of type object came, which does not fit the listener: "
                "[json.exception.type_error.302] type must be array, but is object"}));
}

TEST(ParallelRefused, WakesWhoWaitsAtABarrierWhenTheRunEndsAndSaysWhoHasFailed) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(3), [&](Worker& worker) {
    // One that has not come yet would be ended by a signal. Unlike ready(), a barrier answers nobody
    // before all have asked.
    need(worker.barrier("all"));
    if (worker.node() == 2) throw std::runtime_error("boom");
    std::ofstream(directory / std::to_string(worker.node()))
        << why_not(worker.barrier("epoch")) << std::flush;
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 2);
  for (const char* const node : {"0", "1"}) {
    std::string error;
    std::ifstream file(directory / node);
    std::getline(file, error);
    EXPECT_EQ(error, "the run ends: worker 2 failed: std::runtime_error: boom");
  }
}

TEST(ParallelRefused, LeavesWhoListensTimeToEndByItself) {
  const sys::TemporaryDirectory directory;
  const auto result = parallel(quiet(2), [&](Worker& worker) {
    need(worker.barrier("both"));
    if (worker.node() == 1) throw std::runtime_error("boom");
    // It looks now and then, and has no handler of TERM.
    while (!worker.ending().stop_requested()) std::this_thread::yield();
    std::ofstream(directory / "saved") << "all\n" << std::flush;
  });
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  std::string saved;
  std::ifstream file(directory / "saved");
  std::getline(file, saved);
  EXPECT_EQ(saved, "all");
}

}  // namespace
}  // namespace trainyard::workers
