#include "schedule/ledger.h"

#include <random>

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

using Room = FreeRoom::Room;

Room room(int cpus, int gigabytes) { return {.cpus = model::cpus(cpus), .memory = gb(gigabytes)}; }

std::optional<std::uint32_t> first(const FreeRoom& free, std::uint32_t from, const Room& enough) {
  const auto found = free.first({from}, enough);
  return found ? std::optional(found->value) : std::nullopt;
}

TEST(FreeRoom, IsNowhereBeforeAMachineIsSet) {
  FreeRoom free;
  EXPECT_EQ(first(free, 0, room(0, 0)), std::nullopt);
  free.set({2}, room(0, 0));
  EXPECT_EQ(first(free, 0, room(0, 0)), 2) << "the two before are not known";
  EXPECT_EQ(first(free, 3, room(0, 0)), std::nullopt);
}

TEST(FreeRoom, IsTheFirstWithBothOfIt) {
  FreeRoom free;
  free.set({0}, room(8, 1));
  free.set({1}, room(1, 8));
  free.set({2}, room(4, 4));
  free.set({3}, room(4, 4));
  EXPECT_EQ(first(free, 0, room(4, 4)), 2);
  EXPECT_EQ(first(free, 3, room(4, 4)), 3);
  EXPECT_EQ(first(free, 0, room(5, 5)), std::nullopt) << "one has the CPUs, another one the memory";
}

TEST(FreeRoom, IsNotFoundWhereItWasForgottenOrIsLessThanNothing) {
  FreeRoom free;
  free.set({0}, room(8, 8));
  free.set({1}, {.cpus = {-4'000}, .memory = {-1'000'000}});
  free.forget({0});
  EXPECT_EQ(first(free, 0, room(0, 0)), std::nullopt);
  free.set({0}, room(1, 1));
  EXPECT_EQ(first(free, 0, room(1, 1)), 0);
}

/// The result of a look at all of them.
std::optional<std::uint32_t> looked_for(const std::vector<Room>& all, std::uint32_t from,
                                        const Room& enough) {
  for (std::uint32_t i = from; i < all.size(); ++i) {
    if (all[i].cpus >= enough.cpus && all[i].memory >= enough.memory) return i;
  }
  return std::nullopt;
}

TEST(FreeRoom, IsWhatALookAtAllOfThemFinds) {
  std::mt19937 random(7);
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (std::size_t machines = 1; machines < 40; ++machines) {
    FreeRoom free;
    std::vector<Room> all(machines, Room{.cpus = {-1}, .memory = {-1}});
    for (int step = 0; step < 200; ++step) {
      const auto machine = static_cast<std::uint32_t>(random() % machines);
      all[machine] = room(below(4), below(4));
      free.set({machine}, all[machine]);
      const Room enough = room(below(5), below(5));
      const auto from = static_cast<std::uint32_t>(random() % (machines + 2));
      ASSERT_EQ(first(free, from, enough), looked_for(all, from, enough));
    }
  }
}

}  // namespace
}  // namespace trainyard::schedule
