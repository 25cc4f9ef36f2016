// Buffers in memory that sender and receivers share: arenas, their pool, and what goes over a
// connection.
#include "link/arena.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "link/control_socket.h"
#include "link/frame_server.h"
#include "link/test_control_server.h"
#include "sys/event_loop.h"
#include "sys/outgoing.h"
#include "sys/passing.h"
#include "wire/hello.h"

namespace trainyard::link {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kPage = 4096;

sys::Descriptor copy_of(const sys::Descriptor& descriptor) {
  return sys::Descriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
}

TEST(Arena, IsSeenByWhoMapsItAndWrittenByItsOwnerAlone) {
  const Arena arena = Arena::make(kPage).value();
  const ArenaView view = ArenaView::map(arena.descriptor(), kPage).value();
  arena.bytes()[7] = std::byte{42};
  EXPECT_EQ(view.bytes()[7], std::byte{42});
  EXPECT_EQ(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, arena.descriptor().get(), 0),
            MAP_FAILED);
  EXPECT_EQ(::write(arena.descriptor().get(), "x", 1), -1);
  EXPECT_EQ(::ftruncate(arena.descriptor().get(), 1), -1);
}

TEST(Arena, IsNotMappedWhenItCouldBeCutShortOrIsTooLarge) {
  const sys::Descriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kPage), 0);
  EXPECT_EQ(ArenaView::map(unsealed, kPage).error().message,
            "a descriptor that is not of an arena");
  const sys::Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ArenaView::map(file, kPage).has_value());
  EXPECT_EQ(ArenaView::map(Arena::make(2 * kPage).value().descriptor(), kPage).error().message,
            "an arena of 8192 bytes, at most 4096 are allowed");
}

