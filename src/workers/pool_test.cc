#include "trainyard/pool.h"

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "ranks/parcel.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "workers/parcel.h"
#include "workers/pool_link.h"
#include "workers/test_env.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = CallError::Kind;

constexpr auto kLong = 30s;

Envs started(
    PoolOptions options, std::function<Env(int)> make = [](int index) { return Env(index); }) {
  options.note = [](std::string_view) {};
  auto pool = Envs::start(options, std::move(make));
  check(pool.has_value(), "a pool");
  return *std::move(pool);
}

/// The kind of the error, and "" or what it says.
template <class R>
std::pair<std::optional<Kind>, std::string> error_of(const std::expected<R, CallError>& result) {
  if (result) return {std::nullopt, ""};
  return {result.error().kind, result.error().message};
}
std::pair<std::optional<Kind>, std::string> error(Kind kind, std::string message) {
  return {kind, std::move(message)};
}

template <class R>
R value_of(PoolFuture<R> future) {
  auto result = future.get(kLong);
  if (!result) throw std::runtime_error(result.error().text());
  if constexpr (!std::is_void_v<R>) return *std::move(result);
}

bool is_reaped(int pid) { return ::kill(pid, 0) != 0; }

class PoolOfBothKinds : public testing::TestWithParam<PoolIn> {};
INSTANTIATE_TEST_SUITE_P(, PoolOfBothKinds, testing::Values(PoolIn::Processes, PoolIn::Threads),
                         [](const auto& it) { return std::string(to_text(it.param)); });

TEST_P(PoolOfBothKinds, CallsEachObjectWithItsOwnState) {
  Envs pool = started({.count = 3, .in = GetParam()});
  EXPECT_EQ(pool.count(), 3);
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 2)), 2);
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 3)), 5);
  EXPECT_EQ(value_of(pool.call<&Env::add>(2, 7)), 7);
  std::vector<int> sums;
  for (const auto& each : pool.all<&Env::sum>().get(kLong)) sums.push_back(each.value());
  EXPECT_EQ(sums, (std::vector{5, 0, 7}));
  std::vector<int> indices;
  for (const auto& each : pool.all<&Env::index>().get(kLong)) indices.push_back(each.value());
  EXPECT_EQ(indices, (std::vector{0, 1, 2}));
  for (const auto& each : pool.all<&Env::clear>().get(kLong)) EXPECT_TRUE(each);
  EXPECT_EQ(value_of(pool.call<&Env::sum>(2)), 0);
}

TEST_P(PoolOfBothKinds, CarriesValuesOfAllKindsBothWays) {
  Envs pool = started({.count = 1, .in = GetParam()});
  const Step step{.name = "a", .values = {1.5, -2}};
  EXPECT_EQ(value_of(pool.call<&Env::change>(0, step, "b")),
            (Step{.name = "ab", .values = {1.5, -2}}));
  const auto json = nlohmann::json::parse(R"([{"a": [1, null, "\u00e4"]}, 2.5, []])");
  EXPECT_EQ(value_of(pool.call<&Env::echo>(0, json)), json);
  EXPECT_EQ(value_of(pool.call<&sum_and>(0, 4)), 4);
  const Buffer one = Buffer::copy_of<float>({2}, {1, 2});
  const Buffer none(DType::Int64, {0, 3});
  const auto both = value_of(pool.call<&Env::both>(0, std::vector{one, none}, one));
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both[0].as<float>()[1], 2);
  EXPECT_EQ(both[1].shape(), (Dimensions{0, 3}));
  EXPECT_EQ(both[1].dtype(), DType::Int64);
  EXPECT_EQ(both[2].as<float>()[0], 1);
}

