#include "schedule/card_shares.h"

#include <algorithm>
#include <cmath>

namespace trainyard::schedule {
namespace {

constexpr int kWholeCard = 1000;

}  // namespace

std::vector<CardShares::Timed> CardShares::begin(std::uint32_t task,
                                                 const std::vector<std::uint32_t>& cards, int share,
                                                 Duration work, Duration now) {
  for (const std::uint32_t card : cards) {
    sums_[card] += share;
    on_[card].push_back(task);
  }
  AtWork& it = at_work_[task];
  it = {.cards = cards,
        .share = share,
        .left = static_cast<double>(work.count()),
        .pace = pace_on(cards),
        .since = now};
  it.ends = now + Duration{std::llround(it.left / it.pace)};
  std::vector<Timed> out{{.task = task, .ends = it.ends}};
  time_anew(cards, now, out);
  return out;
}

std::vector<CardShares::Timed> CardShares::leave(std::uint32_t task, Duration now) {
  std::vector<Timed> out;
  const auto node = at_work_.extract(task);
  if (node.empty()) return out;
  const AtWork& it = node.mapped();
  for (const std::uint32_t card : it.cards) {
    sums_[card] -= it.share;
    std::erase(on_[card], task);
  }
  time_anew(it.cards, now, out);
  return out;
}

std::optional<Duration> CardShares::end_of(std::uint32_t task) const {
  const auto found = at_work_.find(task);
  if (found == at_work_.end()) return std::nullopt;
  return found->second.ends;
}

double CardShares::pace_on(const std::vector<std::uint32_t>& cards) const {
  int most = kWholeCard;
  for (const std::uint32_t card : cards) {
    if (sums_[card] <= kWholeCard) continue;
    const int others = static_cast<int>(on_[card].size()) - 1;
    most = std::max(most, sums_[card] + (sums_[card] * crowding_ * others / kWholeCard));
  }
  return static_cast<double>(kWholeCard) / most;
}

void CardShares::time_anew(const std::vector<std::uint32_t>& cards, Duration now,
                           std::vector<Timed>& out) {
  for (const std::uint32_t card : cards) {
    for (const std::uint32_t task : on_[card]) {
      AtWork& it = at_work_.at(task);
      const double pace = pace_on(it.cards);
      if (pace == it.pace) continue;
      it.left = std::max(0.0, it.left - it.pace * static_cast<double>((now - it.since).count()));
      it.since = now;
      it.pace = pace;
      it.ends = now + Duration{std::llround(it.left / pace)};
      out.push_back({.task = task, .ends = it.ends});
    }
  }
}

}  // namespace trainyard::schedule