TEST(ArenaPool, UsesAnArenaAgainWhenAllHaveReleasedIt) {
  ArenaPool pool({.arenas_max = 4});
  std::uint64_t first = 0;
  {
    const ArenaPool::Loan loan = pool.lend(100'000).value();
    first = loan.buffer().arena;
    EXPECT_EQ(loan.bytes().size(), 100'000U);
    pool.hold(first);
  }
  EXPECT_NE(pool.lend(100'000).value().buffer().arena, first) << "somebody still reads it";
  pool.drop(first);
  EXPECT_EQ(pool.lend(90'000).value().buffer().arena, first);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(ArenaPool, IsBoundedAndMakesRoomForLargerBuffers) {
  ArenaPool pool({.arenas_max = 2, .bytes_max = std::size_t{1} << 20});
  {
    const ArenaPool::Loan one = pool.lend(1).value();
    const ArenaPool::Loan two = pool.lend(1).value();
    EXPECT_EQ(pool.lend(1).error().message, "no room for a buffer of 1 bytes: 2 arenas are in use");
  }
  const auto large = pool.lend(1 << 20);
  ASSERT_TRUE(large.has_value()) << "in the place of both";
  EXPECT_EQ(pool.lend((1 << 20) + 1).error().message,
            "no room for a buffer of 1048577 bytes: 1 arenas are in use");
}

TEST(ArenaExchange, RefusesWhatDidNotComeAndWhatLiesOutside) {
  const Arena arena = Arena::make(kPage).value();
  ArenaExchange exchange;
  const auto open = [&exchange](wire::SharedBuffer buffer) {
    const auto opened = exchange.open({.shared = {buffer}});
    return opened ? "" : opened.error().message;
  };
  EXPECT_EQ(open({.arena = 3, .bytes = 1}), "arena 3 was not handed over");
  ASSERT_TRUE(exchange.take(copy_of(arena.descriptor())));
  EXPECT_EQ(open({.arena = 3, .offset = kPage - 1, .bytes = 1}), "");
  EXPECT_EQ(open({.arena = 3, .offset = kPage, .bytes = 1}),
            "a buffer that does not lie within its arena");
  EXPECT_EQ(open({.arena = 3, .offset = ~std::uint64_t{0}, .bytes = 2}),
            "a buffer that does not lie within its arena");
}

TEST(ArenaExchange, TakesNoMoreDescriptorsAndArenasThanItMay) {
  const Arena arena = Arena::make(kPage).value();
  ArenaExchange exchange;
  for (std::size_t i = 0; i < ArenaExchange::kMappedMax; ++i) {
    ASSERT_TRUE(exchange.take(copy_of(arena.descriptor())));
    ASSERT_TRUE(exchange.open({.shared = {{.arena = i, .bytes = 1}}}));
  }
  for (std::size_t i = 0; i < ArenaExchange::kUnnamedMax; ++i) {
    ASSERT_TRUE(exchange.take(copy_of(arena.descriptor())));
  }
  EXPECT_EQ(exchange.take(copy_of(arena.descriptor())).error().message,
            "more descriptors than frames have named");
  // One more takes the place of the one that was named the longest ago: 1, as 0 was named again.
  ASSERT_TRUE(exchange.open({.shared = {{.arena = 0, .bytes = 1}}}));
  ASSERT_TRUE(exchange.open({.shared = {{.arena = 99, .bytes = 1}}}));
  while (exchange.take_unnamed()) {
  }
  EXPECT_TRUE(exchange.open({.shared = {{.arena = 0, .bytes = 1}}}));
  EXPECT_EQ(exchange.open({.shared = {{.arena = 1, .bytes = 1}}}).error().message,
            "arena 1 was not handed over");
}

TEST(ArenaExchange, HandsADescriptorOverOnceAndLetsGoOfEverythingAtTheEnd) {
  ArenaPool pool({});
  ArenaExchange exchange;
  {
    const ArenaPool::Loan loan = pool.lend(1).value();
    const wire::Frame frame{.shared = {loan.buffer()}};
    EXPECT_THAT(exchange.descriptors_with(frame, pool), SizeIs(1));
    EXPECT_THAT(exchange.descriptors_with(frame, pool), IsEmpty());
  }
  ASSERT_TRUE(exchange.released(1, pool));
  EXPECT_EQ(pool.in_use(), 1U) << "it was sent twice";
  EXPECT_EQ(exchange.released(2, pool).error().message, "arena 2 is released, and was not sent");
  exchange.drop_all(pool);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_FALSE(exchange.released(1, pool).has_value());
}

TEST(Outgoing, SendsDescriptorsNoLaterThanTheByteThatTheyBelongTo) {
  int ends[2] = {};  // NOLINT(*-c-arrays): what socketpair fills.
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const sys::Descriptor here(ends[0]);
  const sys::Descriptor there(ends[1]);
  const Arena arena = Arena::make(kPage).value();
  const int descriptor = arena.descriptor().get();
  sys::Outgoing outgoing;
  outgoing.add("plain", {});
  outgoing.add("one", {descriptor});
  outgoing.add("two", {descriptor, descriptor});
  outgoing.add("end", {});
  outgoing.send_some(here.get());
  EXPECT_TRUE(outgoing.empty());
  std::vector<std::pair<std::string, std::size_t>> came;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 64> bytes{};
    std::vector<sys::Descriptor> with;
    const auto count = sys::receive_with(there.get(), bytes, with, MSG_DONTWAIT);
    if (count > 0)
      came.emplace_back(std::string(bytes.data(), static_cast<std::size_t>(count)), with.size());
  }
  EXPECT_THAT(came, ElementsAre(std::pair("plainone", 1), std::pair("twoend", 2)));
}

/// A server that sends and receives buffers by arenas, and a client of it.
class Shared : public testing::Test {
 protected:
  void SetUp() override {
    server_ = FrameServer::listen(loop_, {.program = "test",
                                          .parents = socket_parents(),
                                          .on_trouble = [this](auto what) { troubles_ += what; }})
                  .value();
    server_->use(pool_);
    server_->open_door(wire::Role::Task,
                       {.takes = wire::FrameKind::Report,
                        .limits = wire::FrameLimits{},
                        .may_be_silent = true,
                        .admit = [this](ConnectionId connection, const auto&) -> Result<void> {
                          connection_ = connection;
                          return {};
                        },
                        .on_frame =
                            [this](ConnectionId from, const wire::Frame& frame) {
                              for (const auto buffer : server_->shared(from, frame)) {
                                heard_.push_back(std::to_integer<int>(buffer.back()));
                              }
                            },
                        .on_gone = [this](auto) { connection_ = 0; }});
    caller_ = std::make_unique<Caller>(server_->path());
    caller_->say(bytes_of({.kind = wire::FrameKind::Hello,
                           .fields = wire::to_fields(wire::Hello{.role = wire::Role::Task})}));
    ASSERT_TRUE(until([this] {
      caller_->hear();
      return caller_->received.size() == 1;
    }));
    caller_->received.clear();
  }

  bool until(const std::function<bool()>& holds) {
    const Duration end = sys::EventLoop::now() + kPatience;
    while (!holds() && sys::EventLoop::now() < end) loop_.run_once(Duration(10));
    return holds();
  }

  void report(const wire::Frame& frame, const std::vector<int>& descriptors) {
    sys::Outgoing outgoing;
    outgoing.add(bytes_of(frame), descriptors);
    outgoing.send_some(caller_->socket.get());
  }

  sys::EventLoop loop_;
  ArenaPool pool_{{}};
  std::unique_ptr<FrameServer> server_;
  std::unique_ptr<Caller> caller_;
  ConnectionId connection_ = 0;
  std::vector<int> heard_;
  std::string troubles_;
};

TEST_F(Shared, AreHeardFromASenderAndReleasedWhenTheyWereLookedAt) {
  const Arena arena = Arena::make(kPage).value();
  arena.bytes()[9] = std::byte{9};
  arena.bytes()[19] = std::byte{19};
  const auto frame = [](std::uint64_t offset) {
    return wire::Frame{.kind = wire::FrameKind::Report,
                       .shared = {{.arena = 5, .offset = offset, .bytes = 10}}};
  };
  report(frame(0), {arena.descriptor().get()});
  report(frame(10), {});
  ASSERT_TRUE(until([this] {
    caller_->hear();
    return caller_->received.size() == 2;
  })) << troubles_;
  EXPECT_THAT(heard_, ElementsAre(9, 19));
  const wire::Frame release{.kind = wire::FrameKind::Release, .topic = 5};
  EXPECT_THAT(caller_->received, ElementsAre(release, release));
  EXPECT_EQ(troubles_, "");
}

TEST_F(Shared, EndTheConnectionAloneWhenTheyAreNotWhatTheySay) {
  report({.kind = wire::FrameKind::Report, .shared = {{.arena = 5, .bytes = 1}}}, {});
  ASSERT_TRUE(until([this] {
    caller_->hear();
    return caller_->cut_off;
  }));
  EXPECT_THAT(troubles_, HasSubstr("was cut off: arena 5 was not handed over"));
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(Shared, EndTheConnectionThatReleasesWhatItDoesNotHave) {
  report({.kind = wire::FrameKind::Release, .topic = 7}, {});
  ASSERT_TRUE(until([this] {
    caller_->hear();
    return caller_->cut_off;
  }));
  EXPECT_THAT(troubles_, HasSubstr("arena 7 is released, and was not sent"));
}

TEST_F(Shared, EndTheConnectionThatHandsOverWithoutEnd) {
  const Arena arena = Arena::make(kPage).value();
  const std::vector<int> many(wire::kDescriptorsMax, arena.descriptor().get());
  const wire::Frame frame{.kind = wire::FrameKind::Report};
  // As many as two frames may have.
  report(frame, many);
  report(frame, many);
  report(frame, {arena.descriptor().get()});
  ASSERT_TRUE(until([this] {
    caller_->hear();
    return caller_->cut_off;
  }));
  EXPECT_THAT(troubles_, HasSubstr("more descriptors than frames have named"));
}

TEST_F(Shared, AreTakenFromNobodyWhoHasNotSaidHello) {
  const Arena arena = Arena::make(kPage).value();
  Caller stranger(server_->path());
  sys::Outgoing outgoing;
  outgoing.add("TYRD", {arena.descriptor().get()});
  outgoing.send_some(stranger.socket.get());
  ASSERT_TRUE(until([&stranger] {
    stranger.hear();
    return stranger.cut_off;
  }));
  EXPECT_THAT(troubles_, HasSubstr("descriptors are not taken here"));
  caller_->hear();
  EXPECT_FALSE(caller_->cut_off) << "the others do not notice";
}

/// `parallel --status` asks each program of trainyard that it finds.
TEST_F(Shared, SayNothingOfACommandThatAsksWhereNoneIsAnswered) {
  Caller command(server_->path());
  EXPECT_TRUE(
      command.say(bytes_of({.kind = wire::FrameKind::Hello,
                            .fields = wire::to_fields(wire::Hello{.role = wire::Role::Control})})));
  ASSERT_TRUE(until([&command] {
    command.hear();
    return command.cut_off;
  }));
  EXPECT_THAT(command.received, SizeIs(1)) << "it is told that its role is not taken";
  EXPECT_EQ(troubles_, "");
}

TEST_F(Shared, AreSentOnceAndUsedAgainWhenTheReaderHasReleasedThem) {
  std::vector<wire::Frame> came;
  ArenaExchange reader;
  for (int i = 1; i <= 3; ++i) {
    {
      const ArenaPool::Loan loan = pool_.lend(kPage).value();
      std::ranges::fill(loan.bytes(), static_cast<std::byte>(i));
      server_->send(connection_, {.kind = wire::FrameKind::Order, .shared = {loan.buffer()}});
    }
    std::array<char, 4096> bytes{};
    std::vector<sys::Descriptor> with;
    const auto count = sys::receive_with(caller_->socket.get(), bytes, with, 0);
    ASSERT_GT(count, 0);
    EXPECT_EQ(with.size(), i == 1 ? 1U : 0U);
    for (sys::Descriptor& each : with) ASSERT_TRUE(reader.take(std::move(each)));
    caller_->reader.set_limits({});
    caller_->reader.add({bytes.data(), static_cast<std::size_t>(count)});
    const wire::Frame frame = caller_->reader.next().value().value();
    const auto buffers = reader.open(frame).value();
    ASSERT_THAT(buffers, SizeIs(1));
    EXPECT_EQ(buffers[0][kPage - 1], static_cast<std::byte>(i));
    caller_->say(bytes_of({.kind = wire::FrameKind::Release, .topic = frame.shared[0].arena}));
    ASSERT_TRUE(until([this] { return pool_.in_use() == 0; }));
  }
  server_->send(connection_,
                {.kind = wire::FrameKind::Order, .shared = {pool_.lend(1).value().buffer()}});
  EXPECT_EQ(pool_.in_use(), 1U);
  caller_.reset();
  ASSERT_TRUE(until([this] { return connection_ == 0; }));
  EXPECT_EQ(pool_.in_use(), 0U) << "who has gone holds nothing";
}

}  // namespace
}  // namespace trainyard::link
