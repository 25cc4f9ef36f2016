#include "cli/queue_news.h"

#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "model/command.h"
#include "model/ids.h"
#include "model/turn.h"
#include "model/waiting.h"

namespace trainyard::cli {
namespace {

model::ReasonChanged waits(std::uint32_t shape, model::Cause cause) {
  return {.shape = {shape}, .reason = {.cause = cause}};
}

model::Turn turn_of(const std::vector<model::ReasonChanged>& reasons) {
  model::Turn turn;
  model::Decision& decision = turn.decisions.emplace_back();
  for (const model::ReasonChanged& reason : reasons) decision.changes.emplace_back(reason);
  return turn;
}

TEST(QueueNews, ReportsThatItLooksForRoomOnceUntilItHasFoundSome) {
  QueueNews news;
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Group)})), std::nullopt);
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Gpus)})), "gpus\n");
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::Disk)})), std::nullopt);
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::None)})), std::nullopt);
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::None)})), std::nullopt)
      << "nothing has started: whatever is in the way is not known yet";
  model::Turn started = turn_of({});
  started.decisions.front().commands.emplace_back(model::StartAttempt{});
  EXPECT_EQ(news.see(started), "found\n");
}

TEST(QueueNews, DoesNotLookForRoomWhileAllTasksAreHeldOrWaitForATime) {
  QueueNews news;
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::NotYet), waits(1, model::Cause::Held)})),
            "found\n");
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Cpus)})), "cpus\n");
}

TEST(QueueNews, NamesTheFirstOfTheCausesAndEachChange) {
  QueueNews news;
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Gpus)})), "gpus\n");
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::Memory)})), "memory\n");
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::None)})), "gpus\n");
}

TEST(QueueNews, IsReadAsItWasWrittenLast) {
  EXPECT_EQ(cause_in("gpus\n"), model::Cause::Gpus);
  EXPECT_EQ(cause_in("gpus\nfound\n"), std::nullopt);
  EXPECT_EQ(cause_in("found\nmemory\n"), model::Cause::Memory);
  EXPECT_EQ(cause_in("looks\n"), model::Cause::None) << "a word that names no cause";
}

}  // namespace
}  // namespace trainyard::cli
