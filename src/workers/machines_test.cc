#include "workers/machines.h"

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainyard/parallel.h"
#include "workers/router.h"

namespace trainyard::workers {
namespace {

MachineEntry machine(MachineId id, const std::string& host, const std::vector<int>& nodes) {
  MachineEntry entry{.id = id, .host = host};
  for (const int node : nodes) entry.nodes.push_back({.node = node});
  return entry;
}
MachineHello hello(const MachineEntry& entry) {
  return {.machine = entry, .topology = "mesh", .when_full = "block"};
}

Admission of_three_more() {
  return Admission(
      {.own = machine(1, "a", {0, 1}), .topology = "mesh", .when_full = "block", .elsewhere = 3});
}

TEST(Admission, TellsEachOfThoseBeforeIt) {
  Admission admission = of_three_more();
  const MachineEntry b = machine(2, "b", {4});
  const MachineEntry c = machine(3, "c", {5, 6});
  EXPECT_EQ(admission.ask(hello(b)),
            (MachineWelcome{
                .machines = {machine(1, "a", {0, 1})}, .index = 2, .count = 5, .awaited = 2}));
  EXPECT_EQ(admission.ask(hello(c)),
            (MachineWelcome{
                .machines = {machine(1, "a", {0, 1}), b}, .index = 3, .count = 5, .awaited = 0}));
  // The machine asks again, as it has not received the answer: by now there is another one.
  EXPECT_EQ(admission.ask(hello(b)),
            (MachineWelcome{
                .machines = {machine(1, "a", {0, 1}), c}, .index = 2, .count = 5, .awaited = 0}));
  EXPECT_TRUE(admission.knows(3));
}

TEST(Admission, SaysWhyOneIsNotLetIn) {
  Admission admission = of_three_more();
  const auto error_of = [&](const MachineHello& it) { return admission.ask(it).error; };
  EXPECT_EQ(error_of(hello(machine(2, "b", {7, 1}))),
            "the node id 1 is taken by a worker of a: give others in node_ids (--node-ids)");
  EXPECT_EQ(error_of(hello(machine(2, "b", {5, 6, 7, 8}))),
            "it brings 4 workers, and the run waits for 3 (workers_elsewhere, --elsewhere)");
  EXPECT_EQ(error_of(hello(machine(2, "b", {}))), "it brings no workers");
  EXPECT_EQ(error_of({.machine = machine(2, "b", {5}), .topology = "star"}),
            "the topology of the run is mesh, not star");
  EXPECT_EQ(error_of({.machine = machine(2, "b", {5}), .topology = "mesh", .when_full = "fail"}),
            "the policy of full queues in the run is 'block', not 'fail' (when_full, --when-full)");
  EXPECT_FALSE(admission.knows(2));
  EXPECT_EQ(admission.awaited(), 3);
  EXPECT_EQ(error_of(hello(machine(2, "b", {5}))), "");
  EXPECT_EQ(error_of(hello(machine(3, "c", {5}))),
            "the node id 5 is taken by a worker of b: give others in node_ids (--node-ids)");
}

}  // namespace
namespace {

/// Nothing goes anywhere; the test says what comes.
struct Outside {
  Bridge::Listener listener;
  std::vector<std::string> sent;           ///< To single machines.
  bool has_room = true;                    ///< Nothing waits for room in the connection.
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
  [[nodiscard]] bool is_drained() const override { return outside_.has_room; }
  [[nodiscard]] std::size_t message_bytes_max() const override { return 1'000'000; }
  [[nodiscard]] std::string name() const override { return "nowhere"; }

