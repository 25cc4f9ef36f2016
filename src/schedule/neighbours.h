// What the other yards on the machine hold of it, and whose turn it is when something comes free.
//
// What they hold is counted by both of our ledgers as what our own tasks hold is. What of it they
// have not taken counts until a reading of the machine is younger than their word that they have:
// in between, it is in neither.
//
// Whose turn it is: each user has the same share of the GPUs (or of the CPUs and the memory), each
// run of a user the same part of that. Who has more gives way to who has less and waits, as far as
// that one could do with what is free; of two that have as much, to who has waited longer. Who has
// waited for very long is let through whatever its share is. Nobody gives way for ever to a user who
// starts nothing, whatever their files say and however many they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "schedule/gpu_room.h"

namespace trainyard::schedule {

/// What neighbours hold of one GPU.
struct CardNeighbours {
  Bytes memory;
  Bytes unused;
  int tasks = 0;
  bool whole = false;
  model::GpuSharing sharing;
  bool ours = false;  ///< Another run of our own user is among them.

  friend bool operator==(const CardNeighbours&, const CardNeighbours&) = default;
};

/// And of the host.
struct HostNeighbours {
  Bytes memory;
  Bytes unused;
  model::Cpus cpus;

  friend bool operator==(const HostNeighbours&, const HostNeighbours&) = default;
};

class NeighbourBook {
 public:
  /// Nobody gives way to a wait that is younger: whoever waits may have been told of room already.
  static constexpr Duration kFreshWait{1'000};
  /// Who has waited for so long is let through, whatever its share is.
  static constexpr Duration kLongWait{600'000};
  /// No run gives way for longer than this to a user's runs that start nothing. After that the user
  /// loses the turn for as long, and each further time for twice as long.
  static constexpr Duration kPatience{900'000};
  static constexpr Duration kTurnLostMax{28'800'000};

  explicit NeighbourBook(const model::Capacity& capacity);

  void learn(model::GpuIndex gpu, const model::Gpu& what);
  /// All that there are.
  void see(std::vector<model::Neighbour> neighbours);
  /// The machine was looked at; the GPUs were: what neighbours had taken by then is in it.
  void host_was_read();
  void gpus_were_read();

  [[nodiscard]] const std::vector<model::Neighbour>& all() const { return all_; }
  [[nodiscard]] const HostNeighbours& on_host() const { return host_; }
  /// By GPU.
  [[nodiscard]] std::span<const CardNeighbours> on_cards() const { return cards_; }

  /// Somebody who would start something, and what they have. Of tasks on GPUs in GPUs (half the
  /// memory of one is half a GPU), of others as a part of the machine.
  struct Starter {
    model::Request request;
    GpuSet gpus;     ///< That it would get.
    double has = 0;  ///< All that our tasks hold, without it.
  };
  /// Whether it is somebody else's turn.
  [[nodiscard]] bool gives_way(const Starter& starter, Instant at);

  /// The other users whose runs hold something of the GPUs or wait for some.
  [[nodiscard]] std::set<std::uint32_t> users_on_gpus() const;
  /// Whether another run, of whichever user, waits for a whole GPU.
  [[nodiscard]] bool wait_for_whole_gpu() const;

  /// What one task takes of the machine, as Starter::has counts.
  [[nodiscard]] double size_of(const model::Request& request, const GpuSet& gpus) const;

 private:
  struct Seen {
    Bytes unused;
    std::vector<Bytes> of_cards;  ///< By GPU.
  };
  [[nodiscard]] bool counts_memory(const model::Promises& its) const;
  [[nodiscard]] bool counts_cpus(const model::Promises& its) const;
  [[nodiscard]] double holding_of(const model::Promises& its, bool on_gpus) const;
  [[nodiscard]] double holding_of_user(std::uint32_t user, bool on_gpus) const;
  [[nodiscard]] double our_share(bool on_gpus) const;
  [[nodiscard]] bool could_use(const model::Want& want, const Starter& starter) const;
  void add_up();

  model::Capacity capacity_;
  std::vector<model::Neighbour> all_;
  HostNeighbours host_;
  std::vector<CardNeighbours> cards_;
  /// By ticket: what each had not taken when the machine was last looked at.
  std::map<std::string, Seen> at_reading_;
  /// A user to whom this run gives way, or would. The turn is over when a run that had it has
  /// started something. What other runs of the user start does not count: a run that waits for
  /// what never comes free would be in the way of all other users for as long.
  struct Turn {
    Instant first;             ///< Beginning of the turn.
    Instant last;              ///< Last time that the user was in the way, with a turn or without.
    Duration lost{kPatience};  ///< Time without a turn, after this one.
    /// The user's runs that had it, by ticket, and the amount that each has reserved: thousandths
    /// of a GPU, or of the machine.
    std::map<std::string, std::int64_t> runs = {};
  };
  [[nodiscard]] bool has_started(std::uint32_t user, bool on_gpus, Turn& turn) const;
  bool use_turn(const model::Neighbour& run, bool on_gpus, Instant at);

  std::map<std::pair<std::uint32_t, bool>, Turn> turns_;  ///< By user, and whether for GPUs.
};

}  // namespace trainyard::schedule
