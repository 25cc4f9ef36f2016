// The memory of GPUs: what is reserved for each task, and what is left.
//
// As in schedule/ledger.h it is counted twice for each GPU, and the smaller sum is used. By the
// ledger: its memory less what every task on it holds. By the last reading: what the driver reports
// as free, less what was reserved and not taken yet. Processes of other users so make a GPU
// smaller, and nothing more. The reservations of other yards on the machine are counted in both
// sums like those of our tasks.
//
// The memory of a task is not free with its end: the driver has to show it (torch alone takes a
// second to give its memory back). Until then, or for Policy::gpu_linger_max, it is kept from all
// tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/gpu_presence.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/gpu_room.h"
#include "schedule/neighbours.h"

namespace trainyard::schedule {

class GpuLedger {
 public:
  GpuLedger(const model::Policy& policy, const model::Capacity& capacity);

  /// Takes in a reading. Attempts of tasks that are not in the ledger are ignored.
  void see(Instant at, const model::GpusSampled& reading);

  /// The memory of a GPU that answered late.
  void learn(model::GpuIndex gpu, Bytes total, Bytes kept_free);

  /// Reserves `each` for a task on all of these GPUs; 0: they are exclusively its own.
  void promise(model::TaskIndex task, const GpuSet& gpus, Bytes each,
               const model::GpuSharing& sharing = {});
  /// Changes the reservation of a task to `each` on each of its GPUs.
  void change(model::TaskIndex task, Bytes each);
  /// A task has ended: its memory lingers. Nothing changes for a task that holds no GPU.
  void release(model::TaskIndex task, Instant at);
  /// A task was not started after all: it has taken nothing of its reservation.
  void take_back(model::TaskIndex task);

  /// The reservations of the other yards on the machine, by GPU.
  void set_neighbours(std::span<const CardNeighbours> neighbours);
  /// Sets the drained GPUs, in ascending order. No new task is assigned to a drained GPU.
  void set_drained(const GpuSet& gpus);
  [[nodiscard]] bool is_drained(model::GpuIndex gpu) const { return cards_[gpu.value].drained; }

  /// The memory that could be reserved now, by GpuIndex. Costs nothing.
  [[nodiscard]] std::span<const GpuRoom> room() const { return room_; }

  /// The memory that could be reserved if nothing of ours ran, by the last reading.
  [[nodiscard]] std::vector<GpuRoom> room_alone() const;

  /// The memory that a task with GPUs holds on each of them, in the order of its GPUs: its
  /// reservation or what it has, whichever is more; of a whole GPU what it has.
  struct Share {
    model::GpuIndex gpu;
    Bytes memory;
    bool whole = false;
    /// Nothing: the task has ended, and shares the GPU with no task.
    std::optional<model::GpuSharing> sharing;
  };
  [[nodiscard]] std::vector<Share> shares_of(model::TaskIndex task) const;

  /// Memory of ended tasks that the driver does not show to be free.
  struct Lingering {
    model::GpuIndex gpu;
    Bytes memory;   ///< The memory that is kept for it.
    Bytes seen;     ///< The memory that it was known to have, or had reserved.
    Instant until;  ///< At the latest.
  };
  [[nodiscard]] std::span<const Lingering> lingering() const { return lingering_; }
  /// When the first of them is waited for no longer.
  [[nodiscard]] std::optional<Instant> first_linger_end() const;
  /// Drops those that were waited for long enough.
  void let_go(Instant at);

