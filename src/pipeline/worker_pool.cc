#include "pipeline/worker_pool.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace trainyard::pipeline {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread has it to itself
constinit thread_local WorkerPool* pool_of_this_thread = nullptr;

}  // namespace

WorkerPool::WorkerPool(int workers) : wanted_(std::min(workers, kThreadsMax)) {
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < wanted_; ++i) start_worker();
}

WorkerPool::~WorkerPool() {
  {
    const std::scoped_lock lock(mutex_);
    check(open_.empty(), "no work open when its pool ends");
    ending_ = true;
  }
  work_there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::start_worker() {
  threads_.emplace_back([this] { work(); });
}

int WorkerPool::threads() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(threads_.size());
}

void WorkerPool::open(PooledWork& work) {
  const std::scoped_lock lock(mutex_);
  open_.push_back({.work = &work, .workers_in_it = 0});
}

void WorkerPool::close(PooledWork& work) {
  std::unique_lock lock(mutex_);
  const auto find = [&] { return std::ranges::find(open_, &work, &Open::work); };
  check(find() != open_.end(), "that work is open which is closed");
  left_.wait(lock, [&] { return find()->workers_in_it == 0; });
  open_.erase(find());
  ++changes_;
}

void WorkerPool::wake() {
  const std::scoped_lock lock(mutex_);
  wake_one();
}

void WorkerPool::wake_one() {
  ++calls_;
  if (idle_ <= called_) return;
  ++called_;
  work_there_.notify_one();
}

void WorkerPool::work() {
  pool_of_this_thread = this;
  std::unique_lock lock(mutex_);
  std::uint64_t seen = calls_ - 1;  // Something may be open already.
  while (!ending_) {
    if (seen == calls_) {
      ++idle_;
      work_there_.wait(lock, [&] { return ending_ || seen != calls_; });
      --idle_;
      called_ = std::max(0, called_ - 1);
      continue;
    }
    seen = calls_;
    do_all(lock);
  }
}

void WorkerPool::do_all(std::unique_lock<std::mutex>& lock) {
  std::size_t looked_at = 0;
  while (looked_at < open_.size()) {
    PooledWork& work = *open_[looked_at].work;
    ++open_[looked_at].workers_in_it;
    if (work.ready() > 1) wake_one();
    const std::uint64_t changes = changes_;
    lock.unlock();
    while (work.do_one()) {
    }
    lock.lock();
    // It cannot have been closed meanwhile, but others can, and then places have changed.
    Open& mine = *std::ranges::find(open_, &work, &Open::work);
    if (--mine.workers_in_it == 0) left_.notify_all();
    looked_at = changes == changes_ ? looked_at + 1 : 0;
  }
}

WorkerPool::Blocked::Blocked() : pool_(pool_of_this_thread) {
  if (pool_ == nullptr) return;
  const std::scoped_lock lock(pool_->mutex_);
  ++pool_->blocked_;
  const int most = std::min(pool_->wanted_ + pool_->blocked_, kThreadsMax);
  if (static_cast<int>(pool_->threads_.size()) < most) pool_->start_worker();
}

WorkerPool::Blocked::~Blocked() {
  if (pool_ == nullptr) return;
  const std::scoped_lock lock(pool_->mutex_);
  --pool_->blocked_;
}

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
