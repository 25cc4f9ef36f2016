#include "queue/rules/queue_news.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::queue {
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

/// The turn in which a batch with tasks of these requests is added to the run.
model::Turn adds(const std::vector<model::Request>& requests) {
  auto plan = std::make_shared<model::Plan>();
  for (const model::Request& request : requests) {
    plan->shapes.push_back({.terms = {.request = request}});
  }
  model::Turn turn;
  turn.events.push_back({.what = model::BatchAdded{.plan = std::move(plan)}});
  return turn;
}

TEST(QueueNews, ReportsThatItLooksForRoomOnceUntilItHasFoundSome) {
  QueueNews news;
  news.see(adds({{}, {}}));
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Group)})), std::nullopt);
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Gpus)})), "gpus 0 0\n");
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
  news.see(adds({{}, {}}));
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::NotYet), waits(1, model::Cause::Held)})),
            "found\n");
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Cpus)})), "cpus 0 0\n");
}

TEST(QueueNews, NamesTheFirstOfTheCausesAndEachChange) {
  QueueNews news;
  news.see(adds({{}, {}}));
  EXPECT_EQ(news.see(turn_of({waits(0, model::Cause::Gpus)})), "gpus 0 0\n");
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::Memory)})), "memory 0 0\n");
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::None)})), "gpus 0 0\n");
}

TEST(QueueNews, NamesTheSmallestRequestOfTheTasksThatWaitForTheFirstCause) {
  QueueNews news;
  news.see(adds({{.cpus = model::cpus(0)}, {.memory = gb(4), .cpus = model::cpus(8)}}));
  news.see(adds({{.memory = gb(8), .cpus = model::cpus(2)}}));
  EXPECT_EQ(news.see(turn_of({waits(1, model::Cause::Cpus)})), "cpus 4000000000 8000\n")
      << "the task without CPUs does not wait";
  EXPECT_EQ(news.see(turn_of({waits(2, model::Cause::Cpus), waits(0, model::Cause::Disk)})),
            "cpus 4000000000 2000\n");
}

TEST(QueueNews, IsReadAsItWasWrittenLast) {
  EXPECT_EQ(need_in("cpus 4000000000 8000\n"),
            (RoomNeed{.cause = model::Cause::Cpus, .memory = gb(4), .cpus = model::cpus(8)}));
  EXPECT_EQ(need_in("gpus 0 0\nfound\n"), std::nullopt);
  EXPECT_EQ(need_in("found\ngpus 0 0\n"), RoomNeed{.cause = model::Cause::Gpus});
  EXPECT_EQ(need_in("looks\n"), RoomNeed{}) << "a word that names no cause";
}

}  // namespace
}  // namespace trainyard::queue
