#include "workers/pool_threads.h"

#include <expected>
#include <string>
#include <system_error>
#include <utility>

#include "ranks/shared_arenas.h"

namespace trainyard::workers {

Result<std::unique_ptr<PoolBackend>> PoolThreads::start(const PoolOptions& options,
                                                        detail::PoolMake make) {
  auto pool = std::make_unique<PoolThreads>(options, std::move(make));
  if (Result<void> started = pool->start_threads(); !started) {
    return std::unexpected(std::move(started.error()));
  }
  return pool;
}

PoolThreads::PoolThreads(const PoolOptions& options, detail::PoolMake make)
    : open_max_(options.open_max), make_(std::move(make)) {
  for (int index = 0; index < options.count; ++index) {
    children_.push_back(std::make_unique<Child>());
    children_.back()->index = index;
  }
}

Result<void> PoolThreads::start_threads() {
  for (const auto& child : children_) {
    try {
      child->thread = std::thread([this, it = child.get()] { run(*it); });
    } catch (const std::system_error& error) {
      return std::unexpected(Error{std::string("a thread: ") + error.what()});
    }
  }
  return {};
}

PoolThreads::~PoolThreads() { shutdown(Duration(0)); }

void PoolThreads::run(Child& child) const {
  bool goes_on = true;
  while (goes_on) {
    std::unique_ptr<detail::PoolObject> object;
    std::optional<CallError> error;
    try {
      object = make_(child.index);
    } catch (...) {
      error = detail::error_of_current_exception(CallError::Kind::NotMade, {});
    }
    goes_on = serve(child, object.get(), error);
  }
}

bool PoolThreads::serve(Child& child, detail::PoolObject* object,
                        const std::optional<CallError>& error) {
  std::unique_lock lock(child.mutex);
  while (true) {
    child.changed.wait(lock, [&] { return child.over || child.again || !child.jobs.empty(); });
    if (child.over) return false;
    if (std::exchange(child.again, false)) return true;
    Job job = std::move(child.jobs.front());
    child.jobs.pop_front();
    child.running = job.call;
    lock.unlock();
    job.call->settle(
        error ? std::unexpected(*error)
              : within_limit(object->call(job.method, std::move(job.arguments)), "its result"));
    lock.lock();
    child.running.reset();
  }
}

void PoolThreads::send(std::size_t method, detail::RemotePayload arguments,
                       std::span<const std::shared_ptr<PoolCall>> calls) {
  for (const auto& call : calls) {
    Child& child = *children_.at(static_cast<std::size_t>(call->child()));
    const std::unique_lock lock(child.mutex);
    const std::size_t open = child.jobs.size() + (child.running ? 1 : 0);
    if (child.over) {
      call->fail(CallError::Kind::ShutDown, std::string(kPoolHasEnded));
    } else if (open >= open_max_) {
      call->fail(CallError::Kind::Full, too_many_open(open_max_));
    } else {
      child.jobs.push_back({.method = method, .arguments = arguments, .call = call});
      child.changed.notify_all();
    }
  }
}

std::vector<std::shared_ptr<PoolCall>> PoolThreads::take_open(Child& child) {
  std::vector<std::shared_ptr<PoolCall>> open;
  // It goes on to count as one that is open, until it is over.
  if (child.running) open.push_back(child.running);
  for (Job& job : child.jobs) open.push_back(std::move(job.call));
  child.jobs.clear();
  return open;
}

bool PoolThreads::restart(int index) {
  Child& child = *children_.at(static_cast<std::size_t>(index));
  std::unique_lock lock(child.mutex);
  if (child.over) return false;
  child.again = true;
  const std::vector<std::shared_ptr<PoolCall>> open = take_open(child);
  lock.unlock();
  child.changed.notify_all();
  for (const auto& call : open) {
    call->fail(CallError::Kind::Restarted, std::string(kPoolHasRestarted));
  }
  return true;
}

void PoolThreads::shutdown(Duration /*grace*/) {
  for (const auto& child : children_) {
    std::unique_lock lock(child->mutex);
    child->over = true;
    const std::vector<std::shared_ptr<PoolCall>> open = take_open(*child);
    lock.unlock();
    child->changed.notify_all();
    for (const auto& call : open) {
      call->fail(CallError::Kind::ShutDown, std::string(kPoolHasEnded));
    }
  }
  const std::scoped_lock ends(ending_);
  for (const auto& child : children_) {
    if (child->thread.joinable()) child->thread.join();
  }
}

Result<Buffer> PoolThreads::alloc(DType type, Dimensions shape) {
  return ranks::alloc_own(type, std::move(shape));
}

}  // namespace trainyard::workers
