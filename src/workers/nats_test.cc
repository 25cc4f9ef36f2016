// Runs of several machines over real servers of NATS, on loopback.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/event_loop.h"
#include "sys/test_wait.h"
#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"
#include "workers/datagram.h"
#include "workers/machine_words.h"
#include "workers/nats_address.h"
#include "workers/nats_bridge.h"
#include "workers/parallel_options.h"
#include "workers/test_nats.h"
#include "workers/test_workers.h"

/// A thread that still connects when the process exits has objects of OpenSSL, which the exit has
/// made unreachable by then. Of our own code nothing is left out.
extern "C" const char* __lsan_default_suppressions();                                 // NOLINT
extern "C" const char* __lsan_default_suppressions() { return "leak:libcrypto.so"; }  // NOLINT

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr RemoteEvent<int> kSent{"counted"};
constexpr RemoteEvent<int> kKept{"kept"};
constexpr RemoteEvent<Buffer> kTensor{"tensor"};
constexpr RemoteEvent<std::string> kText{"text"};

ParallelOptions begins(const NatsServer& server, int workers, int elsewhere) {
  return {.workers = workers,
          .attach_to = {server.address()},
          .run = "test",
          .workers_elsewhere = elsewhere};
}
ParallelOptions joins(const NatsServer& server, int workers, int first_node) {
  return {.workers = workers,
          .node_ids = {first_node},
          .attach_to = {server.address()},
          .run = "test",
          .joins = true};
}

/// Each worker sends so many to all, and has what all others have sent, in order.
std::function<void(Worker&)> exchange(int count) {
  return [count](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    std::map<int, int> last;
    const Subscription on = bus.on(kSent, [&](int it) {
      int& before = last[it / 1'000'000];
      need(it % 1'000'000 == before + 1, "the next one");
      before = it % 1'000'000;
      ++heard;
    });
    need(worker.ready());
    for (int i = 1; i <= count; ++i) {
      bus.emit(kSent, (worker.node() * 1'000'000) + i, remote_only);
    }
    need(worker.barrier("sent"));
    const int all = count * (worker.count() - 1);
    need(heard == all, std::to_string(all) + " events, and not " + std::to_string(heard));
  };
}

