#include "pipeline/side_by_side.h"

#include <algorithm>
#include <bit>

namespace trainyard::pipeline {
namespace {

constexpr std::size_t kBits = 64;

}  // namespace

SideBySide::SideBySide(std::size_t parts,
                       std::span<const std::pair<std::size_t, std::size_t>> pairs, Order order)
    : parts_(parts),
      order_(order),
      before_(parts),
      after_(parts),
      waits_for_(parts),
      ready_((parts + kBits - 1) / kBits) {
  for (const auto& [one, other] : pairs) {
    const auto [first, second] = std::minmax({place_of(one), place_of(other)});
    after_[first].push_back(second);
    ++before_[second];
  }
}

std::size_t SideBySide::place_of(std::size_t part) const {
  return order_ == Order::Upward ? part : parts_ - 1 - part;
}

void SideBySide::run(WorkerPool* pool, const Do& act) {
  if (parts_ == 0) return;
  act_ = &act;
  pool_ = pool;
  failed_at_.store(parts_, std::memory_order_relaxed);
  left_.store(parts_, std::memory_order_relaxed);
  for (std::size_t i = 0; i < parts_; ++i) {
    waits_for_[i].store(before_[i], std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < parts_; ++i) {
    if (before_[i] == 0) ready_[i / kBits].fetch_or(std::uint64_t{1} << (i % kBits));
  }
  if (pool_ != nullptr) {
    pool_->open(*this);
    if (std::ranges::count(before_, 0) > 1) pool_->wake();
  }
  for (;;) {
    const std::uint32_t news = news_.load();
    if (do_one()) continue;
    if (left_.load() == 0) break;
    news_.wait(news);
  }
  if (pool_ != nullptr) pool_->close(*this);
}

bool SideBySide::do_one() {
  const std::size_t place = take();
  if (place == parts_) return false;
  // After a failure in the order it only counts as done.
  if (place < failed_at_.load() && !(*act_)(place_of(place))) {
    std::size_t first = failed_at_.load();
    while (place < first && !failed_at_.compare_exchange_weak(first, place)) {
    }
  }
  ended(place);
  return true;
}

std::size_t SideBySide::ready() const {
  std::size_t count = 0;
  for (const auto& bits : ready_) {
    count += static_cast<std::size_t>(std::popcount(bits.load(std::memory_order_relaxed)));
  }
  return count;
}

std::size_t SideBySide::take() {
  for (std::size_t word = 0; word < ready_.size(); ++word) {
    std::uint64_t bits = ready_[word].load(std::memory_order_relaxed);
    while (bits != 0) {
      const std::uint64_t lowest = bits & (~bits + 1);
      const std::uint64_t before = ready_[word].fetch_and(~lowest);
      if ((before & lowest) != 0) {
        return (word * kBits) + static_cast<std::size_t>(std::countr_zero(lowest));
      }
      bits = before;
    }
  }
  return parts_;
}

void SideBySide::ended(std::size_t place) {
  int made_ready = 0;
  for (const std::size_t next : after_[place]) {
    if (waits_for_[next].fetch_sub(1) != 1) continue;
    make_ready(next);
    ++made_ready;
  }
  // Whoever ended takes one of them itself.
  if (made_ready > 1 && pool_ != nullptr) pool_->wake();
  if (left_.fetch_sub(1) == 1 || made_ready > 0) {
    news_.fetch_add(1);
    news_.notify_one();
  }
}

void SideBySide::make_ready(std::size_t place) {
  ready_[place / kBits].fetch_or(std::uint64_t{1} << (place % kBits));
}

}  // namespace trainyard::pipeline