TEST_P(PoolOfBothKinds, TellsWhatAMethodThrewAndGoesOnWithTheState) {
  Envs pool = started({.count = 2, .in = GetParam()});
  EXPECT_EQ(value_of(pool.call<&Env::add>(1, 5)), 5);
  const auto failed = pool.call<&Env::fail>(1, "boom").get(kLong);
  EXPECT_EQ(error_of(failed), error(Kind::Threw, "std::runtime_error: boom"));
  EXPECT_EQ(failed.error().text(), "child 1: threw: std::runtime_error: boom");
  EXPECT_EQ(value_of(pool.call<&Env::sum>(1)), 6);
}

TEST_P(PoolOfBothKinds, TellsWhatAnExceptionWasThrownBecauseOf) {
  Envs pool = started({.count = 1, .in = GetParam()});
  const auto failed = pool.call<&Env::fail_because>(0, "no batch", "row 7").get(kLong);
  const auto [kind, message] = error_of(failed);
  EXPECT_EQ(kind, Kind::Threw);
  EXPECT_THAT(message,
              EndsWith("std::runtime_error>: no batch\nbecause of std::out_of_range: row 7"));
}

TEST_P(PoolOfBothKinds, TellsWhatCannotBeCarriedAndGoesOn) {
  Envs pool = started({.count = 1, .in = GetParam()});
  EXPECT_EQ(
      error_of(pool.call<&Env::unsendable>(0).get(kLong)),
      error(Kind::NotCarried, "its result cannot be sent: std::runtime_error: it has no words"));
  EXPECT_EQ(
      error_of(pool.call<&Env::take>(0, Unsendable{}).get(kLong)),
      error(Kind::NotCarried, "its arguments cannot be sent: std::runtime_error: it has no words"));
  const auto no_text = pool.call<&Env::no_text>(0).get(kLong);
  EXPECT_EQ(error_of(no_text).first, Kind::NotCarried);
  EXPECT_THAT(error_of(no_text).second, HasSubstr("invalid UTF-8"));
  const auto no_number = pool.call<&Env::not_a_number>(0).get(kLong);
  EXPECT_EQ(error_of(no_number).first, Kind::NotCarried);
  EXPECT_THAT(error_of(no_number).second,
              StartsWith("its result cannot be sent: std::invalid_argument: it holds NaN"));
  nlohmann::json deep;
  for (int i = 0; i < 100; ++i) deep = nlohmann::json::array({deep});
  EXPECT_EQ(error_of(pool.call<&Env::echo>(0, deep).get(kLong)).first, Kind::NotCarried);
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 1)), 1);
}

TEST_P(PoolOfBothKinds, BoundsTheJsonOfArgumentsAndResults) {
  Envs pool = started({.count = 1, .in = GetParam()});
  constexpr std::size_t kMost = kPoolLimits.fields_bytes_max;
  const std::string more = " bytes of JSON, and at most 8388608 are allowed; use a Buffer for more";
  // With quotes, in brackets.
  EXPECT_EQ(error_of(pool.call<&Env::echo>(0, std::string(kMost - 3, 'x')).get(kLong)),
            error(Kind::NotCarried, "its arguments cannot be sent: 8388609" + more));
  EXPECT_EQ(error_of(pool.call<&Env::text>(0, kMost - 3).get(kLong)),
            error(Kind::NotCarried, "its result cannot be sent: 8388609" + more));
  EXPECT_EQ(value_of(pool.call<&Env::text>(0, kMost - 4)).size(), kMost - 4);
}

TEST_P(PoolOfBothKinds, BoundsTheNumberOfBuffersOfArgumentsAndResults) {
  Envs pool = started({.count = 1, .in = GetParam()});
  const Buffer one(DType::UInt8, {1});
  const auto both = [&](std::size_t count) {
    return pool.call<&Env::both>(0, std::vector<Buffer>(count, one), one).get(kLong);
  };
  const std::string more =
      " cannot be sent: 64 buffers, and at most 63 are allowed; put several into one";
  EXPECT_EQ(error_of(both(63)), error(Kind::NotCarried, "its arguments" + more));
  EXPECT_EQ(error_of(pool.call<&Env::many>(0, 64U).get(kLong)),
            error(Kind::NotCarried, "its result" + more));
  EXPECT_EQ(both(62).value().size(), 63U);
}

