// Rules for tasks that need others, and for tasks with commands of users.
#include <optional>
#include <utility>

#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/outside.h"

namespace trainyard::sim {

void Checkers::hold_asked(const model::HoldAsked& news) {
  ++requests_;
  const bool known = news.task.value < outside_.tasks.size();
  const bool may = known && outside_.interrupts == 0 &&
                   outside_.task(news.task).verdict == model::Verdict::None &&
                   !outside_.running.contains(news.task) &&
                   outside_.task(news.task).on_hold != news.hold;
  answers_due_[news.request] = may;
  if (!may) return;
  if (news.hold) {
    counts_.count(Fault::PutOnHold);
    outside_.put_on_hold(news.task);
  } else {
    outside_.release_from_hold(news.task);
  }
  said_due_ = {.task = news.task, .on_hold = news.hold, .priority = {}};
}

void Checkers::priority_asked(const model::PriorityAsked& news) {
  ++requests_;
  const bool may = news.task.value < outside_.tasks.size() && outside_.interrupts == 0 &&
                   outside_.task(news.task).verdict == model::Verdict::None;
  answers_due_[news.request] = may;
  if (!may) return;
  counts_.count(Fault::OtherPriority);
  outside_.task(news.task).priority = news.priority;
  said_due_ = {
      .task = news.task, .on_hold = outside_.task(news.task).on_hold, .priority = news.priority};
}

void Checkers::changed(const model::SaidOfTask& change) {
  const SeenTask& task = outside_.task(change.task);
  if (const std::optional<model::SaidOfTask> due = std::exchange(said_due_, std::nullopt)) {
    expect_of(change.task,
              change.task == due->task && change.on_hold == due->on_hold &&
                  (!due->priority || change.priority == due->priority),
              "what was said of it is written down as it was said");
    return;
  }
  expect_of(change.task, !change.on_hold && task.verdict != model::Verdict::None,
            "is on hold until somebody releases it, or it has its verdict");
}

bool Checkers::follows_from_needs(model::TaskIndex index, model::Verdict verdict) const {
  switch (outside_.fate_of(index)) {
    case Outside::Fate::Skipped:
      return verdict == model::Verdict::Skipped;
    case Outside::Fate::NotNeeded:
      return verdict == model::Verdict::NotNeeded;
    case Outside::Fate::Open:
    case Outside::Fate::Runs:
      break;
  }
  return false;
}

void Checkers::check_who_stands_aside() {
  expect(!said_due_, "what somebody says of a task is written down at once");
  for (const model::TaskIndex index : outside_.aside) {
    const SeenTask& task = outside_.task(index);
    expect_of(index, outside_.interrupts == 0, "nobody stands aside after an interrupt");
    expect_of(index, outside_.groups[task.group.value].phase == model::GroupPhase::Running,
              "stands aside while its group runs");
    const Outside::Fate fate = outside_.fate_of(index);
    expect_of(index, fate == Outside::Fate::Open || (fate == Outside::Fate::Runs && task.on_hold),
              "waits for what it needs, or on hold, and for nothing else");
  }
}

}  // namespace trainyard::sim
