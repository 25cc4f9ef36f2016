#include "pipeline/background.h"

#include <exception>
#include <utility>

#include "pipeline/step_caller.h"

namespace trainyard::pipeline {

Background::Background(WorkerPool& pool, EventBus& bus) : pool_(pool), bus_(bus) {
  pool_.open(*this);
}

Background::~Background() { pool_.close(*this); }

void Background::add(std::string name, std::function<void()> work) {
  const auto full = [this] {
    const std::scoped_lock lock(mutex_);
    return waiting_.size() >= kWaitingMax;
  };
  while (full() && do_one()) {
  }
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back({.name = std::move(name), .act = std::move(work)});
    ++ready_;
    ++unfinished_;
    added_.store(true, std::memory_order_release);
  }
  ended_.notify_all();
  pool_.wake();
}

bool Background::do_one() {
  Work work;
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.empty()) return false;
    work = std::move(waiting_.front());
    waiting_.pop_front();
    --ready_;
  }
  std::exception_ptr error;
  try {
    work.act();
  } catch (...) {
    error = std::current_exception();
  }
  work.act = nullptr;  // Its captures are destroyed when it has ended.
  const std::scoped_lock lock(mutex_);
  if (error) {
    errors_.push_back(step_error(std::move(work.name), error));
    if (!failed_) failed_ = std::make_unique<WaitsCutShort>(bus_);
    failed_->begin();
  }
  if (--unfinished_ == 0) ended_.notify_all();
  return true;
}

std::vector<StepError> Background::finish() {
  while (do_one()) {
  }
  std::unique_lock lock(mutex_);
  while (unfinished_ > 0) {
    if (waiting_.empty()) {
      ended_.wait(lock, [this] { return unfinished_ == 0 || !waiting_.empty(); });
      continue;
    }
    lock.unlock();
    do_one();
    lock.lock();
  }
  failed_.reset();
  added_ = false;
  return std::exchange(errors_, {});
}

}  // namespace trainyard::pipeline