  /// Memory of others, and of ended tasks that did not free it in time, at the last reading. None
  /// if tasks are there and the driver does not say which process has what: it may be theirs.
  [[nodiscard]] Bytes of_others(model::GpuIndex gpu) const {
    const Card& card = cards_[gpu.value];
    return card.known || room_[gpu.value].holders == 0 ? card.others : Bytes{};
  }
  /// The user whose process keeps us off a GPU; nothing if there is none, or no user is avoided.
  [[nodiscard]] std::optional<std::uint32_t> avoided_for(model::GpuIndex gpu) const {
    return avoids_others_ ? cards_[gpu.value].other_user : std::nullopt;
  }
  /// The other user whose process computes there, also if no user is avoided.
  [[nodiscard]] std::optional<std::uint32_t> other_user_of(model::GpuIndex gpu) const {
    return cards_[gpu.value].other_user;
  }
  [[nodiscard]] const model::GpuPresence& presence_of(model::GpuIndex gpu) const {
    return cards_[gpu.value].presence;
  }
  /// The GPUs that are left to tasks that fit on no other (GpuPresence::is_last_resort), in
  /// ascending order.
  [[nodiscard]] const GpuSet& last_resorts() const { return last_resorts_; }
  /// A GPU of the task that did not answer at a reading shortly before, if there is one.
  [[nodiscard]] std::optional<model::GpuIndex> lost_gpu_of(model::TaskIndex task, Instant at) const;
  /// Whether a task has taken the memory that it takes of its GPUs when it begins: at least half of
  /// its reservation, and not clearly more than at the reading before. True for a task that holds
  /// no GPU, and where the driver does not say which process has what.
  [[nodiscard]] bool has_settled(model::TaskIndex task) const;
  /// The task has settled, as it reports itself: it is working.
  void settle(model::TaskIndex task);
  /// The most that a task was seen to have on one of its GPUs since they were reserved for it.
  [[nodiscard]] Bytes peak_of(model::TaskIndex task) const;

  /// The memory of a GPU that tasks and other processes use beyond their own part.
  struct Crowding {
    model::GpuIndex gpu;
    Bytes by_tasks;      ///< Memory of other tasks beyond their reservations.
    Bytes by_strangers;  ///< Growth of others since the task's part was reserved.
  };
  /// Whether others crowd a task that holds GPUs, at the last reading. Nothing where the driver
  /// does not say which process has what.
  [[nodiscard]] std::optional<Crowding> crowding_of(model::TaskIndex task) const;

  /// The memory of a task on this GPU beyond its reservation at the last reading; 0 if the GPU is
  /// its own.
  [[nodiscard]] Bytes excess_on(model::TaskIndex task, model::GpuIndex gpu) const;
  /// Whether the tasks that keep to their reservations could not take all of these on this GPU,
  /// even if the task `without` (nothing: none) were not there. False while an ended task's memory
  /// is about to be free.
  [[nodiscard]] bool is_overfull(model::GpuIndex gpu,
                                 std::optional<model::TaskIndex> without = {}) const;

 private:
  struct Holding {
    GpuSet gpus;
    Bytes each;  ///< Its reservation on each; 0: they are its own.
    model::GpuSharing sharing;
    std::vector<Bytes> measured;  ///< At the last reading, in the order of `gpus`.
    Bytes peak;                   ///< The most that it was seen to have on one of them.
    bool settled = false;         ///< See has_settled().
    /// The memory of strangers on each when it was reserved, or less since.
    std::vector<Bytes> of_strangers;
    /// A GPU that did not answer since then, and when it last did not.
    std::optional<model::GpuIndex> lost;
    Instant lost_at;

    /// The memory on its GPU number `place` beyond its reservation.
    [[nodiscard]] Bytes excess(std::size_t place) const {
      return each == Bytes{} ? Bytes{} : std::max(Bytes{}, measured[place] - each);
    }
  };
  struct Card {
    Bytes total;
    Bytes kept_free;
    Bytes used;                               ///< In use by anyone, at the last reading.
    bool known = true;                        ///< The driver says which process has what.
    Bytes others;                             ///< Memory of processes that belong to no task.
    Bytes of_strangers;                       ///< The same, of processes that the driver names.
    std::optional<std::uint32_t> other_user;  ///< The user whose process computes there.
    CardNeighbours neighbours;
    bool drained = false;
    model::GpuPresence presence;
  };

  static void measure(model::TaskIndex task, Holding& holding, const model::GpusSampled& reading,
                      Instant at);
  [[nodiscard]] Bytes measured_on(model::GpuIndex gpu) const;
  [[nodiscard]] Bytes promised_on(model::GpuIndex gpu) const;
  void update(model::GpuIndex gpu);
  void update_all();

  Duration linger_max_;
  bool avoids_others_;
  std::vector<Card> cards_;
  GpuSet last_resorts_;
  /// The result of update() from cards_, holdings_ and lingering_: it is read for each lane.
  std::vector<GpuRoom> room_;
  std::map<model::TaskIndex, Holding> holdings_;
  std::vector<Lingering> lingering_;
};

}  // namespace trainyard::schedule
