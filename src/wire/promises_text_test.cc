#include "wire/promises_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard::wire {
namespace {

model::Promises sample() {
  return {.ticket = "0001764122400123-5f0c2a1b",
          .run = 46,
          .numbering = "03c9d1f2a4b5e678",
          .name = "sweep of lr",
          .memory_total = gb(64),
          .cpus_total = model::cpus(8),
          .held = {.memory = gb(18),
                   .unused = gb(2),
                   .cpus = {2500},
                   .tasks = 2,
                   .since_unix_s = 1764122400,
                   .cards = {{.uuid = "GPU-8a56",
                              .memory = gb(18),
                              .unused = gb(1),
                              .tasks = 2,
                              .sharing = {.utilization = 300, .max_per_gpu = 4},
                              .since_unix_s = 1764122400},
                             {.uuid = "MIG-41b3", .tasks = 1, .whole = true}}},
          .claimed = {.memory = gb(1), .unused = gb(1), .cpus = model::cpus(1), .tasks = 1},
          .want = model::Want{.gpus = 1, .gpu_memory = gb(8), .since_unix_s = 1764122460},
          .drop_outs = {
              {.uuid = "GPU-8a56", .number = 2, .times = 3, .avoided_until_unix_s = 1764125000},
              {.uuid = "MIG-41b3", .slice = 0, .times = 1}}};
}

std::string error_of(std::string_view text) {
  const Result<model::Promises> read = promises_from(text);
  return read ? "none" : read.error().message;
}

TEST(PromisesText, IsReadBackAsItWasWritten) {
  EXPECT_EQ(promises_from(to_text(sample())).value(), sample());
  const model::Promises nothing{.ticket = "1-a"};
  EXPECT_EQ(to_text(nothing), "ticket 1-a\nrun 0 \nmachine memory=0 cpus=0\n");
  EXPECT_EQ(promises_from(to_text(nothing)).value(), nothing);
}

TEST(PromisesText, LeavesOutLinesOfALaterVersion) {
  EXPECT_EQ(promises_from(to_text(sample()) + "colour blue\n").value(), sample());
}

TEST(PromisesText, NamesTheLineThatIsNoPromise) {
  EXPECT_EQ(error_of(""), "has no ticket");
  EXPECT_EQ(error_of("ticket a b\n"), "line 1 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\nheld memory=-1\n"), "line 2 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\nheld memory=9999999999999999999\n"), "line 2 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\nrun x y\n"), "line 2 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\nnumbering a b\n"), "line 2 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\nheld-card GPU-1 memory=1\nheld-card GPU-1 memory=1\n"),
            "line 3 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\nheld-card \x1b[2J memory=1\n"), "line 2 is no promise");
  EXPECT_EQ(error_of("ticket 1-a\ndrop-outs \x1b[2J times=1\n"), "line 2 is no promise");
}

TEST(PromisesText, BoundsWhatItReads) {
  std::string cards = "ticket 1-a\n";
  std::string drop_outs = cards;
  for (std::size_t i = 0; i <= kPromiseCardsMax; ++i) {
    cards += fmt::format("held-card GPU-{} memory=1\n", i);
    drop_outs += fmt::format("drop-outs GPU-{} times=1\n", i);
  }
  for (const std::string& text : {cards, drop_outs}) {
    EXPECT_EQ(error_of(text), fmt::format("line {} is no promise", kPromiseCardsMax + 2));
  }
  EXPECT_EQ(error_of(std::string(kPromiseBytesMax + 1, 'x')), "has more than 65536 bytes");
}

TEST(PromisesText, ShowsNothingOnATerminalThatActsOnIt) {
  const model::Promises read = promises_from("ticket 1-a\nrun 3 a\x1b[2Jb\n").value();
  EXPECT_EQ(read.name, "a\xEF\xBF\xBD[2Jb");
  EXPECT_LE(promises_from("ticket 1-a\nrun 3 " + std::string(500, 'n') + "\n").value().name.size(),
            kPromiseNameMax);
}

TEST(PromisesText, ASealedTextIsWholeOrIsNothing) {
  const std::string file = sealed("ticket 1-a\n", 17);
  EXPECT_EQ(unsealed(file), "ticket 1-a\n");
  EXPECT_EQ(unsealed(file + "what a longer one left"), "ticket 1-a\n");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(unsealed(std::string_view(file).substr(0, size)), std::nullopt) << size;
  }
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = changed[i] == '7' ? '8' : '7';
    EXPECT_EQ(unsealed(changed), std::nullopt) << "byte " << i;
  }
}

TEST(PromisesText, HalfOfTheNextWriteIsNotTakenForOne) {
  const std::string before = sealed("held memory=1000\n", 1);
  const std::string after = sealed("held memory=2000\n", 2);
  for (std::size_t written = 1; written < after.size(); ++written) {
    const std::string torn = after.substr(0, written) + before.substr(written);
    if (torn == before || torn == after) continue;
    EXPECT_EQ(unsealed(torn), std::nullopt) << torn;
  }
}

TEST(PromisesText, OfDrainsTheLinesCountThatCanBeRead) {
  const std::vector<model::Drain> drains{{.uuid = "GPU-1", .until_unix_s = 7, .now = true},
                                         {.uuid = "MIG-2"}};
  EXPECT_EQ(drains_from(to_text(drains)), drains);
  EXPECT_EQ(drains_from("\x1b[2J until=1\nGPU-1 until=-1\n" + to_text(drains)), drains);
  std::string many;
  for (std::size_t i = 0; i <= kDrainsMax; ++i) many += fmt::format("GPU-{} until=0\n", i);
  EXPECT_EQ(drains_from(many).size(), kDrainsMax);
}

TEST(PromisesText, TheJournalKeepsNeighboursOneAfterTheOther) {
  const std::vector<model::Neighbour> neighbours{
      {.user = 1001,
       .user_name = "mona li",
       .midnight_unix_s = 1764115200,
       .waits = Duration(61'000),
       .goes_first = true,
       .its = sample()},
      {.user = 0, .is_ours = true, .its = {.ticket = "2-b"}}};
  EXPECT_EQ(neighbours_from(neighbours_text(neighbours)), neighbours);
  EXPECT_TRUE(neighbours_from("").empty());
  EXPECT_EQ(neighbours_from(neighbours_text(neighbours) + "neighbour uid=x").size(), 2U);
}

}  // namespace
}  // namespace trainyard::wire
