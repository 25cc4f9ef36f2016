#include "queue/rules/queue_choice.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace trainyard::queue {
namespace {

struct Standing {
  bool ready = false;
  std::string skipped;       ///< Why it never begins; empty: it may.
  bool not_needed = false;   ///< This is why.
  std::uint32_t needed = 0;  ///< See SkippedSubmission.
};

/// Judges by its needs. One failure is enough to know that not all have succeeded, but it is known
/// that something has failed only once it has.
Standing standing_of(const QueuedSubmission& submission, const FateOf& fate_of) {
  bool all_ended = true;
  std::uint32_t bad = 0;
  for (const std::uint32_t needed : submission.needs) {
    const Fate fate = fate_of(needed);
    if (fate == Fate::NotEnded) all_ended = false;
    if (fate == Fate::EndedBadly || fate == Fate::Unknown) bad = needed;
  }
  switch (submission.run_if) {
    case model::RunIf::Success:
      if (bad != 0) {
        return {.skipped = fmt::format("needs run {}, which did not succeed", bad), .needed = bad};
      }
      return {.ready = all_ended};
    case model::RunIf::Failure:
      if (!all_ended || bad != 0) return {.ready = all_ended};
      return {.skipped = "the runs that it needs succeeded, and it starts only after a failure",
              .not_needed = true};
    case model::RunIf::Always:
      break;
  }
  return {.ready = all_ended};
}

bool may_begin(const QueuedSubmission& submission,
               const std::vector<RunWithoutRoom>& without_room) {
  const auto before = std::ranges::count_if(
      without_room, [&](const RunWithoutRoom& run) { return holds_back(run, submission); });
  return static_cast<std::size_t>(before) < kWithoutRoomMax;
}

}  // namespace

bool waits_for_room(model::Cause cause) {
  switch (cause) {
    case model::Cause::None:
    case model::Cause::Group:
    case model::Cause::TriedFirst:
    case model::Cause::Needs:
    case model::Cause::Held:
    case model::Cause::NotYet:
    case model::Cause::Parallel:
      return false;
    default:
      return true;
  }
}

bool lacks_cpus(model::Cause cause) {
  return cause == model::Cause::Cpus || cause == model::Cause::OthersUseCpu;
}

RoomNeed joined(const RoomNeed& one, const RoomNeed& other) {
  if (other.cause == model::Cause::None) return one;
  if (one.cause == model::Cause::None) return other;
  if (one.cause != other.cause) return one.cause < other.cause ? one : other;
  return {.cause = one.cause,
          .memory = std::min(one.memory, other.memory),
          .cpus = std::min(one.cpus, other.cpus)};
}

bool holds_back(const RunWithoutRoom& run, const QueuedSubmission& submission) {
  if (run.submission.priority < submission.priority) return false;
  const RoomNeed& need = run.need;
  if (need.cause == model::Cause::Memory && need.memory > Bytes{}) {
    return submission.memory >= need.memory;
  }
  if (lacks_cpus(need.cause) && need.cpus > model::Cpus{}) return submission.cpus >= need.cpus;
  return run.submission.needs_gpu == submission.needs_gpu;
}

std::string present_reason(const QueuedSubmission& skipped, std::string_view why,
                           const FateOf& fate_of) {
  Standing now = standing_of(skipped, fate_of);
  if (!now.skipped.empty()) return std::move(now.skipped);
  return fmt::format("{} at first: 'trainyard retry {}' puts it back into your queue", why,
                     skipped.number);
}

void order_queue(std::vector<QueuedSubmission>& waiting) {
  std::ranges::sort(waiting, [](const QueuedSubmission& a, const QueuedSubmission& b) {
    return std::tie(b.priority, a.number) < std::tie(a.priority, b.number);
  });
}

QueueChoice choose_next(std::vector<QueuedSubmission> waiting, QueueLoad load,
                        const FateOf& fate_of) {
  order_queue(waiting);
  QueueChoice choice;
  std::map<std::uint32_t, Fate> skipped;
  const auto fate_now = [&](std::uint32_t number) {
    const auto found = skipped.find(number);
    return found == skipped.end() ? fate_of(number) : found->second;
  };
  for (const QueuedSubmission& submission : waiting) {
    Standing standing = standing_of(submission, fate_now);
    if (!standing.skipped.empty()) {
      skipped[submission.number] = standing.not_needed ? Fate::EndedWell : Fate::EndedBadly;
      choice.skip.push_back({.number = submission.number,
                             .why = std::move(standing.skipped),
                             .not_needed = standing.not_needed,
                             .needed = standing.needed});
      continue;
    }
    if (!standing.ready || load.at_work >= kAtWorkMax) continue;
    if (!may_begin(submission, load.without_room)) continue;
    choice.begin.push_back(submission.number);
    load.at_work += 1;
    load.without_room.push_back({.submission = submission});
  }
  return choice;
}

}  // namespace trainyard::queue
