// The reservations that a yard has made for its tasks, kept up to date by its decisions and events:
// its neighbours read them. Pure: the time is an argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/gpu_presence.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::run {

class OwnPromises {
 public:
  /// A reservation on a GPU of which nothing was taken for so long is hidden from neighbours.
  static constexpr Duration kIdleMax{900'000};

  /// `gpu_steady_after` is that of the policy.
  OwnPromises(const model::Capacity& capacity, Duration gpu_steady_after);

  /// The additional reservations of a decision.
  [[nodiscard]] model::HeldPromise claim_of(const model::Decision& decided) const;
  /// The attempts that they are for.
  static std::vector<model::AttemptKey> attempts_of(const model::Decision& decided);
  /// Adds them.
  void hold(const model::Decision& decided, Instant at, std::int64_t unix_s);

  /// Takes in an event, and the decision about it; the reservations of its starts are held already.
  void see(const model::Event& event, const model::Decision& decided, std::int64_t unix_s);

  [[nodiscard]] model::HeldPromise held(Instant at) const;
  /// The drop-outs of each GPU that has had any.
  [[nodiscard]] std::vector<model::DropOuts> drop_outs() const;
  /// The claim of the waiting tasks that need GPUs or, if no such task waits, of the other tasks.
  [[nodiscard]] std::optional<model::Want> want() const;

 private:
  struct Attempt {
    model::AttemptKey key;
    Bytes memory;
    Bytes measured;  ///< At the last reading.
    model::Cpus cpus;
    std::int64_t since_unix_s = 0;
    std::vector<model::GpuIndex> gpus;
    Bytes each;  ///< On each of them; 0: they are its own.
    model::GpuSharing sharing;
    std::vector<Bytes> measured_on;  ///< In the order of `gpus`.
    Instant gpus_at;                 ///< The time of the reservation.
    bool has_taken = false;          ///< It has taken memory of any of them, ever.
    std::int64_t gpus_since_unix_s = 0;
  };
  enum class Kind : std::uint8_t { OfHost, OfGpus };

  [[nodiscard]] bool is_idle(const Attempt& attempt, Instant at) const;
  void add_cards(model::HeldPromise& to, const Attempt& attempt) const;
  void see_gpus(Instant at, const model::GpusSampled& reading, std::int64_t unix_s);
  void see_reason(const model::ReasonChanged& change, std::int64_t unix_s);
  [[nodiscard]] const model::Reason* oldest_want(Kind kind) const;
  std::int64_t& since(Kind kind) { return since_.at(static_cast<std::size_t>(kind)); }

  /// Whether a GPU answers, and until when the scheduler avoids it.
  struct Presence {
    model::GpuPresence presence;
    std::int64_t avoided_until_unix_s = 0;  ///< See model::DropOuts.
  };

  std::vector<model::Gpu> gpus_;
  std::vector<bool> processes_known_;  ///< By GPU: the driver says who has what.
  std::vector<Presence> presences_;    ///< By GPU.
  std::map<model::TaskIndex, Attempt> attempts_;
  std::map<model::ShapeIndex, model::Reason> wants_;  ///< Of shapes that lack room.
  /// The time since which a kind was wanted, and none of it was started or has ended.
  std::array<std::int64_t, 2> since_{};
};

}  // namespace trainyard::run
