// The part of the scheduler that ends what runs on a machine before that is taken away, and begins
// nothing there that would not be done by then.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"
#include "schedule/ending.h"
#include "schedule/machine_book.h"
#include "schedule/machine_time.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

bool Scheduler::State::has_time_for(const model::Shape& shape, const MachineBook& book,
                                    Instant at) const {
  if (!book.time.last_term()) return true;
  const model::Terms& terms = shape.terms;
  MachineTime::Wish wish{.before = terms.early_signal.before,
                         .takes = longest_expected(shape),
                         .goes_on_where_it_was = model::goes_on_where_it_was(terms)};
  if (!wish.takes && terms.train_expected > Duration{0}) {
    wish.takes = terms.load_expected + terms.train_expected;
  }
  return book.time.is_enough_for(wish, at);
}

void Scheduler::State::end_before_machines(Instant at, model::Decision& out) {
  if (!first_end_ || *first_end_ > at) return;
  first_end_.reset();
  for (MachineBook& book : machines_) {
    end_before(book, at, out);
    const std::optional<Instant> next = book.time.next_end();
    if (next) first_end_ = std::min(first_end_.value_or(*next), *next);
  }
}

void Scheduler::State::end_before(MachineBook& book, Instant at, model::Decision& out) {
  const std::optional<Instant> due = book.time.next_end();
  const std::optional<Instant> last_term = book.time.last_term();
  if (!due || *due > at || !last_term) return;
  std::optional<Instant> next;
  for (const model::TaskIndex task : book.ledger.holders()) {
    Running& running = running_.at(task);
    const Duration before = shape_of(task).terms.early_signal.before;
    const Instant end = book.time.end_of(before).value_or(*last_term);
    if (end > at) next = std::min(next.value_or(end), end);
    // A task that has reported its outcome, or was told to end, is about to exit.
    if (end > at || running.cause != StopCause::None || running.word) continue;
    stop(running, StopCause::TimeOver, at, out);
    const bool is_late = running.deadline && *running.deadline > *last_term;
    if (!running.terminated && is_late) set_deadline(running, last_term);
  }
  book.time.set_next_end(next);
}

bool Scheduler::State::is_of_use(model::MachineIndex machine, Instant at) const {
  const bool is_known = machine.value < machines_.size() && machines_[machine.value].was_read &&
                        !machines_[machine.value].is_gone;
  // Its news is on its way.
  if (!is_known) return true;
  const MachineBook& book = machines_[machine.value];
  if (book.ledger.tasks() > 0) return true;
  if (count_waiting() == 0 || !book.time.is_enough_for({}, at)) return false;
  std::size_t in_room = 0;
  for (const WaitingRoom::Head& head : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    in_room += lane.tasks.size();
    const bool may_be_there =
        book.is_where(lane.request.where) && has_time_for(shapes_[lane.shape.value], book, at);
    if (may_be_there && could_have(request_on(lane, book), book)) return true;
  }
  // Tasks that wait for other tasks or for a time are not in the waiting room. They may be ready at
  // any moment.
  return count_waiting() > in_room;
}

}  // namespace trainyard::schedule