TEST_P(PoolOfBothKinds, TellsWhatAFactoryThrewAndTriesAgainWhenItIsRestarted) {
  const sys::TemporaryDirectory directory;
  const std::string there = directory / "there";
  Envs pool = started({.count = 2, .in = GetParam()}, [there](int index) {
    if (index == 1 && !std::filesystem::exists(there)) throw std::runtime_error("not yet");
    return Env(index);
  });
  EXPECT_EQ(error_of(pool.call<&Env::sum>(1).get(kLong)),
            error(Kind::NotMade, "std::runtime_error: not yet"));
  EXPECT_EQ(error_of(pool.call<&Env::sum>(1).get(kLong)).first, Kind::NotMade);
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 1)), 1);
  directory.write("there", "x");
  EXPECT_TRUE(pool.restart(1));
  EXPECT_EQ(value_of(pool.call<&Env::add>(1, 1)), 1);
}

TEST_P(PoolOfBothKinds, HasCallsWaitForTheObject) {
  const Gate gate;
  Envs pool = started({.count = 1, .in = GetParam()}, [path = gate.path()](int index) {
    Gate::pass(path);
    return Env(index);
  });
  auto first = pool.call<&Env::add>(0, 1);
  auto second = pool.call<&Env::add>(0, 1);
  EXPECT_FALSE(first.is_answered());
  gate.open();
  EXPECT_EQ(value_of(std::move(second)), 2);
  EXPECT_TRUE(first.is_answered());
  EXPECT_EQ(value_of(std::move(first)), 1);
}

TEST_P(PoolOfBothKinds, GivesALateAnswerToNobody) {
  const Gate gate;
  Envs pool = started({.count = 1, .in = GetParam()});
  EXPECT_EQ(error_of(pool.call<&Env::pass>(0, gate.path(), 41).get(0ms)),
            error(Kind::Late, "there was no answer in the time that it had"));
  auto next = pool.call<&Env::add>(0, 5);
  gate.open();
  EXPECT_EQ(value_of(std::move(next)), 5);
  EXPECT_EQ(value_of(pool.call<&Env::sum>(0)), 5);
}

TEST_P(PoolOfBothKinds, HasOneDeadlineForAll) {
  constexpr int kCount = 16;
  const Gate gate;
  Envs pool = started({.count = kCount, .in = GetParam()});
  for (const auto& each : pool.all<&Env::index>().get(kLong)) ASSERT_TRUE(each);
  std::promise<void> late;
  const std::jthread opener([&] {
    late.get_future().wait_for(kLong);
    for (int i = 0; i < kCount; ++i) gate.open();
  });
  // With a deadline each, the last one would be answered: the gate opens before its deadline.
  const auto answers = pool.all<&Env::pass>(gate.path(), 1).get(kLong / (kCount - 1));
  late.set_value();
  for (const auto& each : answers) EXPECT_EQ(error_of(each).first, Kind::Late);
}

TEST_P(PoolOfBothKinds, StopsWaitingWhenItIsTold) {
  const Gate gate;
  Envs pool = started({.count = 1, .in = GetParam()});
  std::stop_source stop;
  auto call = pool.call<&Env::pass>(0, gate.path(), 1);
  std::jthread stops([&] { stop.request_stop(); });
  EXPECT_EQ(error_of(call.get(std::chrono::milliseconds::max(), stop.get_token())),
            error(Kind::Stopped, "it was told to stop"));
  gate.open();
}

TEST_P(PoolOfBothKinds, GivesAnAnswerOnce) {
  Envs pool = started({.count = 2, .in = GetParam()});
  auto one = pool.call<&Env::sum>(1);
  auto all = pool.all<&Env::sum>();
  EXPECT_TRUE(one.get(kLong));
  EXPECT_TRUE(one.is_answered());
  EXPECT_EQ(error_of(one.get(kLong)), error(Kind::Taken, "its answer was taken before"));
  EXPECT_EQ(all.get(kLong).size(), 2U);
  EXPECT_TRUE(all.get(kLong).empty());
}

