#include "pipeline/worker_pool.h"

#include <algorithm>

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

}  // namespace trainyard::pipeline
