#include "run/replay.h"

#include <expected>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "run/drive.h"
#include "run/event_check.h"
#include "schedule/scheduler.h"
#include "wire/events.h"

namespace trainyard::run {
namespace {

using Row = journal::RecordingReader::Row;

/// Plays one event behind: what a refusal takes out of a decision is known with the event after it.
class Player {
 public:
  explicit Player(const model::Policy& policy) : scheduler_(policy) {}

  Result<void> hear(Row row) {
    Result<model::Event> event = wire::event_from_text(row.event);
    if (!event) return std::unexpected(std::move(event.error()).in(where()));
    if (std::optional<std::string> fault = check_.fault_of(*event, decided_)) {
      return std::unexpected(Error{*std::move(fault)}.in(where()));
    }
    if (const auto* const refused = std::get_if<model::ClaimRefused>(&event->what)) {
      forget_starts(decided_, refused->attempts);
    }
    compare();
    if (played_.difference) return {};
    last_ = std::move(row);
    ++played_.events;
    played_.until = event->at;
    decided_ = scheduler_.on(*event);
    return {};
  }

  Replayed finish() {
    compare();
    return std::move(played_);
  }

  [[nodiscard]] bool differs() const { return played_.difference.has_value(); }

 private:
  [[nodiscard]] std::string where() const {
    return fmt::format("event {} of the record", played_.events + 1);
  }

  void compare() {
    if (played_.events == 0 || played_.difference) return;
    for (const model::Command& command : decided_.commands) {
      played_.starts += std::holds_alternative<model::StartAttempt>(command) ? 1 : 0;
    }
    std::string now = wire::to_text(decided_);
    if (now == last_.decision) return;
    played_.difference = Difference{.event = played_.events,
                                    .at = played_.until,
                                    .heard = std::move(last_.event),
                                    .decided_then = std::move(last_.decision),
                                    .decided_now = std::move(now)};
  }

  schedule::Scheduler scheduler_;
  EventCheck check_;
  Row last_;                 ///< The last recorded event, and
  model::Decision decided_;  ///< the present decision about it.
  Replayed played_;
};

}  // namespace

Result<Replayed> replay(journal::RecordingReader& recording, SeeRow see) {
  const Result<model::Policy> policy = wire::policy_from_text(recording.policy());
  if (!policy) return std::unexpected(policy.error());
  Player player(*policy);
  while (!player.differs()) {
    Result<std::optional<Row>> next = recording.next();
    if (!next) return std::unexpected(std::move(next.error()));
    std::optional<Row>& row = *next;
    if (!row) break;
    if (see) see(*row);
    if (Result<void> heard = player.hear(*std::move(row)); !heard) {
      return std::unexpected(std::move(heard.error()));
    }
  }
  return player.finish();
}

}  // namespace trainyard::run
