// The part of the scheduler that knows of the disk on which tasks write.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/waiting.h"
#include "schedule/fits_nowhere.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

/// Comes last of all obstacles: who lacks disk holds back only those that would take what it waits
/// for.
model::Cause Scheduler::State::lack_of_disk(Bytes asked, const MachineBook& book) {
  const std::optional<Bytes> free = book.ledger.disk_free();
  if (asked == Bytes{} || !free) return model::Cause::None;
  if (asked > *free) return model::Cause::Disk;
  return book.disk_waits ? model::Cause::Reserved : model::Cause::None;
}

/// Skips the tasks that request more than the whole disk of any machine has.
void Scheduler::State::give_up_on_disk(Instant at, model::Decision& out) {
  if (interrupts_ > 0) return;
  Bytes total;
  for (const MachineBook& book : machines_) {
    const std::optional<model::DiskRoom>& disk = book.ledger.disk();
    if (!disk) return;
    total = std::max(total, disk->total);
  }
  // Gathered first: giving up takes tasks out of the lanes that are walked here.
  std::vector<model::TaskIndex> lost;
  for (const WaitingRoom::Head& head : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    if (lane.request.disk <= total) continue;
    lost.insert(lost.end(), lane.tasks.begin(), lane.tasks.end());
  }
  for (const model::TaskIndex task : lost) {
    give_up_waiting(task, more_than_the_disk(shape_of(task).terms.request.disk, total), at, out);
  }
}

}  // namespace trainyard::schedule
