#include "run/submissions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/result.h"
#include "journal/journal.h"
#include "link/control_server.h"
#include "model/event.h"
#include "model/turn.h"
#include "run/tasks.h"
#include "sys/event_loop.h"
#include "wire/control.h"

namespace trainyard::run {

Submissions::Submissions(sys::EventLoop& loop, journal::Journal& journal, Tasks& tasks,
                         std::uint32_t added, Add add)
    : loop_(loop), journal_(journal), tasks_(tasks), added_(added), add_(std::move(add)) {}

Submissions::~Submissions() {
  if (current_) refuse(current_->reply, "the run ended before it could be added");
  for (Waiting& each : waiting_) refuse(each.reply, "the run ended before it could be added");
}

void Submissions::refuse(link::Reply& reply, std::string why) {
  reply({.outcome = wire::Outcome::Error, .text = std::move(why)});
}

void Submissions::take(wire::Submit submission, link::Reply reply) {
  if (closed_) return refuse(reply, "the run is ending and takes nothing more");
  if (waiting_.size() == kWaitingMax) {
    return refuse(
        reply, fmt::format("{} submissions wait already; try again in a moment", waiting_.size()));
  }
  waiting_.push_back({.submission = std::move(submission), .reply = std::move(reply)});
  if (!current_ && waiting_.size() == 1) loop_.post([this] { begin_next(); });
}

void Submissions::begin_next() {
  if (current_ || waiting_.empty()) return;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  const auto go_to_next = [this] {
    if (!waiting_.empty()) loop_.post([this] { begin_next(); });
  };
  if (closed_) {
    refuse(next.reply, "the run is ending and takes nothing more");
    return go_to_next();
  }
  Result<Tasks::Accepted> accepted = tasks_.accept(next.submission, added_ + 1);
  if (!accepted) {
    refuse(next.reply, std::move(accepted.error().message));
    return go_to_next();
  }
  const std::size_t tasks = accepted->batch.plan->tasks.size();
  if (tasks > kTasksMax) {
    tasks_.drop_last();
    refuse(next.reply, fmt::format("it has {} tasks, and one submission may have {}; submit it in "
                                   "parts",
                                   tasks, kTasksMax));
    return go_to_next();
  }
  current_ = std::make_unique<Current>(std::move(*accepted), std::move(next.reply));
  if (const Result<void> begun = journal_.begin_batch(current_->accepted.batch); !begun) {
    return give_up(begun.error());
  }
  loop_.post([this] { go_on(); });
}

/// A few thousand tasks at a time: what else happens is heard in between.
void Submissions::go_on() {
  const Result<bool> done = journal_.write_more();
  if (!done) return give_up(done.error());
  if (!*done) return loop_.post([this] { go_on(); });
  ++added_;
  add_({.number = current_->accepted.batch.number,
        .plan = current_->accepted.batch.plan,
        .is_promised = true});
}

void Submissions::give_up(const Error& error) {
  // It counts for nothing, whether its rows can be taken away now or only with the next one.
  if (const Result<void> removed = journal_.give_up_batch(); !removed) {
    tasks_.note(fmt::format("journal: what was written of a submission stays there for now: {}",
                            removed.error().message));
  }
  tasks_.drop_last();
  refuse(current_->reply, fmt::format("the journal cannot be written: {}", error.message));
  current_.reset();
  if (!waiting_.empty()) loop_.post([this] { begin_next(); });
}

void Submissions::see(const model::Turn& turn) {
  const bool is_in = current_ && std::ranges::any_of(turn.events, [this](const model::Event& it) {
                       const auto* const batch = std::get_if<model::BatchAdded>(&it.what);
                       return batch != nullptr && batch->number == current_->accepted.batch.number;
                     });
  if (!is_in) return;
  current_->reply({.outcome = wire::Outcome::Done,
                   .text = std::move(current_->accepted.told),
                   .number = current_->accepted.batch.number});
  current_.reset();
  if (!waiting_.empty()) loop_.post([this] { begin_next(); });
}

}  // namespace trainyard::run
