#include "workers/machines.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/time.h"
#include "sys/event_loop.h"
#include "trainyard/parallel.h"
#include "workers/bridge.h"
#include "workers/datagram.h"
#include "workers/machine_words.h"
#include "workers/router.h"

namespace trainyard::workers {
namespace {

/// Nothing goes anywhere; the test says what comes.
struct Outside {
  Bridge::Listener listener;
  std::vector<std::string> sent;           ///< To single machines.
  std::function<void(Datagram)> on_asked;  ///< Something is sent to whoever has begun the run.
};
class FakeBridge final : public Bridge {
 public:
  explicit FakeBridge(Outside& outside) : outside_(outside) {}
  void start(Listener listener) override { outside_.listener = std::move(listener); }
  void send(MachineId /*to*/, std::string_view message) override {
    outside_.sent.emplace_back(message);
  }
  void send_to_hub(std::string_view message) override {
    if (outside_.on_asked) outside_.on_asked(read_datagram(message).value());
  }
  [[nodiscard]] std::size_t message_bytes_max() const override { return 1'000'000; }
  [[nodiscard]] std::string name() const override { return "nowhere"; }

 private:
  Outside& outside_;
};

/// The machine that has begun the run, with worker 0.
struct FirstMachine {
  FirstMachine() {
    machines.set_router(router);
    machines.start();
  }
  static Router::Options with_another_worker() {
    Router::Options options{.nodes = {{0, {}}}};
    Router::Options::Elsewhere others;
    others.unknown = 1;
    options.elsewhere = std::make_unique<const Router::Options::Elsewhere>(std::move(others));
    return options;
  }
  /// Another machine asks to be let in, with worker 1; or it has been, by `joined`.
  void another_comes(MachineId joined = 0) {
    const MachineHello hello{.machine = {.id = 2, .host = "host-b", .nodes = {{.node = 1}}},
                             .topology = "mesh"};
    outside.listener.on_message(datagram_text(
        {.kind = Datagram::Kind::Hello, .from = 2, .to = joined, .bytes = to_fields(hello)}));
  }

  sys::EventLoop loop;
  Outside outside;
  Machines machines{loop, std::make_unique<FakeBridge>(outside),
                    Machines::Options{.own = {.id = 1, .host = "host-a", .nodes = {{.node = 0}}},
                                      .topology = "mesh",
                                      .run = "test",
                                      .elsewhere = 1,
                                      .note = [](const std::string&) {}}};
  Router router{loop, with_another_worker()};
};

/// Machine 2, which has joined what machine 1 has begun.
struct JoinedMachine {
  explicit JoinedMachine(Duration within) : lost_after(within) {
    machines.start();
    welcome(1, {.error = {},
                .machines = {{.id = 1, .host = "host-a", .nodes = {{.node = 0}}}},
                .index = 1,
                .count = 2});
    machines.set_router(router);
  }
  static Router::Options of_another() {
    Router::Options options{.nodes = {{1, {}}}};
    options.elsewhere = std::make_unique<const Router::Options::Elsewhere>(
        Router::Options::Elsewhere{.joins = true,
                                   .on_left = [](int, const std::string&) {},
                                   .on_failed = [](int, const std::string&) {}});
    return options;
  }
  void welcome(MachineId from, const MachineWelcome& answer) {
    outside.listener.on_message(datagram_text(
        {.kind = Datagram::Kind::Welcome, .from = from, .to = 2, .bytes = to_fields(answer)}));
  }

  Duration lost_after;
  std::string broken;
  sys::EventLoop loop;
  Outside outside;
  Machines machines{
      loop, std::make_unique<FakeBridge>(outside),
      Machines::Options{.own = {.id = 2, .host = "host-b", .nodes = {{.node = 1}}},
                        .topology = "mesh",
                        .run = "test",
                        .joins = true,
                        .lost_after = lost_after,
                        .note = [](const std::string&) {},
                        .on_joined = [](const MachineWelcome&) {},
                        .on_broken = [this](const std::string& why) { broken = why; }}};
  Router router{loop, of_another()};
};

TEST(Machines, KnowThatNobodyHasBegunTheRunWhenTheBridgeSaysSo) {
  FirstMachine first;
  EXPECT_FALSE(first.machines.is_alone());
  first.outside.listener.on_no_hub();
  EXPECT_TRUE(first.machines.is_alone());
}

TEST(Machines, AreNotHeardWhereNoServerHasBeenReachedForThatLong) {
  constexpr Duration kHour{3'600'000};
  FirstMachine first;
  first.another_comes();
  ASSERT_TRUE(first.router.is_anybody_elsewhere());
  EXPECT_TRUE(first.machines.is_any_heard(kHour));
  first.outside.listener.on_change(false);
  EXPECT_TRUE(first.machines.is_any_heard(kHour)) << "it has been heard before that";
  EXPECT_FALSE(first.machines.is_any_heard(Duration(0)));
}

TEST(Machines, RefuseOneThatHasJoinedAnEarlierRunOfTheName) {
  FirstMachine first;
  first.another_comes(7);
  EXPECT_FALSE(first.router.is_anybody_elsewhere());
  EXPECT_EQ(first.router.awaited(), 1);
  ASSERT_EQ(first.outside.sent.size(), 1U);
  const auto answer = read_datagram(first.outside.sent.front());
  ASSERT_TRUE(answer && answer->kind == Datagram::Kind::Welcome);
  EXPECT_EQ(answer->to, 2U);
  EXPECT_EQ(read_machine_welcome(answer->bytes).value().error,
            "host-a has begun it anew since this machine joined: join it again");
}

TEST(Machines, SayNothingToOneThatAsksWhetherAnotherOneHasBegunTheRun) {
  FirstMachine first;
  first.another_comes();
  const auto is_welcome = [](const std::string& it) {
    return read_datagram(it).value().kind == Datagram::Kind::Welcome;
  };
  ASSERT_EQ(std::ranges::count_if(first.outside.sent, is_welcome), 1);
  first.another_comes(1);
  EXPECT_EQ(std::ranges::count_if(first.outside.sent, is_welcome), 1);
}

TEST(Machines, EndWhenAnotherMachineHasBegunTheRunAnew) {
  JoinedMachine second(Duration(80));
  std::vector<MachineId> joined;
  second.outside.on_asked = [&](const Datagram& it) {
    joined.push_back(it.to);
    second.welcome(3, {.error = "host-c has begun it anew"});
  };
  while (second.broken.empty()) second.loop.run_once(std::nullopt);
  EXPECT_EQ(second.broken, "NATS: the run 'test' cannot be continued: host-c has begun it anew");
  EXPECT_EQ(joined, std::vector<MachineId>{1});
}

TEST(Machines, HearNoRefusalWhileTheMachineThatBeganTheRunIsHeard) {
  JoinedMachine second(Duration(3'600'000));
  second.welcome(3, {.error = "host-c has begun it anew"});
  EXPECT_EQ(second.broken, "");
}

}  // namespace
}  // namespace trainyard::workers
