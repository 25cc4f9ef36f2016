#include "run/submissions.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace trainyard::run {

Submissions::Submissions(sys::EventLoop& loop, journal::Journal& journal, Tasks& tasks,
                         std::uint32_t added, Ways ways)
    : loop_(loop), journal_(journal), tasks_(tasks), added_(added), ways_(std::move(ways)) {}

Submissions::~Submissions() {
  if (current_) {
    std::optional<link::Reply>& reply = current_->reply;
    if (reply) refuse(*reply, "the run ended before the job was added");
  }
  for (Waiting& each : waiting_) refuse(each.reply, "the run ended before the job was added");
}

void Submissions::refuse(link::Reply& reply, std::string why) {
  reply({.outcome = wire::Outcome::Error, .text = std::move(why)});
}

void Submissions::take(wire::Submit submission, link::Reply reply) {
  if (closed_) return refuse(reply, "the run is ending and accepts no more submissions");
  if (waiting_.size() == kWaitingMax) {
    return refuse(
        reply, fmt::format("{} submissions wait already; try again in a moment", waiting_.size()));
  }
  waiting_.push_back({.submission = std::move(submission), .reply = std::move(reply)});
  if (!current_ && waiting_.size() == 1) loop_.post([this] { begin_next(); });
}

void Submissions::go_to_next() {
  if (!waiting_.empty() || round_is_due_) loop_.post([this] { begin_next(); });
}

void Submissions::begin_next() {
  if (current_) return;
  if (std::exchange(round_is_due_, false)) {
    std::optional<Tasks::Accepted> round = closed_ ? std::nullopt : tasks_.next_round(added_ + 1);
    if (round) return begin(*std::move(round), std::nullopt);
  }
  if (waiting_.empty()) return ways_.nothing_came();
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  if (closed_) {
    refuse(next.reply, "the run is ending and accepts no more submissions");
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
    refuse(next.reply,
           fmt::format("it has {} tasks, but a submission may have at most {}; submit it in parts",
                       tasks, kTasksMax));
    return go_to_next();
  }
  begin(std::move(*accepted), std::move(next.reply));
}

void Submissions::begin(Tasks::Accepted accepted, std::optional<link::Reply> reply) {
  current_ = std::make_unique<Current>(std::move(accepted), std::move(reply));
  if (const Result<void> begun = journal_.begin_batch(current_->accepted.batch); !begun) {
    return give_up(begun.error());
  }
  loop_.post([this] { go_on(); });
}

/// A few thousand tasks at a time: other events are taken in between.
void Submissions::go_on() {
  const Result<bool> done = journal_.write_more();
  if (!done) return give_up(done.error());
  if (!*done) return loop_.post([this] { go_on(); });
  ++added_;
  ways_.add({.number = current_->accepted.batch.number,
             .plan = current_->accepted.batch.plan,
             .is_promised = current_->reply.has_value()});
}

void Submissions::give_up(const Error& error) {
  // The batch has no effect, whether its rows can be removed now or only with the next one.
  if (const Result<void> removed = journal_.give_up_batch(); !removed) {
    tasks_.note(fmt::format("journal: an incomplete submission stays in it for now: {}",
                            removed.error().message));
  }
  tasks_.drop_last();
  std::string why = fmt::format("the journal cannot be written: {}", error.message);
  if (std::optional<link::Reply>& reply = current_->reply) {
    refuse(*reply, std::move(why));
  } else {
    tasks_.note("the next round cannot be added: " + why);
  }
  current_.reset();
  go_to_next();
}

void Submissions::see(const model::Turn& turn) {
  const bool is_in = current_ && std::ranges::any_of(turn.events, [this](const model::Event& it) {
                       const auto* const batch = std::get_if<model::BatchAdded>(&it.what);
                       return batch != nullptr && batch->number == current_->accepted.batch.number;
                     });
  if (is_in) {
    if (std::optional<link::Reply>& reply = current_->reply) {
      (*reply)({.outcome = wire::Outcome::Done,
                .text = std::move(current_->accepted.told),
                .number = current_->accepted.batch.number});
    }
    current_.reset();
  }
  const bool was_due = round_is_due_;
  round_is_due_ = was_due || (!closed_ && tasks_.has_next_round());
  // Otherwise a step is already posted that takes up all that waits.
  if (is_in || (round_is_due_ && !was_due)) go_to_next();
}

}  // namespace trainyard::run
