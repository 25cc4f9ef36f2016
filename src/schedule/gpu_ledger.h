// What is promised to whom of the GPUs' memory, and what is left to promise.
//
// As in schedule/ledger.h it is counted twice for each GPU, and the smaller sum is believed: by the
// ledger (its memory less what every task on it holds), and by the last reading (what the driver
// calls free, less what was promised and not taken yet). Other people's processes so make a card
// smaller, and nothing more. What the other yards on the machine hold of it is counted in both sums
// as what our tasks hold.
//
// What a task had is not free with its end: the driver has to show it (torch alone takes a second
// to give back what it had). Until then, or for Policy::gpu_linger_max, it is held for nobody.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

  /// Takes in a reading. Attempts of tasks that are not in the ledger are not looked at.
  void see(Instant at, const model::GpusSampled& reading);

  /// What one has that was late.
  void learn(model::GpuIndex gpu, Bytes total, Bytes kept_free);

  /// Promises a task `each` on all of these GPUs; 0: they are its own.
  void promise(model::TaskIndex task, const GpuSet& gpus, Bytes each,
               const model::GpuSharing& sharing = {});
  /// Promises it so much on each from now on.
  void change(model::TaskIndex task, Bytes each);
  /// A task has ended: what it held lingers. For one that holds no GPU nothing is changed.
  void release(model::TaskIndex task, Instant at);
  /// A task was not started after all: it has had nothing of what it was promised.
  void take_back(model::TaskIndex task);

  /// What the other yards on the machine hold, by GPU.
  void set_neighbours(std::span<const CardNeighbours> neighbours);
  /// Sets the drained GPUs, in ascending order. No new task is assigned to a drained GPU.
  void set_drained(const GpuSet& gpus);
  [[nodiscard]] bool is_drained(model::GpuIndex gpu) const { return cards_[gpu.value].drained; }

  /// What could be promised now, by GpuIndex. Costs nothing.
  [[nodiscard]] std::span<const GpuRoom> room() const { return room_; }

  /// What could be promised if nothing of ours ran, by the last reading.
  [[nodiscard]] std::vector<GpuRoom> room_alone() const;

  /// What one that holds GPUs holds on each of them, in the order of its GPUs: what it was promised
  /// or has, whichever is more; of a whole GPU what it has.
  struct Share {
    model::GpuIndex gpu;
    Bytes memory;
    bool whole = false;
    /// Nothing: it has ended, and shares the GPU with nobody.
    std::optional<model::GpuSharing> sharing;
  };
  [[nodiscard]] std::vector<Share> shares_of(model::TaskIndex task) const;

  /// What ended tasks had, and the driver does not show to be free.
  struct Lingering {
    model::GpuIndex gpu;
    Bytes memory;   ///< That is held for it.
    Bytes seen;     ///< That it was known to have, or was promised.
    Instant until;  ///< At the latest.
  };
  [[nodiscard]] std::span<const Lingering> lingering() const { return lingering_; }
  /// When the first of them is waited for no longer.
  [[nodiscard]] std::optional<Instant> first_linger_end() const;
  /// Lets go of those that were waited for long enough.
  void let_go(Instant at);

  /// Memory of others, and of tasks that were waited for in vain, at the last reading. None where
  /// tasks are there and nobody says who has what: it may be theirs.
  [[nodiscard]] Bytes of_others(model::GpuIndex gpu) const {
    const Card& card = cards_[gpu.value];
    return card.known || room_[gpu.value].holders == 0 ? card.others : Bytes{};
  }
  /// For whose process a GPU is not taken; nothing where there is none, or nobody is avoided.
  [[nodiscard]] std::optional<std::uint32_t> avoided_for(model::GpuIndex gpu) const {
    return avoids_others_ ? cards_[gpu.value].other_user : std::nullopt;
  }
  /// The other user whose process computes there, also where nobody is avoided.
  [[nodiscard]] std::optional<std::uint32_t> other_user_of(model::GpuIndex gpu) const {
    return cards_[gpu.value].other_user;
  }
  [[nodiscard]] const model::GpuPresence& presence_of(model::GpuIndex gpu) const {
    return cards_[gpu.value].presence;
  }
  /// The one of a task's GPUs that did not answer at a reading not long before, if one did not.
  [[nodiscard]] std::optional<model::GpuIndex> lost_gpu_of(model::TaskIndex task, Instant at) const;
  /// Whether a task has taken what it takes of its GPUs when it begins: at least half of what it
  /// was promised, and not clearly more than at the reading before. True for one that holds no GPU,
  /// and where the driver does not say who has what.
  [[nodiscard]] bool has_settled(model::TaskIndex task) const;
  /// It has, as it says itself: it is at work.
  void settle(model::TaskIndex task);
  /// The most that a task was seen to have on one of its GPUs since it was promised them.
  [[nodiscard]] Bytes peak_of(model::TaskIndex task) const;

  /// How much tasks and other processes use of a GPU beyond what is theirs.
  struct Crowding {
    model::GpuIndex gpu;
    Bytes by_tasks;      ///< What other tasks have there beyond their promises.
    Bytes by_strangers;  ///< By how much others grew since the task was promised its part.
  };
  /// Whether others crowd a task that holds GPUs, at the last reading. Nothing where the driver
  /// does not say who has what.
  [[nodiscard]] std::optional<Crowding> crowding_of(model::TaskIndex task) const;

  /// What a task had of this GPU beyond its promise at the last reading; 0 where it is its own.
  [[nodiscard]] Bytes excess_on(model::TaskIndex task, model::GpuIndex gpu) const;
  /// Whether the tasks that keep to their promises could not take all that they were promised of
  /// this GPU, also when this task (nothing: none) were not there. Not while an ended task's memory
  /// is about to be free.
  [[nodiscard]] bool is_overfull(model::GpuIndex gpu,
                                 std::optional<model::TaskIndex> without = {}) const;

 private:
  struct Holding {
    GpuSet gpus;
    Bytes each;  ///< What it was promised on each; 0: they are its own.
    model::GpuSharing sharing;
    std::vector<Bytes> measured;  ///< At the last reading, in the order of `gpus`.
    Bytes peak;                   ///< The most that it was seen to have on one of them.
    bool settled = false;         ///< As has_settled() says.
    /// What strangers had of each when it was promised, or less since.
    std::vector<Bytes> of_strangers;
    /// One of them that did not answer since then, and when last.
    std::optional<model::GpuIndex> lost;
    Instant lost_at;

    /// What it has of its GPU of this place beyond its promise.
    [[nodiscard]] Bytes excess(std::size_t place) const {
      return each == Bytes{} ? Bytes{} : std::max(Bytes{}, measured[place] - each);
    }
  };
  struct Card {
    Bytes total;
    Bytes kept_free;
    Bytes used;                               ///< By anybody, at the last reading.
    bool known = true;                        ///< The driver says which process has what.
    Bytes others;                             ///< What processes have that are no task's.
    Bytes of_strangers;                       ///< The same, of those that the driver names.
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
  /// What cards_, holdings_ and lingering_ come to, by update(): it is asked for with each lane.
  std::vector<GpuRoom> room_;
  std::map<model::TaskIndex, Holding> holdings_;
  std::vector<Lingering> lingering_;
};

}  // namespace trainyard::schedule