TEST_P(PoolOfBothKinds, RefusesAChildThatIsNotThere) {
  Envs pool = started({.count = 2, .in = GetParam()});
  EXPECT_EQ(error_of(pool.call<&Env::sum>(2).get(kLong)),
            error(Kind::NoSuchChild, "the pool has 2, from 0 on"));
  EXPECT_EQ(error_of(pool.call<&Env::sum>(-1).get(kLong)).first, Kind::NoSuchChild);
  EXPECT_EQ(error_of(pool.restart(2)).first, Kind::NoSuchChild);
}

TEST_P(PoolOfBothKinds, RefusesMoreOpenCallsThanThereMayBe) {
  const Gate gate;
  Envs pool = started({.count = 2, .in = GetParam(), .open_max = 2});
  EXPECT_EQ(error_of(pool.call<&Env::pass>(0, gate.path(), 1).get(0ms)).first, Kind::Late);
  auto second = pool.call<&Env::add>(0, 1);
  EXPECT_EQ(error_of(pool.call<&Env::add>(0, 1).get(kLong)),
            error(Kind::Full, "it has 2 calls that it has not answered, and may have no more"));
  EXPECT_EQ(value_of(pool.call<&Env::add>(1, 1)), 1);
  gate.open();
  EXPECT_EQ(value_of(std::move(second)), 1);
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 1)), 2);
}

TEST_P(PoolOfBothKinds, RestartsWithANewObjectAndFailsWhatWasOpen) {
  const Gate gate;
  Envs pool = started({.count = 2, .in = GetParam()});
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 4)), 4);
  EXPECT_EQ(value_of(pool.call<&Env::add>(1, 4)), 4);
  auto running = pool.call<&Env::pass>(0, gate.path(), 1);
  auto queued = pool.call<&Env::add>(0, 1);
  ASSERT_TRUE(gate.is_reached());
  EXPECT_TRUE(pool.restart(0));
  auto after = pool.call<&Env::add>(0, 1);
  const auto restarted = error(Kind::Restarted, "a new object has taken its place");
  EXPECT_EQ(error_of(running.get(kLong)), restarted);
  EXPECT_EQ(error_of(queued.get(kLong)), restarted);
  // A process is cut off there; a thread goes on to the end of its call.
  if (GetParam() == PoolIn::Threads) gate.open();
  EXPECT_EQ(value_of(std::move(after)), 1);
  EXPECT_TRUE(pool.restart(0));
  EXPECT_TRUE(pool.restart(0));
  EXPECT_EQ(value_of(pool.call<&Env::sum>(0)), 0);
  EXPECT_EQ(value_of(pool.call<&Env::sum>(1)), 4);
}

TEST_P(PoolOfBothKinds, FailsWhatIsOpenWhenItIsShutDown) {
  const Gate gate;
  const sys::TemporaryDirectory directory;
  Envs pool = started({.count = 2, .in = GetParam()});
  value_of(pool.call<&Env::mark_at_end>(1, directory / "1"));
  auto running = pool.call<&Env::pass>(0, gate.path(), 1);
  auto queued = pool.call<&Env::add>(0, 1);
  ASSERT_TRUE(gate.is_reached());
  std::jthread opens;
  if (GetParam() == PoolIn::Threads) {
    // Its thread is waited for, and its answer is not.
    opens = std::jthread([&] {
      EXPECT_TRUE(sys::eventually([&] { return running.is_answered(); }));
      gate.open();
    });
  }
  pool.shutdown(kLong);
  const auto ended = error(Kind::ShutDown, "the pool has ended");
  if (opens.joinable()) opens.join();
  EXPECT_EQ(error_of(running.get(0ms)), ended);
  EXPECT_EQ(error_of(queued.get(0ms)), ended);
  EXPECT_EQ(error_of(pool.call<&Env::add>(0, 1).get(0ms)), ended);
  EXPECT_EQ(error_of(pool.restart(0)), ended);
  // One that had nothing to do has come to its end in good order.
  EXPECT_EQ(sys::content_of(directory / "1"), "destroyed");
  pool.shutdown(0ms);
}

