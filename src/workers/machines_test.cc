#include "workers/machines.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

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
class FakeBridge final : public Bridge {
 public:
  explicit FakeBridge(Listener& listener) : listener_(listener) {}
  void start(Listener listener) override { listener_ = std::move(listener); }
  void send(MachineId /*to*/, std::string_view /*message*/) override {}
  void send_to_hub(std::string_view /*message*/) override {}
  [[nodiscard]] std::size_t message_bytes_max() const override { return 1'000'000; }
  [[nodiscard]] std::string name() const override { return "nowhere"; }

 private:
  Listener& listener_;
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
  /// Another machine asks to be let in, with worker 1.
  void another_comes() {
    const MachineHello hello{.machine = {.id = 2, .host = "host-b", .nodes = {{.node = 1}}},
                             .topology = "mesh"};
    listener.on_message(
        datagram_text({.kind = Datagram::Kind::Hello, .from = 2, .bytes = to_fields(hello)}));
  }

  sys::EventLoop loop;
  Bridge::Listener listener;
  Machines machines{loop, std::make_unique<FakeBridge>(listener),
                    Machines::Options{.own = {.id = 1, .host = "host-a", .nodes = {{.node = 0}}},
                                      .topology = "mesh",
                                      .run = "test",
                                      .elsewhere = 1,
                                      .note = [](const std::string&) {}}};
  Router router{loop, with_another_worker()};
};

TEST(Machines, KnowThatNobodyHasBegunTheRunWhenTheBridgeSaysSo) {
  FirstMachine first;
  EXPECT_FALSE(first.machines.is_alone());
  first.listener.on_no_hub();
  EXPECT_TRUE(first.machines.is_alone());
}

TEST(Machines, AreNotHeardWhereNoServerHasBeenReachedForThatLong) {
  constexpr Duration kHour{3'600'000};
  FirstMachine first;
  first.another_comes();
  ASSERT_TRUE(first.router.is_anybody_elsewhere());
  EXPECT_TRUE(first.machines.is_any_heard(kHour));
  first.listener.on_change(false);
  EXPECT_TRUE(first.machines.is_any_heard(kHour)) << "it has been heard before that";
  EXPECT_FALSE(first.machines.is_any_heard(Duration(0)));
}

}  // namespace
}  // namespace trainyard::workers
