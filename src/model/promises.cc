#include "model/promises.h"

#include <algorithm>

#include <fmt/format.h>

namespace trainyard::model {
namespace {

/// The smaller of two numbers; 0 stands for no number.
template <class Number>
Number smaller_said(Number one, Number other) {
  if (one == Number{} || other == Number{}) return std::max(one, other);
  return std::min(one, other);
}

void add(CardPromise& to, const CardPromise& more) {
  to.memory += more.memory;
  to.unused += more.unused;
  to.tasks += more.tasks;
  to.whole = to.whole || more.whole;
  to.sharing.utilization += more.sharing.utilization;
  to.sharing.max_per_gpu = smaller_said(to.sharing.max_per_gpu, more.sharing.max_per_gpu);
  to.since_unix_s = smaller_said(to.since_unix_s, more.since_unix_s);
}

}  // namespace

std::string name_of(const Neighbour& neighbour) {
  if (!neighbour.is_ours) {
    return neighbour.user_name.empty()
               ? fmt::format("another user's run (uid {})", neighbour.user)
               : fmt::format("another user's run ({})", neighbour.user_name);
  }
  const Promises& its = neighbour.its;
  const std::string number = its.run > 0 ? fmt::format(" {}", its.run) : std::string();
  return its.name.empty() ? fmt::format("your run{}", number)
                          : fmt::format("your run{} ({})", number, its.name);
}

std::string time_of_day(std::int64_t unix_s, const Neighbour& seen_by) {
  constexpr std::int64_t kDay = 86'400;
  constexpr std::int64_t kHour = 3'600;
  constexpr std::int64_t kMinute = 60;
  const std::int64_t since_midnight = unix_s - seen_by.midnight_unix_s;
  const std::int64_t of_day = ((since_midnight % kDay) + kDay) % kDay;
  const std::int64_t days = (of_day - since_midnight) / kDay;
  std::string time = fmt::format("{:02}:{:02}", of_day / kHour, of_day % kHour / kMinute);
  if (days <= 0) return time;
  return days == 1 ? time + " yesterday" : fmt::format("{}, {} days ago", time, days);
}

HeldPromise sum_of(const HeldPromise& one, const HeldPromise& other) {
  HeldPromise sum = one;
  sum.memory += other.memory;
  sum.unused += other.unused;
  sum.cpus = sum.cpus + other.cpus;
  sum.tasks += other.tasks;
  sum.since_unix_s = smaller_said(sum.since_unix_s, other.since_unix_s);
  for (const CardPromise& card : other.cards) {
    const auto place = std::ranges::lower_bound(sum.cards, card.uuid, {}, &CardPromise::uuid);
    if (place != sum.cards.end() && place->uuid == card.uuid) {
      add(*place, card);
    } else {
      sum.cards.insert(place, card);
    }
  }
  return sum;
}

const CardPromise* find_card(const HeldPromise& held, const std::string& uuid) {
  const auto place = std::ranges::lower_bound(held.cards, uuid, {}, &CardPromise::uuid);
  return place != held.cards.end() && place->uuid == uuid ? &*place : nullptr;
}

}  // namespace trainyard::model