TEST_P(PoolOfBothKinds, CarriesLargeBuffersBothWays) {
  Envs pool = started({.count = 2, .in = GetParam()});
  // More of them than there are arenas, so that these are used again.
  constexpr std::int64_t kCount = 100'000;
  for (int i = 0; i < 120; ++i) {
    Buffer own = pool.alloc(DType::Float32, {kCount}).value();
    own.fill<float>()[0] = static_cast<float>(i);
    own.fill<float>()[kCount - 1] = 1;
    for (auto& each : pool.all<&Env::twice>(own).get(kLong)) {
      ASSERT_TRUE(each) << each.error().text();
      EXPECT_EQ(each->first.as<float>()[0], static_cast<float>(2 * i));
      EXPECT_EQ(each->first.as<float>()[kCount - 1], 2);
    }
    // The buffer that the child keeps stays as it is.
    EXPECT_EQ(value_of(pool.call<&Env::kept_at>(0, 0)), i);
  }
}

TEST_P(PoolOfBothKinds, AnswersAThousandCallsInTheirOrder) {
  Envs pool = started({.count = 3, .in = GetParam()});
  for (const auto& each : pool.all<&Env::index>().get(kLong)) ASSERT_TRUE(each);
  std::vector<PoolFuture<int>> calls;
  for (int i = 0; i < 1'000; ++i) calls.push_back(pool.call<&Env::add>(i % 3, 1));
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(value_of(std::move(calls[static_cast<std::size_t>(i)])), i / 3 + 1);
  }
}

TEST_P(PoolOfBothKinds, MayBeCalledByManyThreadsAtOnce) {
  Envs pool = started({.count = 2, .in = GetParam()});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&pool, thread] {
        for (int i = 0; i < 200; ++i) value_of(pool.call<&Env::add>(thread % 2, 1));
      });
    }
  }
  EXPECT_EQ(value_of(pool.call<&Env::sum>(0)), 400);
  EXPECT_EQ(value_of(pool.call<&Env::sum>(1)), 400);
}

TEST(Pool, GivesEachObjectAProcess) {
  Envs pool = started({.count = 2});
  const int first = value_of(pool.call<&Env::pid>(0));
  const int second = value_of(pool.call<&Env::pid>(1));
  EXPECT_NE(first, second);
  EXPECT_NE(first, ::getpid());
  pool.shutdown(kLong);
  EXPECT_TRUE(is_reaped(first) && is_reaped(second));
}

TEST(Pool, FailsTheOpenCallsOfAChildThatDiesAndGoesOnWithTheOthers) {
  Envs pool = started({.count = 3});
  auto killed = pool.call<&Env::die>(1, SIGKILL);
  auto behind = pool.call<&Env::sum>(1);
  const auto died = killed.get(kLong);
  EXPECT_EQ(error_of(died), error(Kind::Died, "was killed by signal 9"));
  EXPECT_EQ(died.error().stderr_end, "the last words of 1\n");
  EXPECT_EQ(error_of(behind.get(kLong)), error(Kind::Died, "was killed by signal 9"));
  EXPECT_EQ(error_of(pool.call<&Env::sum>(1).get(kLong)).first, Kind::Died);
  EXPECT_EQ(error_of(pool.call<&Env::exit_with>(2, 3).get(kLong)),
            error(Kind::Died, "exited with code 3"));
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 1)), 1);
  EXPECT_TRUE(pool.restart(1));
  EXPECT_EQ(value_of(pool.call<&Env::index>(1)), 1);
}

TEST(Pool, GivesTheAnswersThatCameBeforeAChildDied) {
  Envs pool = started({.count = 1});
  std::vector<PoolFuture<int>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(pool.call<&Env::add>(0, 1));
  auto last = pool.call<&Env::die>(0, SIGKILL);
  EXPECT_EQ(error_of(last.get(kLong)).first, Kind::Died);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(value_of(std::move(calls[static_cast<std::size_t>(i)])), i + 1);
  }
}

