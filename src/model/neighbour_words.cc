#include "model/neighbour_words.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "model/promises.h"
#include "model/resources.h"

namespace trainyard::model {
namespace {

/// So many are named, and the others are counted.
constexpr std::size_t kNamedMax = 2;

/// One that has something of what is lacked.
struct Holder {
  std::int64_t size = 0;
  std::string words;
};

/// The largest first.
std::string listed(std::vector<Holder> holders) {
  // By the words where the sizes are equal, so that the same is said each time.
  std::ranges::sort(holders, [](const Holder& a, const Holder& b) {
    return std::tie(b.size, a.words) < std::tie(a.size, b.words);
  });
  std::string words;
  for (std::size_t i = 0; i < std::min(holders.size(), kNamedMax); ++i) {
    words += ", " + holders[i].words;
  }
  if (holders.size() > kNamedMax) {
    const std::size_t more = holders.size() - kNamedMax;
    words += fmt::format(", and {} more {} reserved some of it", more,
                         more == 1 ? "run has" : "runs have");
  }
  return words;
}

std::string since_words(std::int64_t unix_s, const Neighbour& neighbour) {
  return unix_s == 0 ? std::string() : " since " + time_of_day(unix_s, neighbour);
}

bool wants_the_same(const Neighbour& neighbour, const Reason& reason) {
  const std::optional<Want>& want = neighbour.its.want;
  return want && (want->gpus > 0) == (reason.needs.gpus > 0);
}

}  // namespace

std::string memory_words_of_neighbours(const Headroom& room) {
  constexpr Bytes kWorthNaming = mb(100);
  std::vector<Holder> holders;
  for (const Neighbour& neighbour : room.neighbours) {
    const HeldPromise held = sum_of(neighbour.its.held, neighbour.its.claimed);
    if (held.memory < kWorthNaming) continue;
    holders.push_back(
        {.size = held.memory.count,
         .words = fmt::format("{} has reserved {}{}", name_of(neighbour), to_text(held.memory),
                              since_words(held.since_unix_s, neighbour))});
  }
  return listed(std::move(holders));
}

std::string cpu_words_of_neighbours(const Headroom& room) {
  std::vector<Holder> holders;
  for (const Neighbour& neighbour : room.neighbours) {
    const HeldPromise held = sum_of(neighbour.its.held, neighbour.its.claimed);
    if (held.cpus <= Cpus{}) continue;
    // A run with a larger part of the machine may have CPUs outside ours.
    const std::string count =
        held.cpus > room.cpus ? "some" : fmt::format("{}", as_number(held.cpus));
    holders.push_back({.size = held.cpus.milli,
                       .words = fmt::format("{} by {}{}", count, name_of(neighbour),
                                            since_words(held.since_unix_s, neighbour))});
  }
  return listed(std::move(holders));
}

std::string card_words_of_neighbours(const Headroom& room, std::size_t gpu) {
  const Headroom::Card& card = room.gpus[gpu];
  std::vector<Holder> holders;
  for (const Neighbour& neighbour : room.neighbours) {
    const HeldPromise held = sum_of(neighbour.its.held, neighbour.its.claimed);
    const CardPromise* const its = find_card(held, card.uuid);
    if (its == nullptr || card.uuid.empty()) continue;
    const std::string what = its->whole ? std::string("all") : to_text(its->memory);
    holders.push_back(
        {.size = its->memory.count,
         .words = fmt::format("{} has reserved {} of GPU {}{}", name_of(neighbour), what,
                              card.label, since_words(its->since_unix_s, neighbour))});
  }
  return listed(std::move(holders));
}

std::string giving_way_words(const Reason& reason, const Headroom& room) {
  const Neighbour* first = nullptr;
  for (const Neighbour& neighbour : room.neighbours) {
    if (!neighbour.its.want || !wants_the_same(neighbour, reason)) continue;
    if (first == nullptr || neighbour.waits > first->waits) first = &neighbour;
  }
  if (first == nullptr || !first->its.want)
    return "gives way to another run that has no larger share of the machine";
  const std::string words =
      fmt::format("gives way to {}, which has waited{} and has no larger share of the machine",
                  name_of(*first), since_words(first->its.want->since_unix_s, *first));
  if (!first->is_ours || first->its.run == 0) return words;
  return fmt::format("{}; to kill its tasks, type: trainyard kill {} '*'", words, first->its.run);
}

bool is_whole_of_neighbour(const Headroom& room, std::size_t gpu) {
  return std::ranges::any_of(room.neighbours, [&](const Neighbour& neighbour) {
    const HeldPromise held = sum_of(neighbour.its.held, neighbour.its.claimed);
    const CardPromise* const its = find_card(held, room.gpus[gpu].uuid);
    return its != nullptr && its->whole;
  });
}

}  // namespace trainyard::model
