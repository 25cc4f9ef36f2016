#include "trainyard/detail/pool_core.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/trouble.h"
#include "workers/parcel.h"
#include "workers/pool_backend.h"
#include "workers/pool_processes.h"
#include "workers/pool_threads.h"

namespace trainyard {
namespace {

constexpr int kChildrenMax = 1'024;

}  // namespace

std::string_view to_text(PoolIn in) { return in == PoolIn::Processes ? "processes" : "threads"; }

std::string_view to_text(CallError::Kind kind) {
  static constexpr std::array<std::string_view, 11> kWords{
      "threw", "not made", "not carried", "died",          "restarted", "shut down",
      "late",  "stopped",  "full",        "no such child", "taken"};
  return kWords.at(static_cast<std::size_t>(kind));
}

std::string CallError::text() const {
  std::string text = fmt::format("child {}: {}: {}", child, to_text(kind), message);
  if (!stderr_end.empty()) text += "\n  it printed last:\n" + stderr_end;
  return text;
}

namespace workers {

std::string too_many_open(std::size_t open_max) {
  return fmt::format("it has {} calls that it has not answered, and may have no more", open_max);
}

detail::PoolAnswer within_limit(detail::PoolAnswer it, std::string_view what) {
  if (!it) return it;
  const auto refused = [what](std::string_view why) {
    return std::unexpected(CallError{.kind = CallError::Kind::NotCarried,
                                     .child = 0,
                                     .message = fmt::format("{} cannot be sent: {}", what, why)});
  };
  if (it->json.size() > kPoolLimits.fields_bytes_max) {
    return refused(
        fmt::format("{} bytes of JSON, and at most {} are allowed; use a Buffer for more",
                    it->json.size(), kPoolLimits.fields_bytes_max));
  }
  if (it->buffers.size() > kBuffersMax) {
    return refused(fmt::format("{} buffers, and at most {} are allowed; put several into one",
                               it->buffers.size(), kBuffersMax));
  }
  return it;
}

}  // namespace workers

namespace detail {

CallError error_of_current_exception(CallError::Kind kind, std::string_view what) {
  std::string message = pipeline::full_text_of(std::current_exception());
  if (!what.empty()) message = fmt::format("{}: {}", what, message);
  return {.kind = kind, .child = 0, .message = std::move(message)};
}

CallError taken_before(int child) {
  return {.kind = CallError::Kind::Taken, .child = child, .message = "its answer was taken before"};
}

std::vector<PoolAnswer> take_answers(const PoolCalls& calls, Timeout within,
                                     const std::stop_token& stop) {
  const auto deadline = workers::PoolCall::Clock::now() + within.time();
  std::vector<PoolAnswer> answers;
  answers.reserve(calls.size());
  for (const auto& call : calls) answers.push_back(call->take(deadline, stop));
  return answers;
}

bool are_answered(const PoolCalls& calls) {
  return std::ranges::all_of(calls, [](const auto& it) { return it->is_settled(); });
}

Result<std::unique_ptr<PoolCore>> PoolCore::start(const PoolOptions& options, PoolMake make) {
  if (options.count < 1 || options.count > kChildrenMax) {
    return std::unexpected(Error{
        fmt::format("a pool of {} children: 1 to {} there can be", options.count, kChildrenMax)});
  }
  if (options.open_max == 0) {
    return std::unexpected(Error{"a pool in which no call may be open"});
  }
  if (options.stop_grace < std::chrono::milliseconds(0)) {
    return std::unexpected(Error{"a grace before a child is killed that is negative"});
  }
  PoolOptions bounded = options;
  bounded.stop_grace = Timeout(options.stop_grace).milliseconds();
  auto backend = options.in == PoolIn::Processes
                     ? workers::PoolProcesses::start(bounded, std::move(make))
                     : workers::PoolThreads::start(bounded, std::move(make));
  if (!backend) return std::unexpected(std::move(backend.error()).in("the pool cannot be started"));
  return std::unique_ptr<PoolCore>(
      new PoolCore(options.count, options.stop_grace, std::move(*backend)));
}

PoolCore::PoolCore(int count, Timeout grace, std::unique_ptr<workers::PoolBackend> backend)
    : count_(count), grace_(grace), backend_(std::move(backend)) {}

PoolCore::~PoolCore() { shutdown(grace_); }

void PoolCore::send(std::size_t method, PoolAnswer arguments, const PoolCalls& calls) {
  arguments = workers::within_limit(std::move(arguments), "its arguments");
  if (arguments) return backend_->send(method, *std::move(arguments), calls);
  for (const auto& call : calls) call->settle(std::unexpected(arguments.error()));
}

std::shared_ptr<workers::PoolCall> PoolCore::call(int child, std::size_t method,
                                                  PoolAnswer arguments) {
  PoolCalls calls{std::make_shared<workers::PoolCall>(child)};
  if (child < 0 || child >= count_) {
    calls.front()->fail(CallError::Kind::NoSuchChild,
                        fmt::format("the pool has {}, from 0 on", count_));
  } else {
    send(method, std::move(arguments), calls);
  }
  return std::move(calls.front());
}

PoolCalls PoolCore::call_all(std::size_t method, PoolAnswer arguments) {
  PoolCalls calls;
  for (int child = 0; child < count_; ++child) {
    calls.push_back(std::make_shared<workers::PoolCall>(child));
  }
  send(method, std::move(arguments), calls);
  return calls;
}

std::expected<void, CallError> PoolCore::restart(int child) {
  if (child < 0 || child >= count_) {
    return std::unexpected(CallError{.kind = CallError::Kind::NoSuchChild,
                                     .child = child,
                                     .message = fmt::format("the pool has {}, from 0 on", count_)});
  }
  if (backend_->restart(child)) return {};
  return std::unexpected(CallError{.kind = CallError::Kind::ShutDown,
                                   .child = child,
                                   .message = std::string(workers::kPoolHasEnded)});
}

void PoolCore::shutdown(Timeout grace) { backend_->shutdown(grace.milliseconds()); }

Result<Buffer> PoolCore::alloc(DType type, Dimensions shape) {
  return backend_->alloc(type, std::move(shape));
}

}  // namespace detail
}  // namespace trainyard