TEST(Pool, KillsAChildThatDoesNotEnd) {
  const Gate gate;
  Envs pool = started({.count = 1});
  const int pid = value_of(pool.call<&Env::pid>(0));
  value_of(pool.call<&Env::ignore_terminate>(0));
  auto running = pool.call<&Env::pass>(0, gate.path(), 1);
  ASSERT_TRUE(gate.is_reached());
  pool.shutdown(20ms);
  EXPECT_TRUE(is_reaped(pid));
  EXPECT_EQ(error_of(running.get(0ms)).first, Kind::ShutDown);
}

TEST(Pool, EndsItsChildrenWhenItsProcessIsKilled) {
  // The pool whose process is killed is that of a child of another pool.
  const sys::TemporaryDirectory directory;
  struct Nest {
    explicit Nest(const std::string& logs) : inner(started({.count = 2, .directory = logs})) {}
    std::vector<int> pids() {
      std::vector<int> all{::getpid()};
      for (const auto& each : inner.all<&Env::pid>().get(kLong)) all.push_back(each.value());
      return all;
    }
    Envs inner;
  };
  using Nests = Pool<Nest, &Nest::pids>;
  auto pool = Nests::start({.count = 1}, [&](int) { return Nest(directory / "logs"); });
  ASSERT_TRUE(pool);
  const std::vector<int> pids = value_of(pool->call<&Nest::pids>(0));
  ASSERT_EQ(pids.size(), 3U);
  ::kill(pids[0], SIGKILL);
  for (const int pid : pids) EXPECT_TRUE(sys::eventually([&] { return is_reaped(pid); })) << pid;
}

TEST(Pool, KeepsTheMemoryOfAnAnswerWhenTheChildAndThePoolAreGone) {
  Buffer kept;
  {
    Envs pool = started({.count = 1});
    Buffer large(DType::Float32, {50'000});
    large.fill<float>()[49'999] = 3;
    kept = value_of(pool.call<&Env::twice>(0, large)).first;
  }
  EXPECT_EQ(kept.as<float>()[49'999], 6);
}

TEST(Pool, CarriesMoreThanGoesThroughTheSocket) {
  Envs pool = started({.count = 1});
  const std::int64_t count = static_cast<std::int64_t>(kPoolLimits.buffers_bytes_max) / 4 + 1'000;
  const Buffer own = pool.alloc(DType::Float32, {count}).value();
  const auto back = value_of(pool.call<&Env::both>(0, std::vector<Buffer>(), own));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].shape(), (Dimensions{count}));
}

TEST(Pool, BoundsWhatWaitsForAChild) {
  const Gate gate;
  Envs pool = started({.count = 1, .open_max = 1'000'000}, [path = gate.path()](int index) {
    Gate::pass(path);
    return Env(index);
  });
  // Small enough to go through the socket.
  const Buffer buffer(DType::UInt8, {ranks::kInFrameMax});
  const std::size_t fit = PoolLink::kUnsentMax / (ranks::kInFrameMax + 100);
  for (std::size_t i = 0; i < fit; ++i) {
    ASSERT_FALSE(pool.call<&Env::both>(0, std::vector<Buffer>(), buffer).is_answered());
  }
  std::optional<CallError> refused;
  for (std::size_t i = 0; i < fit && !refused; ++i) {
    auto call = pool.call<&Env::both>(0, std::vector<Buffer>(), buffer);
    if (call.is_answered()) refused = call.get(0ms).error();
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, Kind::Full);
  EXPECT_THAT(refused->message, HasSubstr("bytes wait for it, and no more than 67108864 may"));
  gate.open();
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 1)), 1);
}