TEST(Nats, CarriesAllEventsBothWaysBeforeABarrierIsPassed) {
  const NatsServer server;
  MachineProcess first(begins(server, 2, 2), exchange(5'000));
  MachineProcess second(joins(server, 2, 10), exchange(5'000));
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
}

TEST(Nats, KeepsTwoRunsOnOneServerApart) {
  const NatsServer server;
  const auto other = [](ParallelOptions options) {
    options.run = "other";
    return options;
  };
  MachineProcess first(begins(server, 1, 1), exchange(2'000));
  MachineProcess other_first(other(begins(server, 1, 1)), exchange(2'000));
  MachineProcess second(joins(server, 1, 10), exchange(2'000));
  MachineProcess other_second(other(joins(server, 1, 10)), exchange(2'000));
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
  EXPECT_EQ(other_first.result(), "well");
  EXPECT_EQ(other_second.result(), "well");
}

TEST(Nats, ConnectsThreeMachinesOneOfWhichComesLate) {
  const NatsServer server;
  MachineProcess second(joins(server, 1, 10), exchange(3'000));
  MachineProcess first(begins(server, 2, 4), exchange(3'000));
  MachineProcess third(joins(server, 3, 20), exchange(3'000));
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
  EXPECT_EQ(third.result(), "well");
}

TEST(Nats, CountsWorkersOfAllMachinesAndNumbersThem) {
  const NatsServer server;
  const auto work = [](Worker& worker) {
    need(worker.count() == 3, "three");
    need(worker.index() == (worker.node() < 10 ? worker.node() : 2), "an index of its own");
    need(worker.ready(3));
    const auto one_more = worker.ready(4);
    need(!one_more && one_more.error().message == "4 workers are waited for, and there are 3",
         "a refusal");
    const auto late = worker.node() == 10 ? worker.barrier("some", 20ms) : Result<void>();
    if (worker.node() == 10) {
      need(!late && late.error().message == "barrier 'some' waits for worker 0, worker 1",
           "names and not " + (late ? "" : late.error().message));
    }
    need(worker.barrier("end"));
  };
  MachineProcess first(begins(server, 2, 1), work);
  MachineProcess second(joins(server, 1, 10), work);
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
}

TEST(Nats, HasTopologiesThatDifferInWhoHearsWhom) {
  const NatsServer server;
  for (const Topology topology : {Topology::Star, Topology::Alone}) {
    const auto work = [topology](Worker& worker) {
      EventBus bus;
      worker.connect(bus);
      std::atomic<int> heard = 0;
      const Subscription on = bus.on(kSent, [&](int it) { heard += it; });
      bus.emit(kSent, 1 << worker.node(), remote_only);
      need(worker.barrier("sent"));
      int expected = 0;
      if (topology == Topology::Star) {
        expected = worker.node() == 0 ? (1 << 1) + (1 << 10) + (1 << 11) : 1;
      }
      need(heard == expected, std::to_string(expected) + " at " + std::to_string(worker.node()) +
                                  " and not " + std::to_string(heard));
    };
    const auto with = [topology](ParallelOptions options) {
      options.topology = topology;
      return options;
    };
    MachineProcess first(with(begins(server, 2, 2)), work);
    MachineProcess second(with(joins(server, 2, 10)), work);
    EXPECT_EQ(first.result(), "well") << to_text(topology);
    EXPECT_EQ(second.result(), "well") << to_text(topology);
  }
}

TEST(Nats, CarriesLargeBuffersAndWhatIsRetained) {
  const NatsServer server;
  // 20 MiB: more than a stream's window, or a queue, has room for.
  constexpr std::int64_t kCount = 5 << 20;
  const auto work = [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    need(worker.ready());
    // From a machine that joined, to the one that keeps it, and to one that asks for it later.
    if (worker.node() == 10) {
      Buffer tensor = worker.alloc(DType::Float32, {kCount}).value();
      const std::span<float> values = tensor.fill<float>();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
      bus.emit(kTensor, tensor, retained);
      bus.emit(kKept, 5, retained);
    }
    need(worker.barrier("kept"));
    if (worker.node() != 10) {
      const auto tensor = bus.wait_for(kTensor, 30s);
      need(tensor.has_value() && tensor->as<float>()[kCount - 1] == kCount - 1, "a tensor");
      const auto kept = bus.wait_for(kKept, 30s);
      need(kept.has_value() && *kept == 5, "what was kept");
    }
    need(worker.barrier("end"));
  };
  MachineProcess first(begins(server, 1, 2), work);
  MachineProcess second(joins(server, 1, 10), work);
  MachineProcess third(joins(server, 1, 20), work);
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
  EXPECT_EQ(third.result(), "well");
}

TEST(Nats, KeepsARetainedBufferOfAWorkerThatHasEnded) {
  const NatsServer server;
  const auto work = [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    need(worker.ready());
    if (worker.node() == 0) {
      bus.emit(kTensor, Buffer::copy_of<float>({20'000}, std::vector<float>(20'000, 3)), retained);
      return;
    }
    const auto is_over = [&] {
      const Json status = Json::parse(worker.status().value());
      return status.at("workers")[0].at("presence") == "finished";
    };
    if (worker.node() == 1) need(sys::eventually(is_over), "the end of the first one");
    need(worker.barrier("over"));
    const auto tensor = bus.wait_for(kTensor, 30s);
    need(tensor.has_value() && tensor->as<float>()[19'999] == 3, "what the first one has retained");
    need(worker.barrier("end"));
  };
  MachineProcess first(begins(server, 2, 1), work);
  MachineProcess second(joins(server, 1, 10), work);
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
}

TEST(Nats, GivesWhatIsRetainedOnceToAWorkerThatListensSeveralTimes) {
  const NatsServer server;
  const auto work = [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    need(worker.ready());
    if (worker.node() == 0) bus.emit(kKept, 5, retained);
    need(worker.barrier("kept"));
    std::atomic<int> heard = 0;
    std::vector<Subscription> subscriptions;
    subscriptions.push_back(bus.on(kKept, [&](const int& value) { heard += value; }));
    subscriptions.push_back(bus.on("ke*", [](std::string_view, const Json&) {}));
    subscriptions.push_back(bus.on("[k]ept", [](std::string_view, const Json&) {}));
    // It comes before the barrier is passed: by the same stream, which keeps the order.
    need(worker.barrier("wanted"));
    if (worker.node() == 10) need(heard == 5, std::to_string(heard / 5) + " times");
    need(worker.barrier("end"));
  };
  MachineProcess first(begins(server, 1, 1), work);
  MachineProcess second(joins(server, 1, 10), work);
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
}

TEST(Nats, EndsAllWhenAWorkerOfAnotherMachineFails) {
  const NatsServer server;
  const auto work = [](Worker& worker) {
    need(worker.ready());
    if (worker.node() == 10) throw std::runtime_error("boom");
    EventBus bus;
    worker.connect(bus);
    need(!bus.wait_for("never", worker.ending()), "an end");
  };
  MachineProcess first(begins(server, 1, 1), work);
  MachineProcess second(joins(server, 1, 10), work);
  EXPECT_EQ(first.result(), "worker 10 failed: std::runtime_error: boom");
  EXPECT_EQ(second.result(), "worker 10 failed: std::runtime_error: boom");
}

/// The first machine is this test: it is stopped before it knows that a worker has failed elsewhere.
TEST(Nats, EndsAsStoppedWhereAWorkerFailsWhileAnotherMachineIsStopped) {
  const NatsServer server;
  MachineProcess second(joins(server, 1, 10), [](Worker&) { throw std::runtime_error("boom"); });
  constexpr MachineId kFirst = 1;
  sys::EventLoop loop;
  auto first = connect_nats(loop, {.servers = plan_servers(begins(server, 1, 1)).value(),
                                   .run = "test",
                                   .own = kFirst,
                                   .is_hub = true});
  ASSERT_TRUE(first) << first.error().why;
  bool is_told = false;
  const auto answer = [&](const Datagram& to, Datagram::Kind kind, const std::string& fields) {
    (*first)->send(to.from,
                   datagram_text({.kind = kind, .from = kFirst, .to = to.from, .bytes = fields}));
  };
  (*first)->start(
      {.on_message =
           [&](std::string_view it) {
             const Datagram datagram = read_datagram(it).value();
             if (datagram.kind == Datagram::Kind::Hello) {
               answer(datagram, Datagram::Kind::Welcome,
                      to_fields(MachineWelcome{
                          .machines = {{.id = kFirst, .host = "host-a", .nodes = {{.node = 0}}}},
                          .index = 1,
                          .count = 2}));
             }
             if (datagram.kind != Datagram::Kind::End) return;
             answer(datagram, Datagram::Kind::End,
                    to_fields(MachineEnd{.why = "the run is stopped"}, 1'000));
             is_told = (*first)->is_drained();
           },
       .on_no_hub = [] {},
       .on_change = [](bool) {},
       .on_end = [](const std::string& why) { ADD_FAILURE() << why; },
       .on_trouble = [](const std::string& what) { ADD_FAILURE() << what; }});
  EXPECT_TRUE(sys::eventually([&] {
    loop.run_once(Duration(1));
    return is_told;
  }));
  EXPECT_EQ(second.result(), "worker 10 failed: std::runtime_error: boom (stopped)");
  EXPECT_THAT(second.notes(), HasSubstr("another machine ends the run: the run is stopped"));
}

/// The end goes past events that wait. Behind them it would not come before that worker is gone.
TEST(Nats, EndsAMachineWhoseWorkerReadsNothingWhenAWorkerOfAnotherOneFails) {
  const NatsServer server;
  const auto work = [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    Subscription on;
    if (worker.node() == 10) {
      on = bus.on(kText, [](const std::string&) {
        while (true) ::pause();
      });
    }
    need(worker.ready());
    while (worker.node() == 0 && !worker.ending().stop_requested()) {
      bus.emit(kText, std::string(1U << 20U, 'x'), remote_only);
    }
    if (worker.node() == 1) {
      // All that may go before that worker reads any of it.
      constexpr std::uint64_t kMoreThanGoes = std::uint64_t{16} << 20U;
      need(sys::eventually([&] {
             const Json status = Json::parse(worker.status().value());
             return status.at("machines")[0].at("bytes_out") >= kMoreThanGoes;
           }),
           "events that wait");
      throw std::runtime_error("boom");
    }
    static_cast<void>(bus.wait_for("never", worker.ending()));
  };
  ParallelOptions options = begins(server, 2, 1);
  options.stop_grace = 200ms;
  MachineProcess first(options, work);
  options = joins(server, 1, 10);
  options.stop_grace = 200ms;
  options.queue.events_max = 1;
  MachineProcess second(options, work);
  EXPECT_EQ(first.result(), "worker 1 failed: std::runtime_error: boom") << first.notes();
  EXPECT_EQ(second.result(), "worker 1 failed: std::runtime_error: boom") << second.notes();
}

TEST(Nats, LetsAWorkerOfAnotherMachineRejoinWhileABarrierWaits) {
  const NatsServer server;
  const Flag waits;
  const auto work = [&](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    const Subscription on = bus.on(kSent, [&](int it) { heard += it; });
    need(worker.ready());
    if (worker.node() == 10 && worker.life() == 1) {
      need(waits.wait(), "a barrier that waits");
      std::raise(SIGKILL);
    }
    if (worker.node() == 1) {
      const auto has_come = [&] {
        const Json barriers = Json::parse(worker.status().value()).at("barriers");
        return !barriers.empty() && barriers[0].at("arrived") == Json{0};
      };
      need(sys::eventually(has_come), "worker 0 at the barrier");
      waits.raise();
    }
    need(worker.barrier("met"));
    need(worker.node() != 10 || worker.life() == 2, "a second life");
    bus.emit(kSent, worker.node() + 1, remote_only);
    need(worker.barrier("sent"));
    need(heard == 1 + 2 + 11 - (worker.node() + 1), "an event of each other worker");
  };
  MachineProcess first(begins(server, 2, 1), work);
  ParallelOptions options = joins(server, 1, 10);
  options.auto_recover = true;
  options.retry_delay = 1ms;
  MachineProcess second(options, work);
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
  EXPECT_THAT(second.notes(), HasSubstr("worker 10 failed, and restarts in 1 ms"));
}

/// Two machines of a run, whose workers wait until it ends.
struct WaitingMachines {
  WaitingMachines(const NatsServer& server, std::chrono::milliseconds lost_after)
      : first(begins(server, 1, 1), work()), second(joins_within(server, lost_after), work()) {}
  static ParallelOptions joins_within(const NatsServer& server,
                                      std::chrono::milliseconds lost_after) {
    ParallelOptions options = joins(server, 1, 10);
    options.nats.lost_after = lost_after;
    return options;
  }
  [[nodiscard]] std::function<void(Worker&)> work() const {
    return [this](Worker& worker) {
      need(worker.ready());
      ready.raise();
      EventBus bus;
      worker.connect(bus);
      static_cast<void>(bus.wait_for("never", worker.ending()));
    };
  }

  Flag ready;
  MachineProcess first;
  MachineProcess second;
};

TEST(Nats, EndsAllWhenTheMachineThatBeganTheRunIsGone) {
  const NatsServer server;
  WaitingMachines machines(server, 500ms);
  ASSERT_TRUE(machines.ready.wait());
  machines.first.kill();
  EXPECT_THAT(machines.second.result(), HasSubstr("has not been heard of for 0.5 s"));
}

TEST(Nats, EndsTheMachinesOfARunThatAnotherMachineHasBegunAnew) {
  const NatsServer server;
  WaitingMachines machines(server, 4s);
  ASSERT_TRUE(machines.ready.wait());
  machines.first.kill();
  MachineProcess third(begins(server, 1, 1), exchange(100));
  EXPECT_THAT(machines.second.result(),
              AllOf(HasSubstr("NATS: the run 'test' cannot be continued: "),
                    EndsWith(" has started a new run of this name: join it again")));
  MachineProcess fourth(joins(server, 1, 10), exchange(100));
  EXPECT_EQ(third.result(), "well") << third.notes();
  EXPECT_EQ(fourth.result(), "well") << fourth.notes();
  EXPECT_THAT(third.notes(), HasSubstr(" has joined an earlier run 'test', and is refused"));
}

/// Ready, and then waits for a flag.
std::function<void(Worker&)> ready_until(const Flag& over, const Flag& ready) {
  return [&over, &ready](Worker& worker) {
    need(worker.ready());
    ready.raise();
    need(over.wait(), "an end");
  };
}

TEST(Nats, LetsNobodyBeginARunWhoseFirstMachineWasSuspendedForAMoment) {
  const NatsServer server;
  const Flag ready;
  const Flag over;
  const Flag ran;
  MachineProcess first(begins(server, 1, 1), ready_until(over, ready));
  MachineProcess second(joins(server, 1, 10), ready_until(over, ready));
  ASSERT_TRUE(ready.wait());
  first.suspend();
  MachineProcess third(begins(server, 1, 1), [&](Worker&) { ran.raise(); });
  EXPECT_TRUE(sys::eventually(
      [&] { return third.notes().contains("does not answer; waiting for it, for 30 s"); }));
  first.resume();
  EXPECT_THAT(third.result(), AllOf(HasSubstr("NATS: the run 'test' cannot be begun: "),
                                    HasSubstr(" has begun it already")));
  EXPECT_FALSE(ran.is_raised());
  over.raise();
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
}

TEST(Nats, EndsAFirstMachineThatWasSuspendedUntilAnotherOneHadBegunTheRun) {
  const NatsServer server;
  WaitingMachines before(server, 60s);
  ASSERT_TRUE(before.ready.wait());
  before.first.suspend();
  before.second.kill();
  const Flag ready;
  const Flag over;
  ParallelOptions options = begins(server, 1, 1);
  options.nats.lost_after = 4s;
  MachineProcess third(options, ready_until(over, ready));
  MachineProcess fourth(joins(server, 1, 10), ready_until(over, ready));
  ASSERT_TRUE(ready.wait());
  before.first.resume();
  EXPECT_THAT(before.first.result(),
              AllOf(testing::StartsWith("NATS: the run 'test' cannot be continued: "),
                    EndsWith(" has started a new run of this name")));
  over.raise();
  EXPECT_EQ(third.result(), "well") << third.notes();
  EXPECT_EQ(fourth.result(), "well") << fourth.notes();
}

TEST(Nats, WaitsForNoMachineThatDoesNotAnswerWhereAllAreToEnd) {
  const NatsServer server;
  const Flag ready;
  const Flag fails;
  const auto work = [&](Worker& worker) {
    need(worker.ready());
    if (worker.node() == 0) {
      ready.raise();
      need(fails.wait(), "a machine that does not answer");
      throw std::runtime_error("boom");
    }
    EventBus bus;
    worker.connect(bus);
    static_cast<void>(bus.wait_for("never", worker.ending()));
  };
  MachineProcess first(begins(server, 1, 1), work, {.others_within = Duration(100)});
  MachineProcess second(joins(server, 1, 10), work);
  ASSERT_TRUE(ready.wait());
  second.suspend();
  fails.raise();
  EXPECT_EQ(first.result(), "worker 0 failed: std::runtime_error: boom") << first.notes();
  EXPECT_THAT(first.notes(), HasSubstr("the other machines do not answer, and are not waited for"));
  second.resume();
  EXPECT_THAT(second.result(), EndsWith("worker 0 failed: std::runtime_error: boom"));
}

TEST(Nats, EndsThoseThatHaveComeWhereOthersHaveNotComeInTime) {
  const NatsServer server;
  const auto work = [](Worker& worker) {
    EventBus bus;
    worker.connect(bus);
    static_cast<void>(bus.wait_for("never", worker.ending()));
  };
  ParallelOptions options = begins(server, 1, 2);
  options.nats.lost_after = 1s;
  MachineProcess first(options, work);
  options = joins(server, 1, 10);
  options.nats.lost_after = 1s;
  MachineProcess second(options, work);
  const std::string why = "NATS: 1 of 2 workers of other machines have not come in 1 s";
  EXPECT_EQ(first.result(), why) << first.notes();
  EXPECT_THAT(first.notes(),
              HasSubstr(" of 2 workers of other machines: start them with --join --run test"));
  EXPECT_THAT(second.result(), EndsWith(" has begun the run, and is gone: " + why));
}

// --- who is let in ---

TEST(Nats, RefusesWhoIsNotToJoinAndSaysWhy) {
  const NatsServer server;
  const Flag refused;
  const auto work = [&](Worker& worker) { need(worker.ready() && refused.wait(), "an end"); };
  MachineProcess first(begins(server, 2, 1), work);
  MachineProcess same(joins(server, 1, 1), work);
  EXPECT_THAT(same.result(), HasSubstr("cannot be joined: the node id 1 is taken by a worker of"));
  MachineProcess many(joins(server, 2, 10), work);
  EXPECT_THAT(many.result(), HasSubstr("it brings 2 workers, and the run waits for 1"));
  ParallelOptions star = joins(server, 1, 10);
  star.topology = Topology::Star;
  MachineProcess other(star, work);
  EXPECT_THAT(other.result(), HasSubstr("the topology of the run is mesh, not star"));
  ParallelOptions failing = joins(server, 1, 10);
  failing.queue.when_full = WhenFull::Fail;
  MachineProcess policy(failing, work);
  EXPECT_THAT(policy.result(),
              HasSubstr("the policy of full queues in the run is 'block', not 'fail'"));
  refused.raise();
  MachineProcess second(joins(server, 1, 10), work);
  EXPECT_EQ(second.result(), "well");
  EXPECT_EQ(first.result(), "well");
  EXPECT_THAT(first.notes(), HasSubstr("may not join: the node id 1 is taken"));
}

TEST(Nats, NamesWhatIsWrongWithTheServerOrTheToken) {
  const NatsServer server("authorization { token: \"secret\" }\n");
  const auto error_of = [](ParallelOptions options) {
    MachineProcess machine(std::move(options), [](Worker&) {});
    return machine.result();
  };
  ParallelOptions wrong = begins(server, 1, 1);
  wrong.attach_to = {server.address("guess@")};
  const std::string text = error_of(wrong);
  EXPECT_THAT(text, HasSubstr("NATS: 127.0.0.1:" + std::to_string(server.port())));
  EXPECT_THAT(text, AllOf(HasSubstr("Authorization Violation"),
                          EndsWith("; the server must know the token or the user in its address"),
                          testing::Not(HasSubstr("conn.c"))));
  EXPECT_THAT(text, testing::Not(HasSubstr("guess")));
  wrong.attach_to = {server.address()};
  EXPECT_THAT(error_of(wrong), EndsWith("; set TRAINYARD_NATS_TOKEN, or TRAINYARD_NATS_USER and "
                                        "TRAINYARD_NATS_PASSWORD"));
  wrong.nats.token = "guess";
  EXPECT_THAT(error_of(wrong),
              EndsWith("; the server must know this token, or this user and password"));
  wrong.attach_to = {"nats://127.0.0.1:" + std::to_string(free_port())};
  wrong.nats.lost_after = 100ms;
  EXPECT_THAT(error_of(wrong), HasSubstr("No server available for connection"));
  ParallelOptions nobody = joins(server, 1, 10);
  nobody.nats = {.token = "secret", .lost_after = 300ms};
  EXPECT_THAT(error_of(nobody), HasSubstr("has begun the run 'test' in 0.3 s"));
}

TEST(Nats, LogsInAsAUserWithAPassword) {
  const NatsServer server("authorization { users = [ { user: trainer, password: s3cret } ] }\n");
  const auto with = [](ParallelOptions options, std::string password) {
    options.nats.user = "trainer";
    options.nats.password = std::move(password);
    return options;
  };
  MachineProcess wrong(with(begins(server, 1, 1), "guess"), exchange(1));
  EXPECT_THAT(wrong.result(), HasSubstr("Authorization Violation"));
  MachineProcess first(with(begins(server, 1, 1), "s3cret"), exchange(100));
  MachineProcess second(with(joins(server, 1, 10), "s3cret"), exchange(100));
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
}

TEST(Nats, NamesItselfOnceWhereTheServerThatComesBackHasAnotherToken) {
  NatsServer server("authorization { token: \"before\" }\n");
  const Flag there;
  ParallelOptions options = begins(server, 2, 1);
  options.nats.token = "before";
  MachineProcess machine(options, [&](Worker& worker) {
    there.raise();
    static_cast<void>(worker.ready());
  });
  ASSERT_TRUE(there.wait());
  server.kill();
  const NatsServer again("authorization { token: \"after\" }\n", server.port());
  EXPECT_THAT(
      machine.result(),
      testing::MatchesRegex("NATS: 127\\.0\\.0\\.1:[0-9]+: [^:]*Authorization Violation[^:]*; "
                            "the server must know this token, or this user and password"));
}

TEST(Nats, NamesThePermissionThatAUserDoesNotHaveAndStartsNothing) {
  const NatsServer server(R"(authorization { users = [
    { user: none, password: p, permissions: { publish: "other.>", subscribe: "other.>" } }
    { user: speaks, password: p, permissions: { publish: "trainyard.test.>", subscribe: "other.>" } }
    { user: both, password: p, permissions: { publish: "trainyard.test.>", subscribe: "trainyard.test.>" } }
  ] })");
  const Flag ran;
  const auto work = [&](Worker& worker) {
    ran.raise();
    need(worker.ready());
  };
  const auto of_user = [&](ParallelOptions options, std::string_view user) {
    options.attach_to = {server.address(std::string(user) + ":p@")};
    return options;
  };
  const std::string cure =
      "; this user must be allowed to publish and to subscribe to \"trainyard.test.>\"";
  for (const std::string_view user : {"none", "speaks"}) {
    for (const ParallelOptions& options : {begins(server, 1, 1), joins(server, 1, 10)}) {
      MachineProcess machine(of_user(options, user), work);
      const std::string text = machine.result();
      EXPECT_THAT(text, testing::StartsWith("NATS: 127.0.0.1:"));
      EXPECT_THAT(text, HasSubstr("Permissions Violation for Subscription to \"trainyard.test."));
      EXPECT_THAT(text, EndsWith(cure));
      EXPECT_EQ(machine.notes(), "");
    }
  }
  EXPECT_FALSE(ran.is_raised());
  MachineProcess first(of_user(begins(server, 1, 1), "both"), work);
  MachineProcess second(of_user(joins(server, 1, 10), "both"), work);
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
}

TEST(Nats, WaitsForAServerThatIsNotThereYet) {
  const int port = free_port();
  ParallelOptions first_options{.workers = 1,
                                .attach_to = {"nats://127.0.0.1:" + std::to_string(port)},
                                .run = "test",
                                .workers_elsewhere = 1};
  ParallelOptions second_options = first_options;
  second_options.workers_elsewhere = 0;
  second_options.joins = true;
  second_options.node_ids = {10};
  MachineProcess first(first_options, exchange(100));
  MachineProcess second(second_options, exchange(100));
  for (const MachineProcess* const each : {&first, &second}) {
    ASSERT_TRUE(
        sys::eventually([&] { return each->notes().contains("; waiting up to 60 s for it"); }));
  }
  const NatsServer server("", port);
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
}

TEST(Nats, ReportsThatNobodyHasBegunTheRun) {
  const NatsServer server;
  sys::EventLoop loop;
  const auto bridge = connect_nats(loop, {.servers = plan_servers(begins(server, 1, 1)).value(),
                                          .run = "test",
                                          .own = 1,
                                          .is_hub = true});
  ASSERT_TRUE(bridge) << bridge.error().why;
  bool is_reported = false;
  (*bridge)->start({.on_message = [](std::string_view) { ADD_FAILURE() << "its own message"; },
                    .on_no_hub = [&] { is_reported = true; },
                    .on_change = [](bool) {},
                    .on_end = [](const std::string& why) { ADD_FAILURE() << why; },
                    .on_trouble = [](const std::string& what) { ADD_FAILURE() << what; }});
  (*bridge)->send_to_hub("a greeting");
  EXPECT_TRUE(sys::eventually([&] {
    loop.run_once(Duration(1));
    return is_reported;
  }));
}

TEST(Nats, RefusesAForkOfAProcessThatHasUsedIt) {
  const NatsServer server;
  sys::EventLoop loop;
  ASSERT_TRUE(connect_nats(
      loop, {.servers = plan_servers(begins(server, 1, 1)).value(), .run = "test", .own = 1}));
  MachineProcess machine(begins(server, 1, 1), [](Worker&) {});
  EXPECT_EQ(machine.result(),
            "NATS: this process was forked after its parent had used libnats, whose threads are "
            "not in a fork: fork it before that, or start a program");
}

TEST(Nats, IsLeftAtOnceWhileAServerThatIsTriedDoesNotAnswer) {
  NatsServer server;
  const SilentServer silent;
  ParallelOptions options = begins(server, 1, 1);
  options.attach_to.push_back(silent.address());
  sys::EventLoop loop;
  auto bridge =
      connect_nats(loop, {.servers = plan_servers(options).value(), .run = "test", .own = 1});
  ASSERT_TRUE(bridge) << bridge.error().why;
  bool is_up = true;
  (*bridge)->start({.on_message = [](std::string_view) {},
                    .on_no_hub = [] {},
                    .on_change = [&](bool up) { is_up = up; },
                    .on_end = [](const std::string& why) { ADD_FAILURE() << why; },
                    .on_trouble = [](const std::string&) {}});
  server.kill();
  EXPECT_TRUE(sys::eventually([&] {
    loop.run_once(Duration(1));
    return !is_up;
  }));
  const sys::Descriptor connection = silent.accept();
  bridge->reset();
  char letter = 0;
  EXPECT_EQ(::recv(connection.get(), &letter, 1, MSG_DONTWAIT), -1) << "it is waited for";
}

TEST(Nats, TakesNothingOfAnotherConnectionForTheRestOfAMessage) {
  const BrokenServer server({"MSG SUBJECT 40\r\nonly a part of it",
                             "MSG SUBJECT 5\r\nwhole\r\nMSG SUBJECT 4\r\nnext\r\n"});
  ParallelOptions options{
      .workers = 1, .attach_to = {server.address()}, .run = "test", .workers_elsewhere = 1};
  sys::EventLoop loop;
  auto bridge =
      connect_nats(loop, {.servers = plan_servers(options).value(), .run = "test", .own = 1});
  ASSERT_TRUE(bridge) << bridge.error().why;
  std::vector<std::string> messages;
  std::vector<bool> changes;
  (*bridge)->start({.on_message = [&](std::string_view it) { messages.emplace_back(it); },
                    .on_no_hub = [] {},
                    .on_change = [&](bool is_up) { changes.push_back(is_up); },
                    .on_end = [](const std::string& why) { ADD_FAILURE() << why; },
                    .on_trouble = [](const std::string& what) { ADD_FAILURE() << what; }});
  EXPECT_TRUE(sys::eventually([&] {
    loop.run_once(Duration(1));
    return messages.size() == 2;
  }));
  EXPECT_EQ(messages, (std::vector<std::string>{"whole", "next"}));
  EXPECT_EQ(changes, (std::vector<bool>{false, true}));
}

TEST(Nats, IsGivenUpAtOnceWhileTheFirstServerDoesNotAnswer) {
  const SilentServer silent;
  sys::EventLoop loop;
  const ParallelOptions options{
      .workers = 1, .attach_to = {silent.address()}, .run = "test", .workers_elsewhere = 1};
  sys::Descriptor connection;
  loop.watch_readable(silent.descriptor(), [&] { connection = silent.accept(); });
  const auto bridge =
      connect_nats(loop, {.servers = plan_servers(options).value(), .run = "test", .own = 1},
                   [&] { return connection.is_open(); });
  ASSERT_FALSE(bridge);
  char letter = 0;
  EXPECT_EQ(::recv(connection.get(), &letter, 1, MSG_DONTWAIT), -1) << "it is waited for";
  loop.unwatch(silent.descriptor());
}

TEST(Nats, LetsNobodyBeginARunThatHasBegun) {
  const NatsServer server;
  const Flag refused;
  const Flag ran;
  const auto wait = [&](Worker& worker) {
    ran.raise();
    need(worker.ready(1) && refused.wait(), "an end");
  };
  const Flag begun;
  MachineProcess first(begins(server, 1, 1), [&](Worker& worker) {
    begun.raise();
    need(refused.wait(), "the refusal");
    exchange(100)(worker);
  });
  ASSERT_TRUE(begun.wait());
  ParallelOptions soon = begins(server, 1, 1);
  soon.stop_grace = 100ms;
  MachineProcess again(soon, wait);
  const std::string text = again.result();
  EXPECT_THAT(text, HasSubstr("NATS: the run 'test' cannot be begun: "));
  EXPECT_THAT(text, HasSubstr(" has begun it already: give this one another name, or join it"));
  EXPECT_FALSE(ran.is_raised()) << "it is refused before its workers start";
  EXPECT_THAT(first.notes(), HasSubstr(" begins a run 'test', too, and is refused"));
  refused.raise();
  MachineProcess second(joins(server, 1, 10), exchange(100));
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
}

TEST(Nats, IgnoresGarbageAndOtherVersionsWithANote) {
  const NatsServer server;
  const Flag sent;
  const auto work = [&](Worker& worker) { need(worker.ready() && sent.wait(), "an end"); };
  MachineProcess first(begins(server, 1, 1), work);
  RawClient stranger(server.port());
  constexpr MachineId kStranger = 7;
  stranger.subscribe(subject_of_machine("test", kStranger));
  std::string hello =
      datagram_text({.kind = Datagram::Kind::Hello, .from = kStranger, .bytes = "{}"});
  hello[4] = 9;
  // The machine may not be there yet, so the hello is repeated until it is received.
  ASSERT_TRUE(sys::eventually([&] {
    stranger.publish(subject_of_hub("test"), hello);
    stranger.flush();
    return first.notes().find("version 9") != std::string::npos;
  }));
  stranger.publish(subject_of_hub("test"), hello);
  EXPECT_THAT(stranger.wait_for("version 9 of the protocol is spoken there, 1 here"),
              HasSubstr("version 9 of the protocol is spoken there, 1 here"));
  for (int i = 0; i < 100; ++i) stranger.publish(subject_of_hub("test"), "garbage");
  stranger.publish(subject_of_hub("test"), hello.substr(0, 30));
  stranger.publish(subject_of_hub("test"),
                   datagram_text({.kind = Datagram::Kind::Piece, .from = 1, .bytes = "x"}));
  stranger.flush();
  sent.raise();
  MachineProcess second(joins(server, 1, 10), work);
  EXPECT_EQ(second.result(), "well");
  EXPECT_EQ(first.result(), "well");
  EXPECT_THAT(first.notes(), HasSubstr("as are all that follow"));
}

// --- servers that end ---

/// Worker 0 sends `count` events, half of them while something happens to the server; worker 10
/// receives all.
struct Interrupted {
  Flag half;
  Flag over;
  [[nodiscard]] std::function<void(Worker&)> work(int count) const {
    return [this, count](Worker& worker) {
      EventBus bus;
      worker.connect(bus);
      std::atomic<int> heard = 0;
      std::atomic<int> last = 0;
      const Subscription on = bus.on(kSent, [&](int it) {
        need(it > last, "an order");
        last = it;
        if (++heard == count / 2) half.raise();
      });
      need(worker.ready());
      for (int i = 1; worker.node() == 0 && i <= count; ++i) {
        bus.emit(kSent, i, remote_only);
        if (i == count / 2) need(half.wait(), "the first half");
      }
      need(worker.barrier("sent"));
      if (worker.node() == 0) return;
      need(over.is_raised(), "an interruption");
      need(heard == count && last == count, "all, and not " + std::to_string(heard));
    };
  }
};

TEST(Nats, LosesNothingWhenTheServerIsKilledAndComesBack) {
  NatsServer server;
  const Interrupted interrupted;
  MachineProcess first(begins(server, 1, 1), interrupted.work(40'000));
  MachineProcess second(joins(server, 1, 10), interrupted.work(40'000));
  ASSERT_TRUE(interrupted.half.wait());
  server.kill();
  ASSERT_TRUE(sys::eventually([&] { return first.notes().find("is lost") != std::string::npos; }));
  interrupted.over.raise();
  server.start();
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
  EXPECT_THAT(first.notes(), HasSubstr("connected again"));
}

TEST(Nats, SendsSmallerPiecesToAServerThatComesBackWithASmallerMaximum) {
  NatsServer server;
  const Flag there;
  const Flag lost;
  const auto work = [&](Worker& worker) {
    constexpr std::size_t kCount = 100'000;
    EventBus bus;
    worker.connect(bus);
    std::atomic<float> last = 0;
    const Subscription on =
        bus.on(kTensor, [&](const Buffer& it) { last = it.as<float>().back(); });
    need(worker.ready());
    if (worker.node() == 0) {
      there.raise();
      need(lost.wait(), "a loss of the server");
      bus.emit(kTensor, Buffer::copy_of<float>({kCount}, std::vector<float>(kCount, 3)),
               remote_only);
    }
    need(worker.barrier("sent"));
    need(worker.node() == 0 || last == 3, "the whole tensor");
  };
  MachineProcess first(begins(server, 1, 1), work);
  MachineProcess second(joins(server, 1, 10), work);
  ASSERT_TRUE(there.wait());
  server.kill();
  ASSERT_TRUE(sys::eventually([&] { return first.notes().find("is lost") != std::string::npos; }));
  lost.raise();
  const NatsServer again("max_payload: 8192\n", server.port());
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
}

TEST(Nats, NamesTheLimitOfTheServerWhereAMessageThatIsNotDividedIsTooLarge) {
  const NatsServer server("max_payload: 1024\n");
  const Flag ran;
  MachineProcess machine(begins(server, 200, 1), [&](Worker&) { ran.raise(); });
  EXPECT_THAT(
      machine.result(),
      testing::MatchesRegex("NATS: 127\\.0\\.0\\.1:[0-9]+: a message of [0-9]+ bytes cannot "
                            "be sent: the server takes at most 1024 bytes \\(max_payload\\)"));
  EXPECT_FALSE(ran.is_raised());
}

TEST(Nats, CountsWhatItDropsWhileThereIsNoServer) {
  NatsServer server;
  const Flag there;
  const Flag gone;
  const Flag sent;
  const auto work = [&](Worker& worker) {
    constexpr int kCount = 10'000;
    EventBus bus;
    worker.connect(bus);
    std::atomic<int> heard = 0;
    std::atomic<int> last = 0;
    std::atomic<std::uint64_t> lost = 0;
    const Subscription on_lost =
        bus.on(kEventsLost, [&](const EventsLost& it) { lost += it.count; });
    const Subscription on = bus.on(kSent, [&](int it) {
      need(it > last, "an order");
      last = it;
      ++heard;
    });
    need(worker.ready());
    if (worker.node() == 0) {
      there.raise();
      need(gone.wait(), "a loss of the server");
      for (int i = 1; i <= kCount; ++i) bus.emit(kSent, i, remote_only);
      need(worker.status().has_value(), "that the router has taken all");
      sent.raise();
    }
    need(worker.barrier("sent"));
    if (worker.node() == 0) return;
    need(lost > 0, "that some are dropped");
    need(heard + static_cast<int>(lost) == kCount && last == kCount,
         "each heard or counted: " + std::to_string(heard) + " + " + std::to_string(lost));
  };
  ParallelOptions options = begins(server, 1, 1);
  options.queue = {.events_max = 64, .bytes_max = 1U << 20U, .when_full = WhenFull::DropOldest};
  MachineProcess first(options, work);
  ParallelOptions joining = joins(server, 1, 10);
  joining.queue = options.queue;
  MachineProcess second(joining, work);
  ASSERT_TRUE(there.wait());
  server.kill();
  ASSERT_TRUE(sys::eventually([&] { return first.notes().find("is lost") != std::string::npos; }));
  gone.raise();
  ASSERT_TRUE(sent.wait());
  server.start();
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
}

TEST(Nats, EndsWhenTheServerDoesNotComeBack) {
  NatsServer server;
  const Flag begun;
  const Flag there;
  const auto work = [&](Worker& worker) {
    if (worker.node() == 0) begun.raise();
    need(worker.ready());
    if (worker.node() == 10) there.raise();
    EventBus bus;
    worker.connect(bus);
    static_cast<void>(bus.wait_for("never", worker.ending()));
  };
  ParallelOptions options = begins(server, 1, 1);
  options.nats.lost_after = 2s;
  MachineProcess first(options, work);
  // A machine that joins also waits for no longer than lost_after until the run begins.
  ASSERT_TRUE(begun.wait());
  options = joins(server, 1, 10);
  options.nats.lost_after = 2s;
  MachineProcess second(options, work);
  ASSERT_TRUE(there.wait());
  server.kill();
  const std::string why = "NATS: no server answers for 2 s; the last connection was to 127.0.0.1:" +
                          std::to_string(server.port());
  EXPECT_EQ(first.result(), why);
  EXPECT_EQ(second.result(), why);
}

/// A server of a cluster, which reaches the other one unless that is 0.
std::string cluster(int port, int other) {
  const std::string route =
      other == 0 ? "" : "\"nats-route://127.0.0.1:" + std::to_string(other) + "\"";
  return "server_name: s" + std::to_string(port) +
         "\ncluster { name: c, listen: 127.0.0.1:" + std::to_string(port) + ", routes: [ " + route +
         " ] }\n";
}

TEST(Nats, EndsOneOfTwoFirstMachinesWhenTheirServersReachEachOther) {
  const int middle = free_port();
  const NatsServer one(cluster(free_port(), middle));
  const NatsServer two(cluster(free_port(), middle));
  const auto work = [](const Flag& begun) {
    return [&begun](Worker& worker) {
      EventBus bus;
      worker.connect(bus);
      begun.raise();
      static_cast<void>(bus.wait_for("never", worker.ending()));
    };
  };
  const Flag one_begun;
  const Flag two_begun;
  const auto asks_often = [](ParallelOptions options) {
    options.nats.lost_after = 4s;
    return options;
  };
  MachineProcess first(asks_often(begins(one, 1, 1)), work(one_begun));
  MachineProcess second(asks_often(begins(two, 1, 1)), work(two_begun));
  ASSERT_TRUE(one_begun.wait());
  ASSERT_TRUE(two_begun.wait());
  // Each of the two servers learns from the third one where the other one is.
  const NatsServer third(cluster(middle, 0));
  ASSERT_TRUE(sys::eventually([&] { return first.has_ended() || second.has_ended(); }));
  MachineProcess& loser = first.has_ended() ? first : second;
  const MachineProcess& winner = first.has_ended() ? second : first;
  EXPECT_THAT(loser.result(), AllOf(HasSubstr("NATS: the run 'test' cannot be continued: "),
                                    EndsWith(" has started a new run of this name")));
  EXPECT_FALSE(winner.has_ended()) << winner.notes();
}

TEST(Nats, LosesNothingWhenOneOfTwoServersIsKilled) {
  const int left = free_port();
  const int right = free_port();
  NatsServer one(cluster(left, right));
  const NatsServer two(cluster(right, left));
  const Interrupted interrupted;
  ParallelOptions options = begins(one, 1, 1);
  options.attach_to = {one.address(), two.address()};
  MachineProcess first(options, interrupted.work(40'000));
  options = joins(one, 1, 10);
  options.attach_to = {two.address(), one.address()};
  MachineProcess second(options, interrupted.work(40'000));
  ASSERT_TRUE(interrupted.half.wait());
  one.kill();
  interrupted.over.raise();
  EXPECT_EQ(first.result(), "well") << first.notes();
  EXPECT_EQ(second.result(), "well") << second.notes();
  const auto server = [](int port) { return "127.0.0.1:" + std::to_string(port); };
  EXPECT_THAT(first.notes(),
              AllOf(HasSubstr("NATS: the connection to " + server(one.port()) + " is lost"),
                    HasSubstr("NATS: connected again, to " + server(two.port()) + "\n")));
}

/// Certificates and an nkey, as the tools that make them have them.
class Secrets {
 public:
  Secrets() {
    directory_.write("make", R"(set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=ca
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=server
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' > ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem
openssl genpkey -algorithm ed25519 -outform DER -out ed.der
openssl pkey -inform DER -in ed.der -pubout -outform DER -out edpub.der
python3 - <<'P'
import base64
def crc(b):
    c = 0
    for x in b:
        c ^= x << 8
        for _ in range(8): c = ((c << 1) ^ 0x1021) & 0xffff if c & 0x8000 else (c << 1) & 0xffff
    return c.to_bytes(2, 'little')
def enc(b): return base64.b32encode(b + crc(b)).decode().rstrip('=')
user, seed = 20 << 3, 18 << 3
open('user.pub', 'w').write(enc(bytes([user]) + open('edpub.der', 'rb').read()[-32:]))
open('user.nk', 'w').write(enc(bytes([seed | (user >> 5), (user & 31) << 3]) + open('ed.der', 'rb').read()[-32:]))
P
)");
    const std::string run = "cd " + directory_.path() + " && sh make >log 2>&1";
    check(std::system(run.c_str()) == 0, "openssl and python3");
  }
  [[nodiscard]] std::string path(std::string_view name) const { return directory_ / name; }
  [[nodiscard]] std::string key() const { return sys::content_of(path("user.pub")); }

 private:
  sys::TemporaryDirectory directory_;
};

// Its library signs one of 256 challenges wrongly.
TEST(Nats, IsAskedAgainWhenItRefusesAnNkeyAndNotWhenItRefusesAToken) {
  const Secrets secrets;
  const auto refused = [](NatsOptions nats) {
    RefusingServer server;
    ParallelOptions options{.workers = 1,
                            .attach_to = {server.address()},
                            .run = "test",
                            .workers_elsewhere = 1,
                            .nats = std::move(nats)};
    MachineProcess machine(std::move(options), [](Worker&) {});
    server.start();
    std::string why = machine.result();
    return std::pair(std::move(why), server.refused());
  };
  const auto [by_key, tries] =
      refused({.nkey = secrets.key(), .nkey_seed_file = secrets.path("user.nk")});
  EXPECT_EQ(tries, 4);
  EXPECT_THAT(by_key, AllOf(HasSubstr("Authorization Violation"),
                            HasSubstr("; the server must know the nkey (--nats-nkey)")));
  EXPECT_EQ(refused({.token = "guess"}).second, 1);
}

TEST(Nats, SpeaksThroughTlsWithAnNkey) {
  const Secrets secrets;
  const NatsServer server("tls { cert_file: \"" + secrets.path("server.pem") + "\", key_file: \"" +
                          secrets.path("server.key") +
                          "\" }\nauthorization { users: [ { nkey: " + secrets.key() + " } ] }\n");
  const auto with = [&](ParallelOptions options) {
    options.attach_to = {server.address("", "tls://")};
    options.nats = {.nkey = secrets.key(),
                    .nkey_seed_file = secrets.path("user.nk"),
                    .ca_file = secrets.path("ca.pem"),
                    .host_name = "127.0.0.1"};
    return options;
  };
  MachineProcess first(with(begins(server, 1, 1)), exchange(2'000));
  MachineProcess second(with(joins(server, 1, 10)), exchange(2'000));
  EXPECT_EQ(first.result(), "well");
  EXPECT_EQ(second.result(), "well");
  ParallelOptions stranger = with(joins(server, 1, 20));
  stranger.nats.ca_file = {};
  MachineProcess third(stranger, exchange(1));
  EXPECT_THAT(third.result(), HasSubstr("SSL Error"));
}

}  // namespace
}  // namespace trainyard::workers
