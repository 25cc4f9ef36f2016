#include "ranks/parcel.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "link/arena.h"
#include "trainyard/buffer.h"

namespace trainyard::ranks {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<float> counted(std::size_t count, float first = 0) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = first++;
  return numbers;
}

Buffer of(const std::vector<float>& numbers) {
  return Buffer::copy_of<float>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

std::shared_ptr<SharedArenas> arenas() {
  return std::make_shared<SharedArenas>(link::ArenaPool::Options{.arenas_max = 20});
}

/// The parcel as it arrives at the other end, which sees the same arenas.
Result<Shareable> sent(const Parcel& parcel, const SharedArenas& from) {
  wire::Frame frame;
  frame.buffers = parcel.raw;
  frame.shared = parcel.shared;
  return unpack(
      parcel.payload, frame,
      [&](const wire::SharedBuffer& wanted) -> Result<std::shared_ptr<detail::BufferMemory>> {
        for (const auto& memory : parcel.held) {
          const auto place = from.find(memory.get());
          if (!place || place->arena != wanted.arena) continue;
          return std::make_shared<ForeignMemory>(
              memory->bytes().subspan(wanted.offset - place->offset, wanted.bytes), memory);
        }
        return std::unexpected(Error{"no such arena"});
      });
}

TEST(Parcel, CarriesValuesAndSmallBuffersInTheFrame) {
  const auto pool = arenas();
  Shareable shareable;
  shareable.set("loss", Json(0.5));
  shareable.set_header("round", 3);
  shareable.set_cookie("from", "a");
  shareable.set_buffer("b", of({1, 2}));
  shareable.set_buffer("a", Buffer::copy_of<std::int64_t>({1, 1}, {-7}));
  shareable.set_buffer("none", of({}));
  const Parcel parcel = pack(shareable, *pool).value();
  EXPECT_THAT(parcel.raw, SizeIs(3));
  EXPECT_THAT(parcel.shared, IsEmpty());
  const Shareable came = sent(parcel, *pool).value();
  EXPECT_EQ(came.values(), (Json{{"loss", 0.5}}));
  EXPECT_EQ(came.header("round"), 3);
  EXPECT_EQ(came.cookie("from"), "a");
  EXPECT_THAT(came.buffer("b")->as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(came.buffer("a")->as<std::int64_t>(), ElementsAre(-7));
  EXPECT_THAT(came.buffer("a")->shape(), ElementsAre(1, 1));
  EXPECT_THAT(came.buffer("none")->as<float>(), IsEmpty());
}

TEST(Parcel, CopiesLargerBuffersTogetherIntoOneArena) {
  const auto pool = arenas();
  const std::vector<float> one = counted(10'001);
  const std::vector<float> other = counted(20'000, 5);
  Shareable shareable;
  shareable.set_buffer("one", of(one));
  shareable.set_buffer("other", of(other));
  const Parcel parcel = pack(shareable, *pool).value();
  EXPECT_THAT(parcel.raw, IsEmpty());
  EXPECT_THAT(parcel.held, SizeIs(1));
  ASSERT_THAT(parcel.shared, SizeIs(2));
  EXPECT_EQ(parcel.shared[0].arena, parcel.shared[1].arena);
  EXPECT_EQ(parcel.shared[1].offset % 64, 0U);
  const Shareable came = sent(parcel, *pool).value();
  EXPECT_THAT(came.buffer("one")->as<float>(), ElementsAreArray(one));
  EXPECT_THAT(came.buffer("other")->as<float>(), ElementsAreArray(other));
}

TEST(Parcel, LeavesWhatWasFilledInPlaceWhereItIs) {
  const auto pool = arenas();
  Buffer placed = pool->alloc(DType::Float32, {3}).value();
  std::ranges::copy(counted(3), placed.fill<float>().begin());
  Shareable shareable;
  shareable.set_buffer("z placed", placed);
  shareable.set_buffer("a small", of({4}));
  const Parcel parcel = pack(shareable, *pool).value();
  EXPECT_THAT(parcel.held, ElementsAre(placed.memory()));
  EXPECT_THAT(parcel.raw, SizeIs(1));
  const Shareable came = sent(parcel, *pool).value();
  EXPECT_EQ(came.buffer("z placed")->bytes().data(), placed.bytes().data());
  EXPECT_THAT(came.buffer("a small")->as<float>(), ElementsAre(4));
}

TEST(Parcel, CopiesThoseInPlaceThatAreTooManyForAFrame) {
  const auto pool = arenas();
  Shareable shareable;
  for (std::size_t i = 0; i < kInPlaceMax + 2; ++i) {
    Buffer placed = pool->alloc(DType::Float32, {1}).value();
    placed.fill<float>()[0] = static_cast<float>(i);
    shareable.set_buffer(fmt::format("{:02}", i), std::move(placed));
  }
  const Parcel parcel = pack(shareable, *pool).value();
  EXPECT_THAT(parcel.shared, SizeIs(kInPlaceMax));
  EXPECT_THAT(parcel.raw, SizeIs(2));
  const Shareable came = sent(parcel, *pool).value();
  for (std::size_t i = 0; i < kInPlaceMax + 2; ++i) {
    EXPECT_THAT(came.buffer(fmt::format("{:02}", i))->as<float>(),
                ElementsAre(static_cast<float>(i)));
  }
}

TEST(Parcel, RefusesWhatNoFrameCanCarry) {
  const auto pool = arenas();
  Shareable many;
  for (std::size_t i = 0; i <= wire::kRankLimits.buffers_max; ++i) {
    many.set_buffer(fmt::format("{}", i), of({}));
  }
  EXPECT_EQ(pack(many, *pool).error().message,
            fmt::format("{} buffers, at most {} can be sent at once",
                        wire::kRankLimits.buffers_max + 1, wire::kRankLimits.buffers_max));
  Json deep = 1;
  for (int i = 0; i < wire::kValueLevelsMax; ++i) deep = Json::array({std::move(deep)});
  for (const auto set : {&Shareable::set, &Shareable::set_header, &Shareable::set_cookie}) {
    Shareable shareable;
    (shareable.*set)("tree", deep);
    EXPECT_EQ(pack(shareable, *pool).error().message, "values that are nested deeper than 60");
    (shareable.*set)("tree", deep[0]);
    const Parcel parcel = pack(shareable, *pool).value();
    const wire::RankRequest request = wire::ExecuteRequest{.task = "t", .payload = parcel.payload};
    EXPECT_TRUE(wire::read_rank_request(wire::to_fields(request)).has_value());
  }
}

TEST(Parcel, IsNotUnpackedWhenItContradictsItself) {
  const auto trouble = [](wire::NamedBuffer named, std::vector<std::string> raw) {
    wire::Frame frame;
    frame.buffers = std::move(raw);
    const wire::Payload payload{.buffers = {std::move(named)}};
    const auto none =
        [](const wire::SharedBuffer&) -> Result<std::shared_ptr<detail::BufferMemory>> {
      return std::unexpected(Error{"no such arena"});
    };
    const auto came = unpack(payload, std::move(frame), none);
    return came ? "none" : came.error().message;
  };
  const std::string four(4, '\0');
  EXPECT_EQ(trouble({.name = "w", .dtype = "float32", .shape = {1}}, {four}), "none");
  EXPECT_EQ(trouble({.name = "w", .dtype = "float32", .shape = {2}}, {four}),
            "the buffer 'w' has 4 bytes, and its shape needs 8");
  for (const wire::NamedBuffer& odd :
       {wire::NamedBuffer{.name = "w", .dtype = "float33", .shape = {1}},
        wire::NamedBuffer{.name = "w", .dtype = "float32", .shape = {-1}},
        wire::NamedBuffer{.name = "w", .dtype = "float32", .shape = {INT64_MAX, INT64_MAX}},
        wire::NamedBuffer{.name = "w", .dtype = "float32", .shape = {1}, .shared = true}}) {
    EXPECT_EQ(trouble(odd, {four}), "the buffer 'w' makes no sense or did not come");
  }
  EXPECT_EQ(trouble({.name = "w", .dtype = "float32", .shape = {1}}, {}),
            "the buffer 'w' makes no sense or did not come");
}

}  // namespace
}  // namespace trainyard::ranks