TEST(Pool, NotesNothingAboutChildrenThatItEndsBeforeTheyAreLetIn) {
  std::vector<std::string> notes;
  PoolOptions options{.count = 8};
  options.note = [&](std::string_view what) { notes.emplace_back(what); };
  for (int i = 0; i < 20; ++i) {
    auto pool = Envs::start(options, [](int index) { return Env(index); });
    ASSERT_TRUE(pool) << pool.error().message;
    if (i % 2 == 0) continue;
    for (int child = 0; child < options.count; ++child) EXPECT_TRUE(pool->restart(child));
  }
  EXPECT_THAT(notes, testing::IsEmpty());
}

TEST(Pool, WritesALogOfEachChildWhereItIsTold) {
  const sys::TemporaryDirectory directory;
  Envs pool = started({.count = 2, .directory = directory / "logs"});
  EXPECT_EQ(value_of(pool.call<&Env::add>(0, 1)), 1);  // It has begun.
  EXPECT_EQ(error_of(pool.call<&Env::die>(1, SIGKILL).get(kLong)).first, Kind::Died);
  EXPECT_EQ(sys::content_of(directory / "logs/child-1.log"), "the last words of 1\n");
  EXPECT_EQ(sys::content_of(directory / "logs/child-0.log"), "");
}

TEST(Pool, RefusesTheDirectoryOfAnotherPoolWhileThatIsThere) {
  const sys::TemporaryDirectory directory;
  const auto make = [](int index) { return Env(index); };
  const PoolOptions options{.count = 1, .directory = directory / "logs"};
  {
    const auto first = Envs::start(options, make);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = Envs::start(options, make);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message, "the pool cannot be started: '" + (directory / "logs") +
                                          "' is in use by process " + std::to_string(::getpid()) +
                                          ": each pool needs a directory of its own for its logs");
  }
  EXPECT_TRUE(Envs::start(options, make));
}

TEST_P(PoolOfBothKinds, RefusesABufferThatMemoryCannotHold) {
  Envs pool = started({.count = 1, .in = GetParam()});
  const auto buffer = pool.alloc(DType::UInt8, {std::int64_t{1} << 50});
  ASSERT_FALSE(buffer);
  if (GetParam() == PoolIn::Processes) return;  // The message is that of the kernel.
  EXPECT_EQ(buffer.error().message,
            "a buffer of 1125899906842624 bytes: there is not so much memory");
}

TEST_P(PoolOfBothKinds, WaitsForEverWithTheLongestTime) {
  Envs pool = started({.count = 1, .in = GetParam()});
  EXPECT_EQ(pool.call<&Env::add>(0, 4).get(std::chrono::hours::max()), 4);
}

constexpr auto kPlus = [](const Env& env, int more) { return env.sum() + more; };

TEST(Pool, PrintsNothingAgainThatWasPrintedBefore) {
  testing::internal::CaptureStdout();
  std::printf("once");
  {
    Envs pool = started({.count = 2});
    EXPECT_EQ(value_of(pool.call<&Env::add>(1, 1)), 1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "once");
}

TEST(Pool, CallsAClosureWithoutCaptures) {
  using Closures = Pool<Env, &Env::add, kPlus>;
  auto pool = Closures::start({.count = 1}, [](int index) { return Env(index); });
  ASSERT_TRUE(pool);
  EXPECT_EQ(value_of(pool->call<&Env::add>(0, 2)), 2);
  EXPECT_EQ(value_of(pool->call<kPlus>(0, 3)), 5);
}

TEST(Pool, SaysWhatItCannotBeStartedWith) {
  const auto make = [](int index) { return Env(index); };
  EXPECT_EQ(Envs::start({.count = 0}, make).error().message,
            "a pool of 0 children: 1 to 1024 there can be");
  EXPECT_EQ(Envs::start({.count = 1, .open_max = 0}, make).error().message,
            "a pool in which no call may be open");
  EXPECT_EQ(Envs::start({.count = 1, .stop_grace = -1ms}, make).error().message,
            "a grace before a child is killed that is negative");
}

}  // namespace
}  // namespace trainyard::workers
