// The reservations of the other yards on the machine, and whose turn it is when something comes
// free.
//
// Their reservations are counted by both of our ledgers like those of our own tasks. The part that
// they have not taken counts until a reading of the machine is younger than their report that they
// have: in between, it is in neither.
//
// The turn: each user has the same share of the GPUs (or of the CPUs and the memory), each run of a
// user the same part of that. A run with more gives way to one with less and waits, as far as that
// one could use what is free, perhaps with what comes free later; of two that have as much, the one
// that has waited longer goes first. A run that has waited for very long goes before all that have
// waited less, whatever its share is. No run gives way for ever to a user who starts nothing,
// whatever their files say and however many they have.
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

/// The reservations of neighbours on one GPU.
struct CardNeighbours {
  Bytes memory;
  Bytes unused;
  int tasks = 0;
  bool whole = false;
  model::GpuSharing sharing;
  bool ours = false;  ///< Another run of our own user is among them.

  friend bool operator==(const CardNeighbours&, const CardNeighbours&) = default;
};

/// Their reservations on the host.
struct HostNeighbours {
  Bytes memory;
  Bytes unused;
  model::Cpus cpus;

  friend bool operator==(const HostNeighbours&, const HostNeighbours&) = default;
};

class NeighbourBook {
 public:
  /// No run gives way to a wait that is younger: the waiting run may know of room already.
  static constexpr Duration kFreshWait{1'000};
  /// A run that has waited for this long goes before those that have waited less.
  static constexpr Duration kLongWait{600'000};
  /// No run gives way for longer than this to a user's runs that start nothing. After that the user
  /// loses the turn for as long, and each further time for twice as long.
  static constexpr Duration kPatience{900'000};
  static constexpr Duration kTurnLostMax{28'800'000};

  explicit NeighbourBook(const model::Capacity& capacity);

  void learn(model::GpuIndex gpu, const model::Gpu& what);
  /// Sets the list of all neighbours.
  void see(std::vector<model::Neighbour> neighbours);
  /// A reading of the machine, or of the GPUs: it includes all that neighbours had taken by then.
  void host_was_read();
  void gpus_were_read();

  [[nodiscard]] const std::vector<model::Neighbour>& all() const { return all_; }
  [[nodiscard]] const HostNeighbours& on_host() const { return host_; }
  /// By GPU.
  [[nodiscard]] std::span<const CardNeighbours> on_cards() const { return cards_; }

  /// A run that would start something, and what it has. Tasks on GPUs count in GPUs (half the
  /// memory of one is half a GPU), others as a part of the machine.
  struct Starter {
    model::Request request;
    GpuSet gpus;     ///< The GPUs that it would get.
    double has = 0;  ///< The share of all our tasks, without this one.
  };
  /// Whether it is another run's turn.
  [[nodiscard]] bool gives_way(const Starter& starter, Instant at);

  /// The other users whose runs hold something of the GPUs or wait for some.
  [[nodiscard]] std::set<std::uint32_t> users_on_gpus() const;
  /// Whether another run, of whichever user, waits for a whole GPU.
  [[nodiscard]] bool wait_for_whole_gpu() const;

  /// The part of the machine that one task takes, in the unit of Starter::has.
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
  /// By ticket: the part of each reservation that was not taken at the last reading.
  std::map<std::string, Seen> at_reading_;
  /// A user to whom this run gives way, or would. The turn is over when a run that had it has
  /// started something. Tasks that other runs of the user start do not count: a run that waits for
  /// something that never comes free would be in the way of all other users for as long.
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