 private:
  Outside& outside_;
};

/// A machine that begins the run, with worker 0.
struct FirstMachine {
  explicit FirstMachine(MachineId its_id = 1, Duration within = Duration(60'000),
                        Duration repeat_after = Duration(3'600'000))
      : id(its_id), lost_after(within), repeat_end_after(repeat_after) {
    outside.on_asked = [this](const Datagram& it) {
      asked.push_back(it.to);
      says_it_has_begun = read_machine_hello(it.bytes).value().has_begun;
    };
    machines.set_router(router);
    machines.start();
  }
  /// No other machine has received what it has sent.
  void begin() {
    outside.listener.on_no_hub();
    outside.listener.on_no_hub();
  }
  static Router::Options with_another_worker() {
    Router::Options options{.nodes = {{0, {}}}};
    Router::Options::Elsewhere others;
    others.unknown = 1;
    others.on_failed = [](int, const std::string&) {};
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
  /// Another machine begins the run. MachineHello says what `to` means.
  void another_begins(MachineId from, MachineId to, bool has_begun = false) {
    const MachineHello hello{.machine = {.id = from, .host = "host-c", .nodes = {{.node = 0}}},
                             .topology = "mesh",
                             .begins = true,
                             .has_begun = has_begun};
    outside.listener.on_message(datagram_text(
        {.kind = Datagram::Kind::Hello, .from = from, .to = to, .bytes = to_fields(hello)}));
  }
  /// The other machine has received all up to there of what was sent to it.
  void another_has(std::uint64_t received) {
    outside.listener.on_message(datagram_text({.kind = Datagram::Kind::Piece,
                                               .from = 2,
                                               .to = id,
                                               .received = received,
                                               .window = received}));
  }
  void another_ends(const MachineEnd& end, MachineId to = 1) {
    outside.listener.on_message(datagram_text(
        {.kind = Datagram::Kind::End, .from = 2, .to = to, .bytes = to_fields(end, 1'000)}));
  }
  void refuse(MachineId from) {
    outside.listener.on_message(datagram_text(
        {.kind = Datagram::Kind::Welcome,
         .from = from,
         .to = id,
         .bytes = to_fields(MachineWelcome{.error = "host-c has begun it already"})}));
  }

  MachineId id;
  Duration lost_after;
  Duration repeat_end_after;
  std::vector<MachineId> asked;    ///< Its requests to a machine that has begun the run, by `to`.
  bool says_it_has_begun = false;  ///< In the last of these.
  std::vector<std::string> notes;
  std::vector<MachineEnd> ends;  ///< As other machines have said.
  std::string broken;
  sys::EventLoop loop;
  Outside outside;
  Machines machines{
      loop, std::make_unique<FakeBridge>(outside),
      Machines::Options{.own = {.id = id, .host = "host-a", .nodes = {{.node = 0}}},
                        .topology = "mesh",
                        .run = "test",
                        .elsewhere = 1,
                        .lost_after = lost_after,
                        .doubt = Duration(3'600'000),
                        .repeat_end_after = repeat_end_after,
                        .note = [this](const std::string& it) { notes.push_back(it); },
                        .on_broken = [this](const std::string& why) { broken = why; },
                        .on_end = [this](const MachineEnd& it) { ends.push_back(it); }}};
  Router router{loop, with_another_worker()};
};

/// Machine 2, which has joined what machine 1 has begun.
struct JoinedMachine {
  explicit JoinedMachine(Duration within) : lost_after(within) {
    machines.start();
    welcome(1, {.machines = {{.id = 1, .host = "host-a", .nodes = {{.node = 0}}}},
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

/// Why the machine to which that was sent is refused.
std::string refusal_in(const std::string& message) {
  const auto datagram = read_datagram(message);
  if (!datagram || datagram->kind != Datagram::Kind::Welcome) return "none";
  return read_machine_welcome(datagram->bytes).value().error;
}

TEST(Machines, BeginTheRunWhenNoOtherOneHasReceivedTwoClaims) {
  FirstMachine first;
  EXPECT_THAT(first.asked, testing::Each(MachineId{0}));
  EXPECT_FALSE(first.asked.empty());
  first.outside.listener.on_no_hub();
  EXPECT_FALSE(first.machines.has_begun()) << "a server of a cluster may not know another one yet";
  first.outside.listener.on_no_hub();
  EXPECT_TRUE(first.machines.has_begun());
}

TEST(Machines, BeginTheRunWhenNobodyHasAnsweredForHalfOfTheTime) {
  FirstMachine first(1, Duration(80));
  while (!first.machines.has_begun()) first.loop.run_once(std::nullopt);
  EXPECT_THAT(first.asked, testing::Each(MachineId{0}));
  EXPECT_EQ(first.broken, "");
}

TEST(Machines, AnswerNoneThatJoinsBeforeTheRunIsTheirs) {
  FirstMachine first;
  first.another_comes();
  first.another_comes(7);
  EXPECT_EQ(first.outside.sent, std::vector<std::string>{});
  EXPECT_EQ(first.router.awaited(), 1);
}

TEST(Machines, DoNotRefuseEachOtherWhenTwoClaimTheRunAtOnce) {
  FirstMachine small(1);
  FirstMachine large(2);
  large.another_begins(1, 0);
  EXPECT_EQ(large.outside.sent, std::vector<std::string>{});
  small.another_begins(2, 0);
  ASSERT_EQ(small.outside.sent.size(), 1U);
  large.outside.listener.on_message(small.outside.sent.front());
  EXPECT_EQ(large.broken,
            "NATS: the run 'test' cannot be begun: host-a has begun it already: give this one "
            "another name, or join it");
  EXPECT_EQ(small.broken, "");
  small.begin();
  EXPECT_TRUE(small.machines.has_begun());
}

TEST(Machines, RefuseOneThatClaimsARunThatHasBegunAndNoteItOnce) {
  FirstMachine first(2);
  first.begin();
  first.another_begins(1, 0);
  first.another_begins(1, 0);
  ASSERT_EQ(first.outside.sent.size(), 2U);
  for (const std::string& each : first.outside.sent) {
    EXPECT_EQ(refusal_in(each),
              "host-a has begun it already: give this one another name, or join it");
  }
  EXPECT_EQ(first.notes,
            std::vector<std::string>{"host-c begins a run 'test', too, and is refused"});
  first.another_comes();
  EXPECT_EQ(first.outside.sent.size(), 2U) << "the other one may have begun the run";
  EXPECT_EQ(first.router.awaited(), 1);
}

TEST(Machines, SayToOneThatRefusesThemTooLateThatItHasLostTheRun) {
  FirstMachine first;
  first.begin();
  first.asked.clear();
  first.refuse(3);
  EXPECT_EQ(first.asked, std::vector<MachineId>{3});
  EXPECT_EQ(first.broken, "");
}

TEST(Machines, EndWithoutAWordToOthersWhenTheyHaveLostTheRun) {
  FirstMachine first;
  first.begin();
  first.another_begins(3, 1);
  EXPECT_EQ(first.broken,
            "NATS: the run 'test' cannot be continued: host-c has started a new run of this name");
  first.asked.clear();
  first.another_begins(3, 0);
  first.another_comes();
  first.another_comes(3);
  first.refuse(3);
  EXPECT_EQ(first.outside.sent, std::vector<std::string>{});
  EXPECT_EQ(first.asked, std::vector<MachineId>{});
}

TEST(Machines, AskWhetherTheRunIsStillTheirsWhenTheyAreConnectedAgain) {
  FirstMachine first;
  first.begin();
  first.asked.clear();
  first.outside.listener.on_change(false);
  first.outside.listener.on_change(true);
  EXPECT_EQ(first.asked, std::vector<MachineId>{1});
  // The one that is asked has begun the run, or claims it and is refused when it does so again.
  FirstMachine second(2);
  second.asked.clear();
  second.another_begins(1, 1);
  EXPECT_EQ(second.asked, std::vector<MachineId>{});
  second.begin();
  second.another_begins(1, 1);
  EXPECT_EQ(second.asked, std::vector<MachineId>{1});
  EXPECT_EQ(second.outside.sent, std::vector<std::string>{});
}

TEST(Machines, ShowAgainAndAgainThatTheyHaveBegunTheRun) {
  FirstMachine first(1, Duration(80));
  EXPECT_FALSE(first.says_it_has_begun);
  first.begin();
  first.asked.clear();
  while (first.asked.size() < 2) first.loop.run_once(std::nullopt);
  EXPECT_THAT(first.asked, testing::Each(MachineId{0}));
  EXPECT_TRUE(first.says_it_has_begun);
}

TEST(Machines, EndWhereOneWithASmallerIdHasBegunTheRunOutOfReach) {
  FirstMachine small(1);
  FirstMachine large(2);
  small.asked.clear();
  small.another_begins(2, 0, true);
  EXPECT_EQ(small.asked, std::vector<MachineId>{}) << "it has not begun the run, and is refused";
  small.begin();
  large.begin();
  large.asked.clear();
  large.another_begins(1, 0, true);
  EXPECT_EQ(large.asked, std::vector<MachineId>{});
  small.another_begins(2, 0, true);
  EXPECT_EQ(small.asked, std::vector<MachineId>{2});
  EXPECT_EQ(small.outside.sent, std::vector<std::string>{});
  large.another_begins(1, 2, true);
  EXPECT_EQ(large.broken,
            "NATS: the run 'test' cannot be continued: host-c has started a new run of this name");
  EXPECT_EQ(small.broken, "");
}

/// A machine that was suspended refuses the claim first, by which it learns that it has lost.
TEST(Machines, DoNotEndOneThatHasBegunTheRunWhileTheyAreInDoubt) {
  FirstMachine first(1);
  first.begin();
  first.another_begins(2, 0);
  first.asked.clear();
  first.another_begins(2, 0, true);
  EXPECT_EQ(first.asked, std::vector<MachineId>{});
}

TEST(Machines, DoNotRespondWhereNoServerHasBeenReachedForThatLong) {
  constexpr Duration kHour{3'600'000};
  FirstMachine first;
  first.begin();
  first.another_comes();
  ASSERT_TRUE(first.router.is_anybody_elsewhere());
  EXPECT_TRUE(first.machines.is_any_responding(kHour));
  first.outside.listener.on_change(false);
  EXPECT_TRUE(first.machines.is_any_responding(kHour)) << "a message came before that";
  EXPECT_FALSE(first.machines.is_any_responding(Duration(0)));
}

TEST(Machines, RefuseOneThatHasJoinedAnEarlierRunOfTheName) {
  FirstMachine first;
  first.begin();
  first.another_comes(7);
  EXPECT_FALSE(first.router.is_anybody_elsewhere());
  EXPECT_EQ(first.router.awaited(), 1);
  ASSERT_EQ(first.outside.sent.size(), 1U);
  EXPECT_EQ(read_datagram(first.outside.sent.front()).value().to, 2U);
  EXPECT_EQ(refusal_in(first.outside.sent.front()), "host-a has started a new run of this name");
}

TEST(Machines, SayNothingToOneThatAsksWhetherAnotherOneHasBegunTheRun) {
  FirstMachine first;
  first.begin();
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
    second.welcome(3, {.error = "host-c has started a new run of this name"});
  };
  while (second.broken.empty()) second.loop.run_once(std::nullopt);
  EXPECT_EQ(second.broken,
            "NATS: the run 'test' cannot be continued: host-c has started a new run of this name: "
            "join it again");
  EXPECT_EQ(joined, std::vector<MachineId>{1});
  const auto has = [&](std::string_view text) {
    return std::ranges::any_of(second.outside.sent,
                               [&](const std::string& it) { return it.contains(text); });
  };
  EXPECT_TRUE(has("cannot be continued: host-c has started a new run of this name"))
      << "to the first machine";
  EXPECT_FALSE(has("join it again")) << "which is the cure of this machine alone";
}

TEST(Machines, TakeNoRefusalWhileTheMachineThatBeganTheRunResponds) {
  JoinedMachine second(Duration(3'600'000));
  second.welcome(3, {.error = "host-c has started a new run of this name"});
  EXPECT_EQ(second.broken, "");
}

MachineEnd stopped() { return {.node = std::nullopt, .why = "the run is stopped"}; }

/// The ends that were sent, and their places among all messages.
std::map<std::size_t, MachineEnd> ends_in(const std::vector<std::string>& messages) {
  std::map<std::size_t, MachineEnd> ends;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Datagram datagram = read_datagram(messages[i]).value();
    if (datagram.kind == Datagram::Kind::End) ends[i] = read_machine_end(datagram.bytes).value();
  }
  return ends;
}

/// Bytes of the stream up to the last piece that was sent.
std::uint64_t bytes_in(const std::vector<std::string>& messages) {
  std::uint64_t bytes = 0;
  for (const std::string& each : messages) {
    const Datagram datagram = read_datagram(each).value();
    if (datagram.kind == Datagram::Kind::Piece) {
      bytes = std::max<std::uint64_t>(bytes, datagram.offset + datagram.bytes.size());
    }
  }
  return bytes;
}

TEST(Machines, SayThatTheRunEndsWhereTheStreamHasNoRoom) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  for (int i = 0; i < 100; ++i) {
    first.router.say_to_machines(NeedWord{.node = 0, .name = std::string(100'000, 'x')});
  }
  ASSERT_EQ(bytes_in(first.outside.sent), MachineStream::kWindowBytes);
  first.outside.sent.clear();
  const MachineEnd failed{.node = 0, .why = "boom"};
  first.machines.end(failed);
  EXPECT_EQ(ends_in(first.outside.sent), (std::map<std::size_t, MachineEnd>{{0, failed}}));
  EXPECT_EQ(first.outside.sent.size(), 1U);
}

TEST(Machines, SayThatTheRunEndsAgainAsThatMayBeLost) {
  FirstMachine first(1, Duration(60'000), Duration(1));
  first.begin();
  first.another_comes();
  first.machines.end(stopped());
  first.outside.sent.clear();
  while (ends_in(first.outside.sent).empty()) first.loop.run_once(std::nullopt);
  EXPECT_EQ(ends_in(first.outside.sent).begin()->second, stopped());
}

TEST(Machines, SayThatTheRunEndsBeforePiecesThatAreSentAgain) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  first.router.say_to_machines(NeedWord{.node = 0, .name = "n"});
  first.outside.listener.on_change(false);
  first.outside.sent.clear();
  first.machines.end(stopped());
  EXPECT_EQ(first.outside.sent, std::vector<std::string>{}) << "nothing goes through";
  first.outside.listener.on_change(true);
  EXPECT_EQ(ends_in(first.outside.sent), (std::map<std::size_t, MachineEnd>{{0, stopped()}}));
  EXPECT_GT(bytes_in(first.outside.sent), 0U);
}

TEST(Machines, SayToOneThatIsLetInLaterThatTheRunEnds) {
  FirstMachine first;
  first.begin();
  first.machines.end(stopped());
  EXPECT_EQ(first.outside.sent, std::vector<std::string>{});
  first.another_comes();
  // Behind the welcome: before it that machine does not know this one.
  EXPECT_EQ(ends_in(first.outside.sent), (std::map<std::size_t, MachineEnd>{{1, stopped()}}));
}

TEST(Machines, LeaveARunThatEndsWhenTheOtherMachineKnowsThat) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  first.machines.end(stopped());
  EXPECT_FALSE(first.machines.leave(""));
  first.another_has(bytes_in(first.outside.sent));
  EXPECT_FALSE(first.machines.leave("")) << "it has all of the stream, and not the end";
  first.another_ends(stopped());
  EXPECT_TRUE(first.machines.leave(""));
}

TEST(Machines, LeaveARunThatEndsWhereTheOtherMachineAcknowledgesNothingMore) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  first.machines.end(stopped());
  first.another_ends(stopped());
  EXPECT_TRUE(first.machines.leave(""));
  EXPECT_GT(bytes_in(first.outside.sent), 0U) << "that it leaves is said all the same";
}

TEST(Machines, LeaveARunThatGoesOnWhenTheOtherMachineHasAllOfTheStream) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  EXPECT_FALSE(first.machines.leave(""));
  first.another_has(bytes_in(first.outside.sent));
  EXPECT_TRUE(first.machines.leave(""));
}

TEST(Machines, LeaveWhenTheConnectionHasTakenWhatWasSaidLast) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  EXPECT_FALSE(first.machines.leave(""));
  first.outside.has_room = false;
  // The other machine leaves, and waits until this one has acknowledged that.
  first.machines.left(-1, "");
  EXPECT_FALSE(first.machines.leave(""));
  first.outside.has_room = true;
  EXPECT_TRUE(first.machines.leave(""));
}

TEST(Machines, SayThatTheyLeaveAtOnceWhereTheStreamHasNoRoom) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  first.machines.end(stopped());
  EXPECT_FALSE(first.machines.leave(""));
  first.outside.sent.clear();
  first.machines.leave_at_once();
  MachineEnd leaves = stopped();
  leaves.leaves = true;
  EXPECT_EQ(ends_in(first.outside.sent), (std::map<std::size_t, MachineEnd>{{0, leaves}}));
}

TEST(Machines, WaitNoLongerForOneThatLeavesAtOnce) {
  FirstMachine first;
  first.begin();
  first.another_comes();
  first.machines.end(stopped());
  MachineEnd leaves = stopped();
  leaves.leaves = true;
  ASSERT_TRUE(first.router.is_anybody_elsewhere());
  first.another_ends(leaves);
  EXPECT_EQ(first.ends, std::vector<MachineEnd>{leaves});
  EXPECT_FALSE(first.router.is_anybody_elsewhere());
  EXPECT_TRUE(first.machines.leave(""));
}

TEST(Machines, TakeAnEndOfMachinesThatTheyKnowAlone) {
  FirstMachine first;
  first.begin();
  const MachineEnd failed{.node = 1, .why = "boom"};
  first.another_ends(failed);
  EXPECT_EQ(first.ends, std::vector<MachineEnd>{}) << "it has not joined";
  first.another_comes();
  first.another_ends(failed, 7);
  EXPECT_EQ(first.ends, std::vector<MachineEnd>{}) << "it is for another machine";
  first.another_ends(failed);
  first.another_ends(stopped());
  EXPECT_EQ(first.ends, (std::vector<MachineEnd>{failed, stopped()}));
  EXPECT_EQ(first.notes, std::vector<std::string>{});
  first.outside.listener.on_message(
      datagram_text({.kind = Datagram::Kind::End, .from = 2, .to = 1, .bytes = "{}"}));
  EXPECT_EQ(first.ends.size(), 2U);
  EXPECT_EQ(first.notes, std::vector<std::string>{
                             "NATS: an end that is none came for run 'test' and is ignored"});
}

}  // namespace
}  // namespace trainyard::workers
