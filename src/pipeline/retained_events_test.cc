// Retained events, as received by listeners that are added later.
#include "pipeline/retained_events.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "trainyard/event_bus.h"
#include "trainyard/remote_event.h"

namespace trainyard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr RemoteEvent<int> kStep{"step"};

/// A bus, and what went wrong on it.
struct Told {
  std::vector<std::string> errors;
  EventBus bus{[this](std::string_view event, const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& it) {
      errors.push_back(std::string(event) + ": " + it.what());
    }
  }};
};

TEST(Retained, IsHeardByEachWhoListensLaterAndTheLastOneAlone) {
  Told it;
  std::vector<int> first;
  std::vector<int> second;
  std::vector<Json> plain;
  std::vector<std::string> by_pattern;
  it.bus.emit(kStep, 1, retained);
  const Subscription one = it.bus.on(kStep, [&](int step) { first.push_back(step); });
  it.bus.emit(kStep, 2, retained);
  it.bus.emit(kStep, 3, remote);
  const Subscription two = it.bus.on(kStep, [&](int step) { second.push_back(step); });
  it.bus.emit("name", "x", retained);
  const Subscription all = it.bus.on("*", [&](std::string_view name, const Json& step) {
    by_pattern.push_back(std::string(name) + step.dump());
  });
  const Subscription json = it.bus.on("name", [&](const Json& value) { plain.push_back(value); });
  EXPECT_THAT(first, ElementsAre(1, 2, 3));
  EXPECT_THAT(second, ElementsAre(2)) << "what was not retained has not taken its place";
  EXPECT_THAT(by_pattern, ElementsAre(R"(name"x")", "step2"));
  EXPECT_THAT(plain, ElementsAre("x"));
  EXPECT_THAT(it.errors, IsEmpty());
}

TEST(Retained, IsWhatIsExpectedLater) {
  Told it;
  it.bus.emit(kStep, 4, retained);
  const auto came = it.bus.expect(kStep).wait(std::chrono::nanoseconds(0));
  ASSERT_TRUE(came);
  EXPECT_EQ(*came, 4);
  EventQueue& queue = it.bus.make_queue();
  std::vector<int> heard;
  const Subscription on = it.bus.on(kStep, queue, [&](int step) { heard.push_back(step); });
  it.bus.stop();
  EXPECT_THAT(heard, ElementsAre(4));
}

TEST(Retained, IsNothingOfThisProcessWhereItIsForOthersAlone) {
  Told it;
  it.bus.emit(kStep, 1, {.here = false, .retained = true});
  std::vector<int> heard;
  const Subscription on = it.bus.on(kStep, [&](int step) { heard.push_back(step); });
  EXPECT_THAT(heard, IsEmpty());
}

namespace late {

std::shared_ptr<const pipeline::RetainedEvent> event(std::string json) {
  return std::make_shared<const pipeline::RetainedEvent>(
      pipeline::RetainedEvent{.type = "json", .payload = {.json = std::move(json)}});
}

TEST(LateEvents, AreOvertakenByThoseOfTheirName) {
  pipeline::LateEvents late;
  late.expect({{"a", event("1")}, {"b", event("2")}});
  late.is_overtaken("a");
  late.is_overtaken("c");
  std::vector<std::string> heard;
  late.hear([&](const std::string& name, const pipeline::RetainedEvent& it) {
    heard.push_back(name + it.payload.json);
    late.is_overtaken(name);  // As by one that it emits.
  });
  late.hear(
      [&](const std::string& name, const pipeline::RetainedEvent&) { heard.push_back(name); });
  EXPECT_THAT(heard, ElementsAre("b2"));
}

TEST(LateEvents, AreHeardToTheEndBeforeWhatComesAfterThem) {
  pipeline::LateEvents late;
  late.expect({{"a", event("1")}});
  std::vector<std::string> heard;
  std::atomic<bool> hears = false;
  std::jthread newer([&] {
    hears.wait(false);
    late.is_overtaken("a");
    heard.emplace_back("newer");
  });
  late.hear([&](const std::string& name, const pipeline::RetainedEvent&) {
    hears = true;
    hears.notify_all();
    std::this_thread::yield();
    heard.push_back(name);
  });
  newer.join();
  EXPECT_THAT(heard, ElementsAre("a", "newer"));
}

}  // namespace late
}  // namespace
}  // namespace trainyard
